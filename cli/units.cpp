// SPDX-License-Identifier: MIT
// How quantities are read.
#include "cli/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "formats/support/error.h"

namespace reprise::cli {

namespace {

struct Unit {
    std::string_view name;
    double factor;
};

constexpr double kKi = 1024.0;
constexpr std::array kByteUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKi},
    Unit{"kib", kKi},
    Unit{"kb", 1e3},
    Unit{"m", kKi* kKi},
    Unit{"mib", kKi* kKi},
    Unit{"mb", 1e6},
    Unit{"g", kKi* kKi* kKi},
    Unit{"gib", kKi* kKi* kKi},
    Unit{"gb", 1e9},
    Unit{"t", kKi* kKi* kKi* kKi},
    Unit{"tib", kKi* kKi* kKi* kKi},
    Unit{"tb", 1e12},
    Unit{"p", kKi* kKi* kKi* kKi* kKi},
    Unit{"pib", kKi* kKi* kKi* kKi* kKi},
    Unit{"pb", 1e15},
};
constexpr std::array kTimeUnits = {
    Unit{"", 1e9},  Unit{"ns", 1},     Unit{"us", 1e3},   Unit{"ms", 1e6},
    Unit{"s", 1e9}, Unit{"min", 60e9}, Unit{"h", 3600e9},
};

/// The value in the smallest unit as a non-negative number below `limit`.
double parse_quantity(std::string_view text, std::string_view what, std::span<const Unit> units, double limit,
                      std::string_view expected) {
    const auto wrong = [&](std::string_view why) {
        return usage_error(std::string(what) + " is '" + escape_line(text) + "': " + std::string(why),
                           "expected " + std::string(expected));
    };
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) {
        throw wrong("not a quantity");
    }
    std::string unit;
    for (const char* p = rest; p != end; ++p) {
        if (*p != ' ') {
            unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
        }
    }
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const Unit& candidate) { return candidate.name == unit; });
    if (found == units.end()) {
        throw wrong("unknown unit");
    }
    const double value = number * found->factor;
    if (!(value < limit)) {
        throw wrong("exceeds 64 bits");
    }
    return value;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
    // Plain integers exactly, beyond the 53 bits of a double.
    std::uint64_t exact = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
    if (error == std::errc() && rest == text.data() + text.size()) {
        return exact;
    }
    return static_cast<std::uint64_t>(
        parse_quantity(text, what, kByteUnits, 0x1p64, "a size such as 4096, 64KiB, 1.5GiB or 2GB"));
}

std::int64_t parse_duration(std::string_view text, std::string_view what) {
    return std::llround(parse_quantity(text, what, kTimeUnits, 0x1p63, "a time such as 250us, 10ms, 1.5s, 2min or 1h"));
}

}  // namespace reprise::cli
