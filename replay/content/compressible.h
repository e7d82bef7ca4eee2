// SPDX-License-Identifier: MIT
// Content that zstd -1 and lz4 make as little of as of a recorded job's files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/oplog/contents.h"

namespace reprise {

inline constexpr uint32_t kCompressedBlock = 4096;  // bytes

/// Of each block of 4 KiB: its first bytes are noise, the others zeros, which both compressors make next to nothing of.
/// Noise of fewer than 256 values has no repeated strings for lz4, while zstd codes it by its entropy.
struct Compressible {
    uint32_t kept = kCompressedBlock;  // bytes of noise
    uint32_t values = 256;             // that these take, 1 to 256, about equally often

    bool operator==(const Compressible&) const = default;
};

/// Such that zstd -1 and lz4 make of it what they made of the sample; zstd alone where what lz4 made is not known.
/// Where no content of this kind does both, each is missed by the same factor.
Compressible compressible_as(const ContentSample& sample);

/// What zstd -1 makes of a byte of such noise, in bytes: the mean length of its Huffman code.
double coded_share(uint32_t values);

/// Bytes [offset, offset + out.size()) of a file of `size` bytes; what is made for beyond its end is arbitrary. A
/// function of the other arguments only. `offset` must be a multiple of kContentUnit.
void fill_compressible(uint64_t seed, uint64_t offset, uint64_t size, const Compressible& how,
                       std::span<std::byte> out);

}  // namespace reprise
