// SPDX-License-Identifier: MIT
#include "replay/content/compressible.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <queue>
#include <vector>

#include "replay/content/content.h"

namespace reprise {
namespace {

/// Below that many, lz4 finds strings of four that repeat by chance.
constexpr uint32_t kFewestValues = 10;
/// What a block costs besides its noise, where it has zeros: the lengths of both, and a match. Bytes.
constexpr double kLz4Block = 20, kZstdBlock = 4;

/// Bytes of a byte of noise that is scaled to that many values (scale_values()).
double huffman_share(uint32_t values) {
    std::vector<uint32_t> counts(values);
    for (uint32_t byte = 0; byte < 256; ++byte) {
        ++counts[byte * values >> 8];
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> nodes(std::greater<>(), std::move(counts));
    uint32_t bits = 0;  // of 256 bytes
    while (nodes.size() > 1) {
        uint32_t sum = nodes.top();
        nodes.pop();
        sum += nodes.top();
        nodes.pop();
        nodes.push(sum);
        bits += sum;
    }
    return bits / (256.0 * 8.0);
}

uint32_t values_for(double share) {
    uint32_t best = 256;
    for (uint32_t values = kFewestValues; values < 256; ++values) {
        if (std::abs(coded_share(values) - share) < std::abs(coded_share(best) - share)) {
            best = values;
        }
    }
    return best;
}

/// Each byte b becomes b * values / 256; in words of eight, each half of whose bytes are multiplied at once.
void scale_values(std::span<std::byte> out, uint32_t values) {
    constexpr uint64_t kEven = 0x00ff00ff00ff00ffULL;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= out.size(); i += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, out.data() + i, sizeof word);
        word = (((word & kEven) * values >> 8) & kEven) | ((((word >> 8) & kEven) * values) & ~kEven);
        std::memcpy(out.data() + i, &word, sizeof word);
    }
    for (; i < out.size(); ++i) {
        out[i] = static_cast<std::byte>(static_cast<uint32_t>(out[i]) * values >> 8);
    }
}

}  // namespace

double coded_share(uint32_t values) {
    static const std::array<double, 257> shares = [] {
        std::array<double, 257> all{};
        for (uint32_t each = 1; each < all.size(); ++each) {
            all[each] = huffman_share(each);
        }
        return all;
    }();
    return shares[std::clamp<uint32_t>(values, 1, 256)];
}

Compressible compressible_as(const ContentSample& sample) {
    if (sample.lz4 == 0 || sample.bytes == 0) {
        return {kCompressedBlock * sample.permille() / 1000, 256};
    }
    const auto of_block = [&](uint64_t compressed) {
        return kCompressedBlock * std::min(static_cast<double>(compressed) / static_cast<double>(sample.bytes), 1.0);
    };
    const double lz4 = of_block(sample.lz4);
    double kept = lz4 > kCompressedBlock - kLz4Block ? kCompressedBlock : std::max(lz4 - kLz4Block, 0.0);
    const double zstd = std::max(of_block(sample.compressed) - (kept < kCompressedBlock ? kZstdBlock : 0), 0.0);
    if (kept <= 0 || zstd <= 0) {
        return {static_cast<uint32_t>(zstd), 256};
    }
    const double share = std::clamp(zstd / kept, coded_share(kFewestValues), 1.0);
    kept = std::min<double>(std::sqrt(kept * (zstd / share)), kCompressedBlock);
    return {static_cast<uint32_t>(std::lround(kept)), values_for(share)};
}

void fill_compressible(uint64_t seed, uint64_t offset, uint64_t size, const Compressible& how,
                       std::span<std::byte> out) {
    fill_random(seed, offset, out);
    for (size_t at = 0; at < out.size(); at += kCompressedBlock) {
        const auto block = out.subspan(at, std::min<size_t>(kCompressedBlock, out.size() - at));
        const uint64_t left = size - std::min(size, offset + at);  // the last block of a file is a smaller one
        const uint64_t kept = left < kCompressedBlock ? left * how.kept / kCompressedBlock : how.kept;
        const auto noise = block.first(std::min<size_t>(kept, block.size()));
        if (how.values < 256) {
            scale_values(noise, how.values);
        }
        std::fill(block.begin() + static_cast<ptrdiff_t>(noise.size()), block.end(), std::byte{0});
    }
}

}  // namespace reprise
