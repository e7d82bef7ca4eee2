// SPDX-License-Identifier: MIT
// Bytes to the ops of a section.
#include <algorithm>
#include <array>
#include <bit>

#include "formats/oplog/block_codec.h"
#include "formats/oplog/block_model.h"
#include "formats/oplog/block_storage.h"

namespace reprise {

using namespace block_model;

namespace {

// Residuals of one column by kind. Constants, and kinds without the column, have step 0.
struct Column {
    std::array<const uint64_t*, 256> base;
    std::array<uint32_t, 256> step;

    uint64_t at(uint8_t kind, size_t ordinal) const { return base[kind][ordinal * step[kind]]; }
};

struct Directory {
    std::array<Column, kColumns> columns;
    std::array<uint64_t, 256 * kColumns> constants;
    std::array<uint32_t, 256> counts{}, first_place;
    uint32_t fields = 0;   // any kind of the block has them
    uint32_t nonzero = 0;  // bit per column: some stream is not all zeros
    uint32_t varies = 0;   // bit per column: some stream is not constant
};

void widen(ByteView plane, unsigned shift, uint64_t* into, bool first) {
    const uint8_t* from = plane.data();
    const size_t n = plane.size();
    if (first) {
        for (size_t i = 0; i < n; ++i) {
            into[i] = from[i];
        }
    } else {
        for (size_t i = 0; i < n; ++i) {
            into[i] |= static_cast<uint64_t>(from[i]) << shift;
        }
    }
}

// Reads the bits below `classes` (see hybrid) into `out`.
void read_hybrid(ByteView classes, ByteView bits, uint64_t* out) {
    const auto& t = hybrid::kTables;
    size_t total = 0;
    for (const uint8_t c : classes) {
        total += t.bits[c];
    }
    if ((total + 7) / 8 != bits.size()) {
        throw Corrupt("the bits of a column differ from its classes");
    }
    // Eight bytes may be loaded at any position up to the last but seven; the end is read from a padded copy.
    std::array<uint8_t, 32> tail{};
    const size_t tail_from = bits.size() > 16 ? bits.size() - 16 : 0;
    if (!bits.empty()) {
        std::memcpy(tail.data(), bits.data() + tail_from, bits.size() - tail_from);
    }
    const auto load = [](const uint8_t* at) {
        uint64_t word;
        std::memcpy(&word, at, sizeof word);
        return word;
    };
    size_t position = 0, i = 0;
    const size_t n = classes.size();
    const size_t safe = bits.size() >= 16 ? (bits.size() - 16) * 8 : 0;
    for (; i < n && position < safe; ++i) {
        const uint8_t c = classes[i];
        const unsigned width = t.bits[c];
        const uint8_t* at = bits.data() + position / 8;
        uint64_t word = load(at) >> (position % 8);
        if (width > 56) [[unlikely]] {
            word |= position % 8 ? load(at + 8) << (64 - position % 8) : 0;
        }
        out[i] = t.base[c] | (word & ((uint64_t{1} << width) - 1));
        position += width;
    }
    for (; i < n; ++i) {
        const uint8_t c = classes[i];
        const unsigned width = t.bits[c];
        const uint8_t* at = tail.data() + (position / 8 - tail_from);
        uint64_t word = 0;
        if (width > 0) {
            word = load(at) >> (position % 8);
            if (width > 56) {
                word |= position % 8 ? load(at + 8) << (64 - position % 8) : 0;
            }
        }
        out[i] = t.base[c] | (word & ((uint64_t{1} << width) - 1));
        position += width;
    }
}

[[noreturn]] void bad_id(const char* what, uint64_t id, size_t size) {
    throw Corrupt(std::string(what) + " " + std::to_string(id) + " is not in its table of " +
                  std::to_string(size ? size - 1 : 0));
}

void check_ids(const char* what, const RawVector<uint32_t>& ids, size_t n, size_t table_size) {
    uint32_t greatest = 0;
    for (size_t i = 0; i < n; ++i) {
        greatest = std::max(greatest, ids[i]);
    }
    if (greatest != 0 && greatest >= table_size) {
        bad_id(what, greatest, table_size);
    }
}

}  // namespace

void BlockCodec::decode(ByteView payload, uint32_t unit_ns, std::span<const RunInfo> runs, const TableView& tables,
                        OpBlock& into) {
    OpBlock::Storage& s = *into.storage_;
    if (!into.scratch_) {
        into.scratch_ = std::make_unique_for_overwrite<OpBlock::Scratch>();  // large
    }
    OpBlock::Scratch& scratch = *into.scratch_;
    const auto& traits = kind_traits();
    size_t n = 0;
    for (const RunInfo& run : runs) {
        n += run.ops;
    }
    if (n == 0 || n > kBlockOps) {
        throw Corrupt("a block of " + std::to_string(n) + " ops");
    }

    ByteReader in(payload);
    const Bytes directory_bytes = get_blob(in, scratch.decompressor, 1 << 20);
    s.kind = get_blob(in, scratch.decompressor, kBlockOps);
    if (s.kind.size() != n) {
        throw Corrupt("a block of " + std::to_string(s.kind.size()) + " ops where the index says " + std::to_string(n));
    }
    const Bytes joint_bytes = get_blob(in, scratch.decompressor, size_t{256} << 20);
    ByteReader joint(joint_bytes), directory(directory_bytes);

    // Directory and residuals.
    auto d = std::make_unique_for_overwrite<Directory>();
    static const uint64_t zero = 0;
    for (Column& column : d->columns) {
        column.base.fill(&zero);
        column.step.fill(0);
    }
    if (scratch.residuals_size < n * kColumns) {
        scratch.residuals_size = n * kColumns;
        scratch.residuals = std::make_unique_for_overwrite<uint64_t[]>(scratch.residuals_size);
    }
    uint64_t* residual = scratch.residuals.get();
    // The next plane of a stream; empty for all zeros. Valid until the next call.
    const auto plane = [&](size_t count, bool own) -> ByteView {
        if (!own) {
            return joint.take(count);
        }
        const size_t stored = directory.count(count);
        if (stored == 0 || stored == count) {
            return in.take(stored);
        }
        scratch.plane.resize(count);
        scratch.decompressor.decompress(in.take(stored), scratch.plane);
        return scratch.plane;
    };
    uint64_t* constant = d->constants.data();
    size_t counted = 0, list_total = 0;
    std::array<uint32_t, 256> large_counts{}, larges_seen{};
    const size_t kinds = directory.count(255);
    for (size_t row = 0; row < kinds; ++row) {
        const uint8_t kind = directory.byte();
        if (!is_op(kind)) {
            throw Corrupt("op id " + std::to_string(kind) + " is not in the op table of this version");
        }
        if (d->counts[kind]) {
            throw Corrupt("op id " + std::to_string(kind) + " stands twice in a block");
        }
        const size_t count = directory.count(n - counted);
        if (count == 0) {
            throw Corrupt("an empty kind in a block");
        }
        d->counts[kind] = static_cast<uint32_t>(count);
        counted += count;
        const size_t large = traits[kind].has(Field::size) ? directory.count(count) : 0;
        large_counts[kind] = static_cast<uint32_t>(large);
        d->fields |= traits[kind].fields;
        for (size_t column = 0; column < kColumns; ++column) {
            if (column >= kFirstField && !(traits[kind].fields >> (column - kFirstField) & 1)) {
                continue;
            }
            const size_t length = column < kThinkLarge ? count - large : column < kResult ? large : count;
            if (length == 0) {
                continue;
            }
            const uint8_t tag = directory.byte();
            if (tag == kZero) {
                continue;
            }
            d->nonzero |= 1u << column;
            if (tag == kConstant) {
                *constant = directory.varint();
                d->columns[column].base[kind] = constant++;
                continue;
            }
            d->columns[column].base[kind] = residual;
            d->columns[column].step[kind] = 1;
            d->varies |= 1u << column;
            if (tag == kJointHybrid || tag == kOwnHybrid) {
                const ByteView classes = plane(length, tag == kOwnHybrid);
                if (classes.empty()) {
                    throw Corrupt("a column of times without classes");
                }
                const int64_t bias = directory.signed_varint();
                read_hybrid(classes, in.take(directory.count(in.left())), residual);
                if (bias != 0) {
                    for (size_t i = 0; i < length; ++i) {
                        residual[i] += static_cast<uint64_t>(bias);
                    }
                }
                residual += length;
                continue;
            }
            const bool own = tag > kOwnPlanes;
            const unsigned width = tag - (own ? kOwnPlanes : kJointPlanes);
            if (width < 1 || width > 8) {
                throw Corrupt("column storage " + std::to_string(tag) + " is not known");
            }
            bool first = true;
            for (unsigned w = 0; w < width; ++w) {
                const ByteView bytes = plane(length, own);
                if (bytes.empty() && first) {
                    std::fill_n(residual, length, 0);
                }
                if (!bytes.empty()) {
                    widen(bytes, 8 * w, residual, first);
                }
                first = false;
            }
            residual += length;
        }
    }
    if (counted != n) {
        throw Corrupt("the kinds of a block add up to " + std::to_string(counted) + " ops of " + std::to_string(n));
    }
    // Where an op's residuals are: the one chain of dependent steps; all other passes can run ahead.
    scratch.ordinal.resize(n);
    uint32_t* ordinal = scratch.ordinal.data();
    std::array<uint32_t, 256> seen{};
    for (size_t i = 0; i < n; ++i) {
        ordinal[i] = seen[s.kind[i]]++;
    }
    if (seen != d->counts) {
        throw Corrupt("the kinds of a block differ from its directory");
    }
    // The way back: the ops of each kind, in order.
    scratch.places.resize(n);
    uint32_t* places = scratch.places.data();
    uint32_t place = 0;
    for (size_t k = 0; k < 256; ++k) {
        d->first_place[k] = place;
        place += d->counts[k];
    }
    for (size_t i = 0; i < n; ++i) {
        places[d->first_place[s.kind[i]] + ordinal[i]] = static_cast<uint32_t>(i);
    }
    const size_t list_values = directory.count(joint_bytes.size());
    const size_t list_bytes = directory.count(joint_bytes.size());
    const size_t edge_count = directory.count(joint_bytes.size());
    const size_t edge_bytes = directory.count(joint_bytes.size());
    ByteReader lists(joint.take(list_bytes)), edges(joint.take(edge_bytes));
    if (joint.left() || directory.left() || in.left()) {
        throw Corrupt("bytes are left over at the end of a block");
    }

    const uint8_t* kind = s.kind.data();
    const auto has = [&](Field field) { return (d->fields & field_bit(field)) != 0; };

    // Ids.
    const auto ids = [&](Field field, RawVector<uint32_t>& out, bool KindTraits::*makes, bool of_instance) {
        if (!has(field)) {
            return;
        }
        out.resize(n);
        const Column& column = d->columns[column_of(field)];
        LastIds last;
        for (size_t i = 0; i < n; ++i) {
            const uint8_t k = kind[i];
            const bool makes_one = makes && traits[k].*makes;
            if (of_instance && traits[k].makes_handle && s.handle[i] != 0 &&
                repeated_by_ops(tables.handles[s.handle[i]])) {
                last.used = tables.handles[s.handle[i]].file;
            }
            const uint32_t id = id_from(column.at(k, ordinal[i]), last.predict(makes_one));
            out[i] = id;
            last.see(id, makes_one);
        }
    };
    ids(Field::handle, s.handle, &KindTraits::makes_handle, false);
    if (has(Field::handle)) {
        check_ids("handle", s.handle, n, tables.handles.size());
    }
    ids(Field::handle2, s.handle2, &KindTraits::makes_handle, false);
    ids(Field::file, s.file, nullptr, true);
    ids(Field::file2, s.file2, nullptr, false);
    ids(Field::map, s.map, &KindTraits::makes_map, false);
    ids(Field::peer, s.peer, nullptr, false);
    ids(Field::text, s.text, nullptr, false);
    ids(Field::request, s.request, &KindTraits::makes_request, false);
    if (has(Field::handle2)) {
        check_ids("handle", s.handle2, n, tables.handles.size());
    }
    if (has(Field::file)) {
        check_ids("file", s.file, n, tables.files);
    }
    if (has(Field::file2)) {
        check_ids("file", s.file2, n, tables.files);
    }
    if (has(Field::peer)) {
        check_ids("task", s.peer, n, tables.tasks);
    }
    if (has(Field::text)) {
        check_ids("string", s.text, n, tables.strings);
    }

    // Plain columns.
    bool makes_handles = false;
    for (size_t k = 0; k < 256; ++k) {
        makes_handles |= d->counts[k] && traits[k].makes_handle;
    }
    const auto plain = [&](Field field, auto& out) {
        using Value = typename std::remove_reference_t<decltype(out)>::value_type;
        if (!has(field)) {
            return;
        }
        const size_t number = column_of(field);
        const bool repeats_rows = field == Field::flags && makes_handles;
        if (field != Field::fd2 && !repeats_rows && !(d->nonzero >> number & 1)) {
            d->fields &= ~field_bit(field);  // nothing but zeros: looks at the shared ones
            return;
        }
        out.resize(n);
        const Column& column = d->columns[number];
        const Value none = field == Field::fd2 ? -1 : 0;
        // What a kind has the same in all its ops goes by kind; the kinds whose values differ are few: each is spread
        // over its places in one go.
        std::array<Value, 256> values;
        for (size_t k = 0; k < 256; ++k) {
            values[k] = traits[k].has(field) ? static_cast<Value>(unzigzag(*column.base[k])) : none;
        }
        for (size_t i = 0; i < n; ++i) {
            out[i] = values[kind[i]];
        }
        if (!(d->varies >> number & 1)) {
            return;
        }
        for (size_t k = 0; k < 256; ++k) {
            if (!column.step[k]) {
                continue;
            }
            const uint64_t* from = column.base[k];
            const uint32_t *place = places + d->first_place[k], *end = place + d->counts[k];
            while (place != end) {
                out[*place++] = static_cast<Value>(unzigzag(*from++));
            }
        }
    };
    plain(Field::fd2, s.fd2);
    plain(Field::offset2, s.offset2);
    plain(Field::size, s.size);
    plain(Field::flags, s.flags);
    plain(Field::mode, s.mode);
    plain(Field::arg, s.arg);

    const int64_t* size_of = has(Field::size) ? s.size.data() : zeros.data();
    const int64_t* arg_of = has(Field::arg) ? s.arg.data() : zeros.data();
    const uint32_t* handle_of = has(Field::handle) ? s.handle.data() : no_ids.data();
    if (has(Field::size)) {
        for (size_t i = 0; i < n; ++i) {
            if (size_of[i] >= kLargeSize) {
                ++larges_seen[kind[i]];
            }
        }
    }
    if (larges_seen != large_counts) {
        throw Corrupt("the sizes of a block differ from its directory");
    }

    // Times, apart for large transfers.
    s.begin.resize(n);
    s.duration.resize(n);
    {
        const auto unit = static_cast<uint64_t>(unit_ns);
        std::array<uint32_t, 256> larges{};
        size_t i = 0;
        for (const RunInfo& run : runs) {
            auto end = static_cast<uint64_t>(run.begin);
            for (const size_t run_end = i + run.ops; i < run_end; ++i) {
                const uint8_t k = kind[i];
                const bool large = size_of[i] >= kLargeSize;
                const size_t at = large ? larges[k] : ordinal[i] - larges[k];
                larges[k] += large;
                const size_t column = large ? kThinkLarge : kThink;
                const uint64_t begin = end + d->columns[column].at(k, at) * unit;
                const uint64_t length = d->columns[column + 1].at(k, at) * unit;
                end = begin + length;
                s.begin[i] = static_cast<int64_t>(begin);
                s.duration[i] = static_cast<int64_t>(length);
            }
        }
    }

    if (makes_handles) {
        for (size_t i = 0; i < n; ++i) {
            if (traits[kind[i]].makes_handle && s.handle[i] != 0 && repeated_by_ops(tables.handles[s.handle[i]])) {
                s.flags[i] = wrapping_add(s.flags[i], tables.handles[s.handle[i]].flags);
            }
        }
    }

    // Result, offset and descriptor, which depend on what the instance did before.
    s.result.resize(n);
    s.offset.resize(n);
    s.fd.resize(n);
    {
        const Column &results = d->columns[kResult], &offsets = d->columns[column_of(Field::offset)],
                     &fds = d->columns[column_of(Field::fd)];
        scratch.instances.reset(handle_of, n);
        for (size_t i = 0; i < n; ++i) {
            const uint8_t k = kind[i];
            const KindTraits& t = traits[k];
            Instances::Entry& instance = scratch.instances.of(handle_of[i]);
            int64_t result = unzigzag(results.at(k, ordinal[i]));
            int64_t offset = unzigzag(offsets.at(k, ordinal[i]));
            switch (t.motion) {
                case Motion::plain:
                case Motion::open: break;
                case Motion::transfer:
                case Motion::explicit_transfer: {
                    int64_t& position = instance.position[t.motion == Motion::transfer ? 0
                                                          : size_of[i] >= kLargeSize   ? 2
                                                                                       : 1];
                    offset = wrapping_add(offset, position);
                    result = wrapping_add(result, size_of[i]);
                    position = wrapping_add(offset, std::max<int64_t>(result, 0));
                    break;
                }
                case Motion::seek:
                    result = wrapping_add(result, seek_result(arg_of[i], offset, instance.position[0]));
                    if (result >= 0) {
                        instance.position[0] = result;
                    }
                    break;
            }
            s.result[i] = result;
            s.offset[i] = offset;
            if (t.has(Field::fd)) {
                const auto fd = static_cast<int32_t>(wrapping_add(unzigzag(fds.at(k, ordinal[i])), instance.fd));
                s.fd[i] = fd;
                instance.fd = fd;
            } else {
                s.fd[i] = -1;
            }
            if (t.motion == Motion::open) {
                instance = {{}, static_cast<int32_t>(result)};
            }
        }
    }

    // Lists.
    s.list_values.clear();
    s.list_start.assign(2, 0);
    if (has(Field::list)) {
        s.list.assign(n, 0);
        const Column& column = d->columns[column_of(Field::list)];
        for (size_t i = 0; i < n; ++i) {
            if (!traits[kind[i]].has(Field::list)) {
                continue;
            }
            const uint64_t length = column.at(kind[i], ordinal[i]);
            if (length == 0) {
                continue;
            }
            if (length > list_values - list_total) {
                throw Corrupt("a list is longer than the lists of its block");
            }
            list_total += length;
            int64_t last = 0;
            for (uint64_t j = 0; j < length; ++j) {
                s.list_values.push_back(last = wrapping_add(last, lists.signed_varint()));
            }
            s.list[i] = static_cast<uint32_t>(s.list_start.size() - 1);
            s.list_start.push_back(static_cast<uint32_t>(s.list_values.size()));
        }
    }
    if (list_total != list_values || lists.left()) {
        throw Corrupt("the lists of a block differ from its directory");
    }

    // Edges.
    s.edges.clear();
    s.edge_of.clear();
    while (edges.left()) {
        const uint64_t op = edges.varint();
        if (op >= n || (!s.edge_of.empty() && op <= s.edge_of.back().first)) {
            throw Corrupt("edges out of order");
        }
        s.edge_of.emplace_back(static_cast<uint32_t>(op), static_cast<uint32_t>(s.edges.size()));
        const size_t of_op = edges.count(edge_count - s.edges.size());
        for (size_t j = 0; j < of_op; ++j) {
            Edge edge;
            const uint64_t task = edges.varint();
            const uint8_t edge_kind = edges.byte();
            edge.confidence = edges.byte();
            edge.op = edges.varint();
            if (task == 0 || task >= tables.tasks) {
                bad_id("task", task, tables.tasks);
            }
            if (edge_kind < 1 || edge_kind > static_cast<uint8_t>(EdgeKind::reaped)) {
                throw Corrupt("edge kind " + std::to_string(edge_kind) + " is not known");
            }
            edge.task = static_cast<TaskId>(task);
            edge.kind = static_cast<EdgeKind>(edge_kind);
            s.edges.push_back(edge);
        }
    }
    if (s.edges.size() != edge_count) {
        throw Corrupt("the edges of a block differ from its directory");
    }

    s.fields = d->fields;
    into.view(0, n);
}

}  // namespace reprise
