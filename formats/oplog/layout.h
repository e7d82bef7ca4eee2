// SPDX-License-Identifier: MIT
// Bytes around the sections of an op log, shared by writer and reader.
//
//   16 bytes   magic, version
//   sections   16-byte head (type, size, checksum), payload
//   ...        the last one is the index
//   16 bytes   offset of the index, end magic
#pragma once

#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "formats/oplog/oplog.h"
#include "formats/oplog/table_codec.h"
#include "formats/support/bytes.h"

namespace reprise {

inline constexpr std::array<uint8_t, 8> kMagic = {0x89, 'O', 'P', 'L', 'O', 'G', '\r', '\n'};
inline constexpr std::array<uint8_t, 8> kEndMagic = {'o', 'p', 'l', 'o', 'g', 'e', 'n', 'd'};

struct FileHead {
    std::array<uint8_t, 8> magic = kMagic;
    uint16_t version = kFormatVersion;
    uint16_t zero16 = 0;
    uint32_t zero32 = 0;
};
static_assert(sizeof(FileHead) == 16);

struct SectionHead {
    uint8_t type = 0;
    uint8_t zero8 = 0;
    uint16_t zero16 = 0;
    uint32_t size = 0;  // of the payload, bytes
    uint64_t checksum = 0;
};
static_assert(sizeof(SectionHead) == 16);

struct FileEnd {
    uint64_t index_offset = 0;
    std::array<uint8_t, 8> magic = kEndMagic;
};
static_assert(sizeof(FileEnd) == 16);

/// XXH3 of the payload, seeded with type and size so that the head is covered too.
inline uint64_t section_checksum(uint8_t type, ByteView payload) {
    return XXH3_64bits_withSeed(payload.data(), payload.size(), uint64_t{payload.size()} << 8 | type);
}

}  // namespace reprise
