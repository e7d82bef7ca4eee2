// SPDX-License-Identifier: MIT
// Content that zstd -1 and lz4 make as little of as they are said to.
#include "replay/content/compressible.h"

#include <doctest/doctest.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "replay/content/content.h"

namespace reprise::test {
namespace {

using Content = std::vector<std::byte>;

Content made(const Compressible& how, size_t size, uint64_t seed = 7) {
    Content bytes(size);
    fill_compressible(seed, 0, size, how, bytes);
    return bytes;
}

/// What a compressor makes of each block for itself, no block larger than it was; of all.
struct Shares {
    double zstd = 0, lz4 = 0;
};
Shares shares_of(const Content& bytes, size_t block) {
    std::vector<char> packed(ZSTD_compressBound(block) +
                             static_cast<size_t>(LZ4_compressBound(static_cast<int>(block))));
    Shares sum;
    for (size_t at = 0; at < bytes.size(); at += block) {
        const size_t size = std::min(block, bytes.size() - at);
        const size_t zstd = ZSTD_compress(packed.data(), packed.size(), bytes.data() + at, size, 1);
        const int lz4 = LZ4_compress_default(reinterpret_cast<const char*>(bytes.data() + at), packed.data(),
                                             static_cast<int>(size), static_cast<int>(packed.size()));
        sum.zstd += static_cast<double>(std::min(zstd, size));
        sum.lz4 += static_cast<double>(std::min(static_cast<size_t>(lz4), size));
    }
    sum.zstd /= static_cast<double>(bytes.size());
    sum.lz4 /= static_cast<double>(bytes.size());
    return sum;
}

}  // namespace

TEST_CASE("compressible content: zstd -1 and lz4 make of it what they made of the sample") {
    struct Case {
        double zstd, lz4;
    };
    // Measured: half zeros, numbers, prose, CSV, JSON, machine code, licenses, float32, hexadecimal, noise.
    for (const Case& want : {Case{0.402, 0.404},
                             {0.417, 0.641},
                             {0.416, 0.666},
                             {0.332, 0.510},
                             {0.241, 0.428},
                             {0.458, 0.574},
                             {0.181, 0.298},
                             {0.925, 1.000},
                             {0.501, 1.000},
                             {1.000, 1.000},
                             {0.050, 0.090},
                             {0.020, 0.025}}) {
        const ContentSample sample{1'000'000, static_cast<uint64_t>(1e6 * want.zstd),
                                   static_cast<uint64_t>(1e6 * want.lz4)};
        const Compressible how = compressible_as(sample);
        for (const size_t size : {size_t{1} << 20, size_t{1'288'895}, size_t{100'000}, size_t{20'000}}) {
            const Shares got = shares_of(made(how, size), size);
            INFO("zstd " << want.zstd << " lz4 " << want.lz4 << " of " << size << ": " << got.zstd << ", " << got.lz4);
            CHECK(got.zstd == doctest::Approx(want.zstd).epsilon(0.05));
            CHECK(got.lz4 == doctest::Approx(want.lz4).epsilon(0.05));
        }
        // As file systems compress.
        const Shares got = shares_of(made(how, 1 << 20), 128 << 10);
        CHECK(got.zstd == doctest::Approx(want.zstd).epsilon(0.05));
        CHECK(got.lz4 == doctest::Approx(want.lz4).epsilon(0.05));
    }
}

TEST_CASE("compressible content: what cannot be reached is missed by both alike; the ends") {
    // lz4 does better than zstd -1, as with short strings that repeat.
    const Shares better = shares_of(made(compressible_as({1000, 600, 400}), 1 << 20), 1 << 20);
    CHECK(better.zstd == doctest::Approx(0.49).epsilon(0.03));
    CHECK(better.lz4 == doctest::Approx(0.49).epsilon(0.03));
    const Shares worse = shares_of(made(compressible_as({1000, 100, 900}), 1 << 20), 1 << 20);
    CHECK(worse.zstd / 0.1 == doctest::Approx(0.9 / worse.lz4).epsilon(0.1));
    CHECK(compressible_as({0, 0, 0}) == Compressible{4096, 256});
    CHECK(compressible_as({1000, 1000, 1000}) == Compressible{4096, 256});
    CHECK(compressible_as({1000, 2000, 3000}) == Compressible{4096, 256});
    CHECK(compressible_as({100'000, 1, 400}).kept == 0);  // zeros
    CHECK(coded_share(256) == 1.0);
    CHECK(coded_share(64) == 0.75);
    CHECK(coded_share(16) == 0.5);
    CHECK(coded_share(0) == 0.0);
}

TEST_CASE("compressible content: of logs that know what zstd made only, in blocks of 4 KiB and more") {
    for (const uint64_t permille : {0U, 1U, 100U, 333U, 500U, 900U, 1000U, 5000U}) {
        const Compressible how = compressible_as({1000, permille, 0});
        const double want = static_cast<double>(std::min<uint64_t>(permille, 1000)) / 1000.0;
        CHECK(how == Compressible{static_cast<uint32_t>(4096 * std::min<uint64_t>(permille, 1000) / 1000), 256});
        for (const size_t block : {size_t{4096}, size_t{65536}, size_t{1} << 20}) {
            CAPTURE(permille);
            CAPTURE(block);
            const double share = shares_of(made(how, 1 << 20), block).zstd;
            CHECK(share >= want - 0.002);
            CHECK(share <= want + 0.015);
        }
    }
}

TEST_CASE("compressible content: any unit without the ones before, and the last block is like the others") {
    Content noise(1 << 20);
    fill_random(7, 0, noise);
    CHECK(made({4096, 256}, 1 << 20) == noise);
    const Compressible how{1000, 100};
    const Content bytes = made(how, 1 << 20);
    Content part(kContentUnit + 100);
    fill_compressible(7, 2 * kContentUnit, 1 << 20, how, part);
    CHECK(std::equal(part.begin(), part.end(), bytes.begin() + 2 * kContentUnit));
    CHECK(made(how, 1 << 20, 8) != bytes);
    CHECK(bytes[999] != std::byte{0});
    CHECK(std::all_of(bytes.begin() + 1000, bytes.begin() + 4096, [](std::byte b) { return b == std::byte{0}; }));
    CHECK(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return static_cast<int>(b) < 100; }));
    // The bytes are a promise: a root prepared elsewhere must be resettable here.
    uint64_t hash = 0;
    for (const std::byte each : bytes) {
        hash = hash * 31 + static_cast<uint64_t>(each);
    }
    CHECK(hash == 15506068677216107975ULL);
    // A file of half a block, with room beyond its end as direct writes need it.
    Content small(4096, std::byte{9});
    fill_compressible(7, 0, 2048, how, small);
    CHECK(std::equal(small.begin(), small.begin() + 500, bytes.begin()));
    CHECK(std::all_of(small.begin() + 500, small.end(), [](std::byte b) { return b == std::byte{0}; }));
}

}  // namespace reprise::test
