// SPDX-License-Identifier: MIT
#include "formats/support/read_quantity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <string>

namespace reprise {
namespace {

struct Unit {
    std::string_view name;
    double factor;
};

constexpr double kKi = 1024.0;
constexpr std::array kByteUnits = {
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
    Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}, Unit{"min", 60e9}, Unit{"h", 3600e9},
};

ReadQuantity read_quantity(std::string_view text, std::span<const Unit> units, double bare) {
    ReadQuantity out;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, out.value, std::chars_format::fixed);
    if (error != std::errc() || !(out.value >= 0)) {
        return {0, "not a quantity"};
    }
    std::string unit;
    for (const char* p = rest; p != end; ++p) {
        if (*p != ' ') {
            unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
        }
    }
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const Unit& candidate) { return candidate.name == unit; });
    if (!unit.empty() && found == units.end()) {
        return {0, "unknown unit"};
    }
    out.value *= unit.empty() ? bare : found->factor;
    return out;
}

}  // namespace

ReadQuantity read_byte_quantity(std::string_view text) { return read_quantity(text, kByteUnits, 1); }

ReadQuantity read_time_quantity(std::string_view text, double unit_ns) {
    return read_quantity(text, kTimeUnits, unit_ns);
}

}  // namespace reprise
