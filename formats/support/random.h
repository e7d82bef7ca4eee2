// SPDX-License-Identifier: MIT
// Draws that are the same everywhere for the same seed: the standard library's distributions differ between libraries.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace reprise {

inline constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

/// A state of splitmix64 (Steele, Lea, Flood 2014) as a number; the next state is kGolden more.
constexpr uint64_t splitmix64(uint64_t state) {
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return state ^ (state >> 31);
}

/// In (0, 1].
constexpr double uniform_of(uint64_t bits) { return (static_cast<double>(bits >> 11) + 1) * 0x1p-53; }

/// Of mean 0 and deviation 1, from two uniform_of() (Box and Muller 1958).
inline double gauss_of(double radius, double angle) {
    return std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle);
}

/// Of that mean and deviation, from a gauss_of(). `mean`: above 0.
inline double lognormal_of(double mean, double deviation, double gauss) {
    const double variance = std::log1p(deviation * deviation / (mean * mean));
    return std::exp(std::log(mean) - variance / 2 + std::sqrt(variance) * gauss);
}

}  // namespace reprise
