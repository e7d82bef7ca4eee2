// SPDX-License-Identifier: MIT
// Sizes and times that a job file gives as a distribution, and draws from them that are the same everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/support/random.h"

namespace reprise {

/// A number of 64 bits that follows from two others.
constexpr uint64_t mixed_bits(uint64_t a, uint64_t b) { return splitmix64(a * kGolden + b + 0x632be59bd9b4e019u); }

/// Values are not negative: what is drawn below `least` becomes `least`.
struct Distribution {
    enum class Kind : uint8_t { constant, uniform, normal, lognormal } kind = Kind::constant;
    double a = 0, b = 0;  // constant: a; uniform: from a to b; else mean and standard deviation
    double least = 0;
    std::string text;  // as it was given

    bool varies() const { return kind != Kind::constant && b != (kind == Kind::uniform ? a : 0); }
    double mean() const { return kind == Kind::uniform ? (a + b) / 2 : a; }
    /// Share of draws that is to be expected below `least`. More than kMostBelow: what is drawn is another
    /// distribution.
    double share_below() const;
    static constexpr double kMostBelow = 0.05;
    /// Draw number `index` of that seed. Counts one that was below `least`.
    int64_t draw(uint64_t seed, uint64_t index, uint64_t* below = nullptr) const;

    enum class Unit : uint8_t { bytes, seconds };
    /// "150k", "normal(140MiB,65MiB)", "lognormal(3ms,1ms)", "uniform(4k,64k)". None where it is none of these.
    static std::optional<Distribution> parse(std::string_view text, Unit unit);
};

/// "4k", "1.5 GiB"; none where it is no size, or beyond 2^62.
std::optional<int64_t> read_bytes(std::string_view text);
/// "250us", "1.5s"; without a unit so many of `unit_ns`. None where it is no time, or beyond 2^62 ns.
std::optional<int64_t> read_time(std::string_view text, double unit_ns);

}  // namespace reprise
