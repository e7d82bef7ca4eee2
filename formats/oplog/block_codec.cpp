// SPDX-License-Identifier: MIT
#include "formats/oplog/block_codec.h"

#include <algorithm>
#include <array>
#include <bit>

#include "formats/oplog/block_storage.h"

namespace reprise {
namespace {

// Columns of a block: those that every op has, then one per field. Residuals of a column are kept apart per kind of op,
// as a lseek's duration says nothing about a read's. Times of large transfers are kept apart from the rest, too.
constexpr size_t kThink = 0, kDuration = 1, kThinkLarge = 2, kDurationLarge = 3, kResult = 4, kFirstField = 5;
constexpr int64_t kLargeSize = 64 << 10;
constexpr size_t kColumns = kFirstField + kFieldCount;
constexpr size_t column_of(Field field) { return kFirstField + static_cast<size_t>(field); }

// Streams of at least this many values are compressed alone, so that each has its own statistics.
constexpr size_t kOwnFrame = 1024;

// How a column's stream of one kind is stored.
constexpr uint8_t kZero = 0;          // all residuals are 0
constexpr uint8_t kConstant = 1;      // all are the varint that follows
constexpr uint8_t kJointHybrid = 2;   // class bytes inside the joint part, then bits (see Hybrid)
constexpr uint8_t kOwnHybrid = 3;     // class bytes behind their stored size, then bits
constexpr uint8_t kJointPlanes = 16;  // + width: byte planes inside the joint part
constexpr uint8_t kOwnPlanes = 32;    // + width: byte planes, each behind its stored size

// Times are noise of a known size: a byte of class, which zstd's entropy coder makes small, and the bits below it as
// they are. Values below 16 are their own class; above, a class is the position of the highest bit and the two bits
// after it. (The hybrid integers of JPEG XL, ISO/IEC 18181-1 C.3.3, with split exponent 4 and two more bits.)
namespace hybrid {
constexpr unsigned kExact = 16;

struct Code {
    uint8_t cls;
    uint8_t bits;  // below the class
};

constexpr Code encode(uint64_t value) {
    if (value < kExact) {
        return {static_cast<uint8_t>(value), 0};
    }
    const auto top = static_cast<unsigned>(std::bit_width(value)) - 1;
    return {static_cast<uint8_t>(kExact + ((top - 4) << 2 | (value >> (top - 2) & 3))), static_cast<uint8_t>(top - 2)};
}

struct Tables {
    std::array<uint64_t, 256> base;
    std::array<uint8_t, 256> bits;
};
constexpr Tables make_tables() {
    Tables t{};
    for (unsigned c = 0; c < 256; ++c) {
        if (c < kExact) {
            t.base[c] = c;
            continue;
        }
        const unsigned top = 4 + ((c - kExact) >> 2);
        t.base[c] = (uint64_t{4} | ((c - kExact) & 3)) << (top - 2);
        t.bits[c] = static_cast<uint8_t>(top - 2);
    }
    return t;
}
constexpr Tables kTables = make_tables();
}  // namespace hybrid

// How offset and result of a kind are predicted.
enum class Motion : uint8_t {
    plain,              // offset and result as they are
    transfer,           // offset: the instance's position; result: the size; moves the position to the end
    explicit_transfer,  // the same with the end of the last transfer of this size class
    seek,               // result: whence applied to the position
    open,               // result becomes the instance's descriptor
};

constexpr uint32_t field_bit(Field field) { return 1u << static_cast<unsigned>(field); }

struct KindTraits {
    uint32_t fields = 0;
    Motion motion = Motion::plain;
    bool makes_handle = false, makes_map = false, makes_request = false;

