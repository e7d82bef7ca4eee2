// SPDX-License-Identifier: MIT
// What encoder and decoder of blocks must agree on: columns, how a stream is stored, and what is predicted. Private to
// formats/oplog/block_*.cpp; formats/FORMAT.md explains it by an example.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"

namespace reprise::block_model {

// Columns of a block: those that every op has, then one per field. Residuals of a column are kept apart per kind of op,
// as a lseek's duration says nothing about a read's. Times of large transfers are kept apart from the rest, too.
inline constexpr size_t kThink = 0, kDuration = 1, kThinkLarge = 2, kDurationLarge = 3, kResult = 4, kFirstField = 5;
inline constexpr int64_t kLargeSize = 64 << 10;
inline constexpr size_t kColumns = kFirstField + kFieldCount;
constexpr size_t column_of(Field field) { return kFirstField + static_cast<size_t>(field); }

// Streams of at least this many values are compressed alone, so that each has its own statistics.
inline constexpr size_t kOwnFrame = 1024;

// How a column's stream of one kind is stored.
inline constexpr uint8_t kZero = 0;          // all residuals are 0
inline constexpr uint8_t kConstant = 1;      // all are the varint that follows
inline constexpr uint8_t kJointHybrid = 2;   // class bytes inside the joint part, then bits (see Hybrid)
inline constexpr uint8_t kOwnHybrid = 3;     // class bytes behind their stored size, then bits
inline constexpr uint8_t kJointPlanes = 16;  // + width: byte planes inside the joint part
inline constexpr uint8_t kOwnPlanes = 32;    // + width: byte planes, each behind its stored size

// Times are noise of a known size: a byte of class, which zstd's entropy coder makes small, and the bits below it as
// they are. Values below 16 are their own class; above, a class is the position of the highest bit and the two bits
// after it. (The hybrid integers of JPEG XL, ISO/IEC 18181-1 C.3.3, with split exponent 4 and two more bits.)
namespace hybrid {
inline constexpr unsigned kExact = 16;

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
inline constexpr Tables kTables = make_tables();
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

inline const std::array<KindTraits, 256>& kind_traits() {
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

inline unsigned byte_width(uint64_t value) { return (static_cast<unsigned>(std::bit_width(value)) + 7) / 8; }

// What columns look at that no op of a block has.
// Not const, so that they lie in .bss. Beyond kBlockOps no view ever reaches.
inline std::array<int64_t, kBlockOps> zeros;
inline std::array<uint32_t, kBlockOps> no_ids;
inline const std::array<int32_t, kBlockOps>& no_descriptors() {
    static const auto made = [] {
        std::array<int32_t, kBlockOps> all;
        all.fill(-1);
        return all;
    }();
    return made;
}

}  // namespace reprise::block_model
