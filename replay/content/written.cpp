// SPDX-License-Identifier: MIT
#include "replay/content/written.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace reprise {
namespace {

/// The finalizer of MurmurHash3 (Appleby, public domain).
uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

constexpr size_t kBlockWords = 512;

const std::array<uint64_t, kBlockWords>& noise() {
    static const std::array<uint64_t, kBlockWords> words = [] {
        std::array<uint64_t, kBlockWords> made{};
        for (size_t i = 0; i < made.size(); ++i) {
            made[i] = mixed(i + 1);
        }
        return made;
    }();
    return words;
}

}  // namespace

uint64_t write_seed(TaskId task, uint64_t op) { return mixed(mixed(uint64_t{task} + 1) ^ op); }

void fill_written(uint64_t seed, uint64_t offset, std::span<std::byte> out) {
    constexpr size_t kWord = sizeof(uint64_t);
    while (!out.empty()) {
        const uint64_t word = mixed(seed + offset / kWord);
        const size_t skip = offset % kWord, bytes = std::min(kWord - skip, out.size());
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(&word) + skip, bytes);
        out = out.subspan(bytes);
        offset += bytes;
    }
}

void fill_noise(uint64_t key, std::span<std::byte> out) {
    const std::array<uint64_t, kBlockWords>& words = noise();
    while (!out.empty()) {
        const uint64_t turn = mixed(key++);
        std::array<uint64_t, kBlockWords> block;
        for (size_t i = 0; i < block.size(); ++i) {
            block[i] = words[i] ^ turn;
        }
        const size_t bytes = std::min(sizeof block, out.size());
        std::memcpy(out.data(), block.data(), bytes);
        out = out.subspan(bytes);
    }
}

}  // namespace reprise