    bool has(Field field) const { return fields & field_bit(field); }
};

const std::array<KindTraits, 256>& kind_traits() {
    static const auto table = [] {
        std::array<KindTraits, 256> made{};
        for (const OpInfo& op : all_ops()) {
            KindTraits& row = made[static_cast<size_t>(op.kind)];
            row.fields = op.fields;
            row.makes_handle = op.is(Trait::makes_handle);
            row.makes_map = op.kind == OpKind::mmap;
            row.makes_request = op.is(Trait::submits);
            const bool positioned = op.has(Field::offset) && op.has(Field::size) && op.has(Field::handle);
            if ((op.is(Trait::reads) || op.is(Trait::writes)) && positioned) {
                row.motion = op.is(Trait::moves) ? Motion::transfer : Motion::explicit_transfer;
            }
            if (op.kind == OpKind::send || op.kind == OpKind::receive) {
                row.motion = Motion::transfer;
            }
            if (op.kind == OpKind::lseek) {
                row.motion = Motion::seek;
            }
            if (op.kind == OpKind::open) {
                row.motion = Motion::open;
            }
        }
        return made;
    }();
    return table;
}

constexpr int64_t seek_result(int64_t whence, int64_t offset, int64_t position) {
    return whence == 0 ? offset : wrapping_add(position, offset);
}

// Ids are stored as 0 for none, else 1 + the signed distance from the prediction.
constexpr uint64_t id_code(uint32_t id, uint32_t predicted) {
    return id == 0 ? 0 : 1 + zigzag(static_cast<int64_t>(id) - static_cast<int64_t>(predicted));
}
constexpr uint32_t id_from(uint64_t code, uint32_t predicted) {
    return code == 0
               ? 0
               : static_cast<uint32_t>(static_cast<uint64_t>(predicted) + static_cast<uint64_t>(unzigzag(code - 1)));
}

// Running values of the id columns.
struct LastIds {
    uint32_t used = 0, made = 0;

