// SPDX-License-Identifier: MIT
// The generator of incompressible content.
//
// xoshiro256+ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 2021), eight generators
// side by side so that one step fills a cache line; each unit of 64 KiB is seeded by splitmix64 from (file, unit).
// tests/bench/bench_prepare.cpp shows the rate: it must stay far above any device's.
#include "replay/content/content.h"

#include <algorithm>
#include <cstring>

namespace reprise {

namespace {

constexpr size_t kLanes = 8;
using Lanes [[gnu::vector_size(kLanes * sizeof(uint64_t))]] = uint64_t;

uint64_t splitmix(uint64_t& state) {
    state += 0x9e3779b97f4a7c15ULL;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

struct State {
    uint64_t words[4][kLanes];
};

State seed_unit(uint64_t seed, uint64_t unit) {
    // Two rounds keep (seed, unit) and (seed + 1, unit - 1) apart.
    uint64_t mixed = unit;
    uint64_t state = seed ^ splitmix(mixed);
    State out;
    for (auto& word : out.words) {
        for (uint64_t& lane : word) {
            lane = splitmix(state);
        }
    }
    return out;
}

// The one body, compiled for each instruction set below; what it writes is the same for all.
[[gnu::always_inline]] inline void fill_lines(State& state, std::byte* out, size_t lines) {
    Lanes a, b, c, d;
    std::memcpy(&a, state.words[0], sizeof a);
    std::memcpy(&b, state.words[1], sizeof b);
    std::memcpy(&c, state.words[2], sizeof c);
    std::memcpy(&d, state.words[3], sizeof d);
    for (size_t i = 0; i < lines; ++i) {
        const Lanes result = a + d;
        std::memcpy(out + i * sizeof result, &result, sizeof result);
        const Lanes t = b << 17;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        c ^= t;
        d = (d << 45) | (d >> 19);
    }
    std::memcpy(state.words[0], &a, sizeof a);
    std::memcpy(state.words[1], &b, sizeof b);
    std::memcpy(state.words[2], &c, sizeof c);
    std::memcpy(state.words[3], &d, sizeof d);
}

void fill_plain(State& state, std::byte* out, size_t lines) { fill_lines(state, out, lines); }

using Fill = void (*)(State&, std::byte*, size_t);

#if defined(__x86_64__)
[[gnu::target("avx2")]] void fill_avx2(State& state, std::byte* out, size_t lines) { fill_lines(state, out, lines); }
[[gnu::target("avx512f")]] void fill_avx512(State& state, std::byte* out, size_t lines) {
    fill_lines(state, out, lines);
}

Fill best_fill() {
    if (__builtin_cpu_supports("avx512f")) {
        return fill_avx512;
    }
    if (__builtin_cpu_supports("avx2")) {
        return fill_avx2;
    }
    return fill_plain;
}
#else
Fill best_fill() { return fill_plain; }
#endif

}  // namespace

uint64_t content_seed(std::string_view relative_path) {
    uint64_t state = relative_path.size();
    uint64_t seed = splitmix(state);
    while (!relative_path.empty()) {
        const size_t n = std::min<size_t>(relative_path.size(), 8);
        uint64_t word = 0;
        std::memcpy(&word, relative_path.data(), n);
        relative_path.remove_prefix(n);
        state = seed ^ word;
        seed = splitmix(state);
    }
    return seed;
}

void fill_random(uint64_t seed, uint64_t offset, std::span<std::byte> out) {
    static const Fill fill = best_fill();
    constexpr size_t kLine = kLanes * sizeof(uint64_t);
    for (uint64_t unit = offset / kContentUnit; !out.empty(); ++unit) {
        State state = seed_unit(seed, unit);
        const auto part = out.first(std::min(out.size(), kContentUnit));
        const size_t lines = part.size() / kLine;
        fill(state, part.data(), lines);
        if (const size_t rest = part.size() % kLine; rest > 0) {
            std::byte line[kLine];
            fill(state, line, 1);
            std::memcpy(part.data() + lines * kLine, line, rest);
        }
        out = out.subspan(part.size());
    }
}

}  // namespace reprise
