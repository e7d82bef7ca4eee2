// SPDX-License-Identifier: MIT
// The ops of a section to bytes.
#include <algorithm>
#include <array>
#include <bit>

#include "formats/oplog/block_codec.h"
#include "formats/oplog/block_model.h"
#include "formats/oplog/block_storage.h"

namespace reprise {

using namespace block_model;

struct BlockCodec::Encoder::Impl {
    explicit Impl(int level) : compressor(level) {}

    Compressor compressor;
    Instances instances;
    std::vector<uint8_t> kinds;
    std::vector<uint64_t> residuals;  // per kind, per column of its schema, in op order
    std::array<std::array<uint64_t*, kColumns>, 256> cursor;
    Bytes planes, joint, own, directory, trial;

    Bytes classes, bits;

    void put(uint8_t kind, size_t column, uint64_t residual) { *cursor[kind][column]++ = residual; }
    void store_stream(const uint64_t* values, size_t count, bool noise);
    void store_hybrid(const uint64_t* values, size_t count);
    void store_plane(ByteView plane);
};

BlockCodec::Encoder::Encoder(int level) : impl_(std::make_unique<Impl>(level)) {}
BlockCodec::Encoder::~Encoder() = default;

// A plane compressed alone; its stored size in the directory is 0 for all zeros and the raw size for raw bytes.
void BlockCodec::Encoder::Impl::store_plane(ByteView plane) {
    if (std::all_of(plane.begin(), plane.end(), [](uint8_t b) { return b == 0; })) {
        put_varint(directory, 0);
        return;
    }
    const size_t at = own.size();
    size_t stored = compressor.compress(plane, own);
    trial.clear();
    // Noise compresses better without matches; runs and periods with them.
    if (stored * 8 > plane.size() && compressor.compress_noise(plane, trial) < stored) {
        own.resize(at);
        own.insert(own.end(), trial.begin(), trial.end());
        stored = trial.size();
    }
    if (stored >= plane.size()) {
        own.resize(at);
        own.insert(own.end(), plane.begin(), plane.end());
        stored = plane.size();
    }
    put_varint(directory, stored);
}

void BlockCodec::Encoder::Impl::store_hybrid(const uint64_t* values, size_t count) {
    // Times are rarely negative; where one is, all are counted from the least.
    const int64_t least = static_cast<int64_t>(*std::min_element(values, values + count, [](uint64_t a, uint64_t b) {
        return static_cast<int64_t>(a) < static_cast<int64_t>(b);
    }));
    const int64_t bias = std::min<int64_t>(least, 0);
    classes.resize(count);
    bits.clear();
    uint64_t held = 0;
    unsigned held_bits = 0;
    const auto push = [&](uint64_t low, unsigned n) {
        held |= low << held_bits;
        held_bits += n;
        while (held_bits >= 8) {
            bits.push_back(static_cast<uint8_t>(held));
            held >>= 8;
            held_bits -= 8;
        }
    };
    for (size_t i = 0; i < count; ++i) {
        const uint64_t value = values[i] - static_cast<uint64_t>(bias);
        const hybrid::Code code = hybrid::encode(value);
        classes[i] = code.cls;
        const uint64_t low = value & ((uint64_t{1} << code.bits) - 1);
        push(low & 0xffffffff, std::min<unsigned>(code.bits, 32));
        if (code.bits > 32) {
            push(low >> 32, code.bits - 32u);
        }
    }
    if (held_bits > 0) {
        bits.push_back(static_cast<uint8_t>(held));
    }
    if (count < kOwnFrame) {
        directory.push_back(kJointHybrid);
        joint.insert(joint.end(), classes.begin(), classes.end());
    } else {
        directory.push_back(kOwnHybrid);
        store_plane(classes);
    }
    put_signed(directory, bias);
    put_varint(directory, bits.size());
    own.insert(own.end(), bits.begin(), bits.end());
}

void BlockCodec::Encoder::Impl::store_stream(const uint64_t* values, size_t count, bool noise) {
    uint64_t any = 0, differs = 0;
    for (size_t i = 0; i < count; ++i) {
        any |= values[i];
        differs |= values[i] ^ values[0];
    }
    if (any == 0) {
        directory.push_back(kZero);
        return;
    }
    if (differs == 0) {
        directory.push_back(kConstant);
        put_varint(directory, values[0]);
        return;
    }
    if (noise) {
        return store_hybrid(values, count);
    }
    const unsigned width = byte_width(any);
    planes.resize(width * count);
    for (unsigned w = 0; w < width; ++w) {
        for (size_t i = 0; i < count; ++i) {
            planes[w * count + i] = static_cast<uint8_t>(values[i] >> (8 * w));
        }
    }
    if (count < kOwnFrame) {
        directory.push_back(static_cast<uint8_t>(kJointPlanes + width));
        joint.insert(joint.end(), planes.begin(), planes.end());
        return;
    }
    directory.push_back(static_cast<uint8_t>(kOwnPlanes + width));
    for (unsigned w = 0; w < width; ++w) {
        store_plane(ByteView(planes).subspan(w * count, count));
    }
}

void BlockCodec::Encoder::encode(std::span<const Run> runs, uint32_t unit_ns, std::span<const HandleRow> handle_rows,
                                 Bytes& out) {
    Impl& s = *impl_;
    const auto& traits = kind_traits();

    std::array<uint32_t, 256> counts{}, large_counts{};
    s.kinds.clear();
    size_t list_values = 0, edges = 0;
    for (const Run& run : runs) {
        for (const auto& chunk : run.chunks) {
            for (const Op& op : chunk) {
                const auto kind = static_cast<uint8_t>(op.kind);
                s.kinds.push_back(kind);
                ++counts[kind];
                large_counts[kind] += traits[kind].has(Field::size) && op.size >= kLargeSize;
                edges += op.edges.size();
                if (traits[kind].has(Field::list)) {
                    list_values += op.list.size();
                }
            }
        }
    }
    const auto stream_length = [&](size_t kind, size_t column) -> size_t {
        const size_t n_large = large_counts[kind];
        if (column < kThinkLarge) {
            return counts[kind] - n_large;
        }
        if (column < kResult) {
            return n_large;
        }
        if (column >= kFirstField && !(traits[kind].fields >> (column - kFirstField) & 1)) {
            return 0;
        }
        return counts[kind];
    };
    size_t total = 0;
    for (size_t kind = 0; kind < 256; ++kind) {
        if (counts[kind]) {
            total += counts[kind] * (kFirstField + static_cast<size_t>(std::popcount(traits[kind].fields)));
        }
    }
    s.residuals.resize(total);
    uint64_t* next = s.residuals.data();
    std::array<std::array<uint64_t*, kColumns>, 256> start;
    for (size_t kind = 0; kind < 256; ++kind) {
        if (!counts[kind]) {
            continue;
        }
        for (size_t column = 0; column < kColumns; ++column) {
            start[kind][column] = s.cursor[kind][column] = next;
            next += stream_length(kind, column);
        }
    }

    s.instances.reset();
    LastIds handles, handles2, files, files2, maps, peers, texts, requests;
    const auto unit = static_cast<int64_t>(unit_ns);
    const auto floor_units = [unit](int64_t ns) { return ns >= 0 ? ns / unit : -((-(ns + 1)) / unit) - 1; };
    int64_t previous_end = 0;
    Bytes lists, edge_bytes;
    size_t number = 0;
    const auto encode_op = [&](const Op& op, size_t i) {
        const uint8_t k = s.kinds[i];
        const KindTraits& t = traits[k];
        const int64_t begin = floor_units(op.begin);
        const int64_t duration = wrapping_sub(floor_units(wrapping_add(op.begin, op.duration)), begin);
        // Not zigzagged: see the bias of hybrid streams.
        const bool large = t.has(Field::size) && op.size >= kLargeSize;
        s.put(k, large ? kThinkLarge : kThink, static_cast<uint64_t>(wrapping_sub(begin, previous_end)));
        s.put(k, large ? kDurationLarge : kDuration, static_cast<uint64_t>(duration));
        previous_end = wrapping_add(begin, duration);

        const auto put_id = [&](Field field, uint32_t id, LastIds& last, bool makes) {
            if (!t.has(field)) {
                return;
            }
            s.put(k, column_of(field), id_code(id, last.predict(makes)));
            last.see(id, makes);
        };
        put_id(Field::handle, op.handle, handles, t.makes_handle);
        put_id(Field::handle2, op.handle2, handles2, t.makes_handle);
        // An op that makes an instance repeats what the instance's row says.
        const HandleRow* made = t.makes_handle && op.handle != 0 && op.handle < handle_rows.size() &&
                                        repeated_by_ops(handle_rows[op.handle])
                                    ? &handle_rows[op.handle]
                                    : nullptr;
        if (made) {
            files.used = made->file;
        }
        put_id(Field::file, op.file, files, false);
        put_id(Field::file2, op.file2, files2, false);
        put_id(Field::map, op.map, maps, t.makes_map);
        put_id(Field::peer, op.peer, peers, false);
        put_id(Field::text, op.text, texts, false);
        put_id(Field::request, op.request, requests, t.makes_request);

        Instances::Entry& instance = s.instances.of(t.has(Field::handle) ? op.handle : 0);
        int64_t predicted_offset = 0, predicted_result = 0;
        switch (t.motion) {
            case Motion::plain:
            case Motion::open: break;
            case Motion::transfer:
            case Motion::explicit_transfer: {
                int64_t& position = instance.position[t.motion == Motion::transfer ? 0 : large ? 2 : 1];
                predicted_offset = position;
                predicted_result = op.size;
                position = wrapping_add(op.offset, std::max<int64_t>(op.result, 0));
                break;
            }
            case Motion::seek:
                predicted_result = seek_result(op.arg, op.offset, instance.position[0]);
                if (op.result >= 0) {
                    instance.position[0] = op.result;
                }
                break;
        }
        s.put(k, kResult, zigzag(wrapping_sub(op.result, predicted_result)));
        if (t.has(Field::offset)) {
            s.put(k, column_of(Field::offset), zigzag(wrapping_sub(op.offset, predicted_offset)));
        }
        if (t.has(Field::fd)) {
            s.put(k, column_of(Field::fd), zigzag(int64_t{op.fd} - instance.fd));
            instance.fd = op.fd;
        }
        if (t.motion == Motion::open) {
            instance = {{}, static_cast<int32_t>(op.result)};
        }

        const auto put_plain = [&](Field field, int64_t value) {
            if (t.has(field)) {
                s.put(k, column_of(field), zigzag(value));
            }
        };
        put_plain(Field::fd2, op.fd2);
        put_plain(Field::offset2, op.offset2);
        put_plain(Field::size, op.size);
        put_plain(Field::flags, made ? wrapping_sub(op.flags, made->flags) : op.flags);
        put_plain(Field::mode, op.mode);
        put_plain(Field::arg, op.arg);
        if (t.has(Field::list)) {
            s.put(k, column_of(Field::list), op.list.size());
            int64_t last = 0;
            for (const int64_t value : op.list) {
                put_signed(lists, wrapping_sub(value, last));
                last = value;
            }
        }
        if (!op.edges.empty()) {
            put_varint(edge_bytes, i);
            put_varint(edge_bytes, op.edges.size());
            for (const Edge& edge : op.edges) {
                put_varint(edge_bytes, edge.task);
                edge_bytes.push_back(static_cast<uint8_t>(edge.kind));
                edge_bytes.push_back(edge.confidence);
                put_varint(edge_bytes, edge.op);
            }
        }
    };
    for (const Run& run : runs) {
        previous_end = floor_units(run.chunks.front().front().begin);
        for (const auto& chunk : run.chunks) {
            for (const Op& op : chunk) {
                encode_op(op, number++);
            }
        }
    }

    // Directory: per kind its id, its count and how each of its columns is stored.
    s.directory.clear();
    s.joint.clear();
    s.own.clear();
    put_varint(s.directory,
               static_cast<uint64_t>(std::count_if(counts.begin(), counts.end(), [](uint32_t c) { return c > 0; })));
    for (size_t kind = 0; kind < 256; ++kind) {
        if (!counts[kind]) {
            continue;
        }
        s.directory.push_back(static_cast<uint8_t>(kind));
        put_varint(s.directory, counts[kind]);
        if (traits[kind].has(Field::size)) {
            put_varint(s.directory, large_counts[kind]);
        }
        for (size_t column = 0; column < kColumns; ++column) {
            if (const size_t length = stream_length(kind, column)) {
                s.store_stream(start[kind][column], length, column < kResult);
            }
        }
    }
    put_varint(s.directory, list_values);
    put_varint(s.directory, lists.size());
    put_varint(s.directory, edges);
    put_varint(s.directory, edge_bytes.size());
    s.joint.insert(s.joint.end(), lists.begin(), lists.end());
    s.joint.insert(s.joint.end(), edge_bytes.begin(), edge_bytes.end());

    put_blob(out, s.directory, s.compressor);
    put_blob(out, s.kinds, s.compressor);
    put_blob(out, s.joint, s.compressor);
    out.insert(out.end(), s.own.begin(), s.own.end());
}

}  // namespace reprise