    uint32_t predict(bool makes) const { return makes ? made + 1 : used; }
    void see(uint32_t id, bool makes) {
        if (id == 0) {
            return;
        }
        used = id;
        if (makes) {
            made = id;
        }
    }
};

unsigned byte_width(uint64_t value) { return (static_cast<unsigned>(std::bit_width(value)) + 7) / 8; }

}  // namespace

// ---------------------------------------------------------------------------------------------------------- encoder

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

// ---------------------------------------------------------------------------------------------------------- decoder

OpBlock::OpBlock() : storage_(std::make_shared<Storage>()), scratch_(std::make_unique<Scratch>()) {}
OpBlock::~OpBlock() = default;
OpBlock::OpBlock(OpBlock&&) noexcept = default;
OpBlock& OpBlock::operator=(OpBlock&&) noexcept = default;

std::span<const int64_t> OpBlock::list_of(size_t i) const {
    const uint32_t at = list[i];
    if (at == 0) {
        return {};
    }
    const auto& start = storage_->list_start;
    return std::span(storage_->list_values).subspan(start[at], start[at + 1] - start[at]);
}

bool OpBlock::has_edges() const { return !storage_->edges.empty(); }

std::span<const Edge> OpBlock::edges_of(size_t i) const {
    const auto& index = storage_->edge_of;
    if (index.empty()) {
        return {};
    }
    i += start_;
    const auto found =
        std::lower_bound(index.begin(), index.end(), i, [](const auto& row, size_t op) { return row.first < op; });
    if (found == index.end() || found->first != i) {
        return {};
    }
    const size_t from = found->second;
    const size_t to = found + 1 == index.end() ? storage_->edges.size() : (found + 1)->second;
    return std::span(storage_->edges).subspan(from, to - from);
}

Op OpBlock::row(size_t i) const {
    Op op;
    op.kind = static_cast<OpKind>(kind[i]);
    op.begin = begin[i];
    op.duration = duration[i];
    op.result = result[i];
    op.handle = handle[i];
    op.fd = fd[i];
    op.handle2 = handle2[i];
    op.fd2 = fd2[i];
    op.file = file[i];
    op.file2 = file2[i];
    op.offset = offset[i];
    op.offset2 = offset2[i];
    op.size = size[i];
    op.flags = flags[i];
    op.mode = mode[i];
    op.arg = arg[i];
    op.map = map[i];
    op.peer = peer[i];
    op.text = text[i];
    op.request = request[i];
    op.list = list_of(i);
    op.edges = edges_of(i);
    return op;
}

namespace {

// Not const, so that they lie in .bss. Beyond kBlockOps no view ever reaches.
std::array<int64_t, kBlockOps> zeros;
std::array<uint32_t, kBlockOps> no_ids;
const std::array<int32_t, kBlockOps>& no_descriptors() {
    static const auto made = [] {
        std::array<int32_t, kBlockOps> all;
        all.fill(-1);
        return all;
    }();
    return made;
}

}  // namespace

void OpBlock::view(size_t from, size_t n) {
    Storage& s = *storage_;
    start_ = from;
    count_ = n;
    kind = s.kind.data() + from;
    begin = s.begin.data() + from;
    duration = s.duration.data() + from;
    result = s.result.data() + from;
    const auto set = [&](Field field, auto*& column, const auto& values, auto* absent) {
        column = s.fields & field_bit(field) ? values.data() + from : absent;
    };
    set(Field::handle, handle, s.handle, no_ids.data());
    set(Field::fd, fd, s.fd, no_descriptors().data());
    set(Field::handle2, handle2, s.handle2, no_ids.data());
    set(Field::fd2, fd2, s.fd2, no_descriptors().data());
    set(Field::file, file, s.file, no_ids.data());
    set(Field::file2, file2, s.file2, no_ids.data());
    set(Field::offset, offset, s.offset, zeros.data());
    set(Field::offset2, offset2, s.offset2, zeros.data());
    set(Field::size, size, s.size, zeros.data());
    set(Field::flags, flags, s.flags, zeros.data());
    set(Field::mode, mode, s.mode, zeros.data());
    set(Field::arg, arg, s.arg, zeros.data());
    set(Field::map, map, s.map, no_ids.data());
    set(Field::peer, peer, s.peer, no_ids.data());
    set(Field::text, text, s.text, no_ids.data());
    set(Field::request, request, s.request, no_ids.data());
    set(Field::list, list, s.list, no_ids.data());
}

void OpBlock::start_rows(TaskId of, uint64_t number, size_t rows) {
    if (rows > kBlockOps) {
        throw std::logic_error("more rows than a block holds");
    }
    task = of;
    first = number;
    rows_ = 0;
    if (storage_->shared) {
        storage_ = std::make_shared<Storage>();
    }
    Storage& s = *storage_;
    s.blocks.clear();
    s.fields = 0;
    s.kind.resize(rows);
    s.begin.resize(rows);
    s.duration.resize(rows);
    s.result.resize(rows);
#define FIELD(name, type, meaning) s.name.resize(rows);
#include "formats/oplog/ops.def"
    s.list_values.clear();
    s.list_start.assign(2, 0);
    s.edges.clear();
    s.edge_of.clear();
    view(0, rows);
}

void OpBlock::add_row(const Op& op) {
    if (rows_ == count_) {
        throw std::logic_error("more rows than were to come");
    }
    Storage& s = *storage_;
    const size_t i = rows_++;
    const OpInfo& row = info(op.kind);
    const Op none;
    s.fields |= row.fields;
    s.kind[i] = static_cast<uint8_t>(op.kind);
    s.begin[i] = op.begin;
    s.duration[i] = op.duration;
    s.result[i] = op.result;
    const auto set = [&](Field field, auto& column, const auto& value, const auto& otherwise) {
        column[i] = row.has(field) ? value : otherwise;
    };
    set(Field::handle, s.handle, op.handle, none.handle);
    set(Field::fd, s.fd, op.fd, none.fd);
    set(Field::handle2, s.handle2, op.handle2, none.handle2);
    set(Field::fd2, s.fd2, op.fd2, none.fd2);
    set(Field::file, s.file, op.file, none.file);
    set(Field::file2, s.file2, op.file2, none.file2);
    set(Field::offset, s.offset, op.offset, none.offset);
    set(Field::offset2, s.offset2, op.offset2, none.offset2);
    set(Field::size, s.size, op.size, none.size);
    set(Field::flags, s.flags, op.flags, none.flags);
    set(Field::mode, s.mode, op.mode, none.mode);
    set(Field::arg, s.arg, op.arg, none.arg);
    set(Field::map, s.map, op.map, none.map);
    set(Field::peer, s.peer, op.peer, none.peer);
    set(Field::text, s.text, op.text, none.text);
    set(Field::request, s.request, op.request, none.request);
    s.list[i] = 0;
    if (row.has(Field::list) && !op.list.empty()) {
        s.list_values.insert(s.list_values.end(), op.list.begin(), op.list.end());
        s.list[i] = static_cast<uint32_t>(s.list_start.size() - 1);
        s.list_start.push_back(static_cast<uint32_t>(s.list_values.size()));
    }
    if (!op.edges.empty()) {
        s.edge_of.emplace_back(static_cast<uint32_t>(i), static_cast<uint32_t>(s.edges.size()));
        s.edges.insert(s.edges.end(), op.edges.begin(), op.edges.end());
    }
    if (rows_ == count_) {
        view(0, count_);  // with the columns that are filled now
    }
}

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
    d->counts.fill(0);
    d->fields = 0;
    d->nonzero = 0;
    d->varies = 0;
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
        scratch.instances.reset();
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
            if (edge_kind < 1 || edge_kind > static_cast<uint8_t>(EdgeKind::queue)) {
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
