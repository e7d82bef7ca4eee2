// SPDX-License-Identifier: MIT
// How quantities are written and read.
#include "cli/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
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

/// Three significant digits for 0 <= value < 1024, never in exponent form.
std::string three_digits(double value) {
    std::array<char, 32> buffer{};
    const int digits = value < 9.995 ? 2 : (value < 99.95 ? 1 : 0);
    std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
    return buffer.data();
}

/// Divides by `step` until the printed value is below it.
std::string with_prefix(double value, double step, std::span<const std::string_view> names) {
    std::size_t i = 0;
    while (i + 1 < names.size() && std::round(value) >= step) {
        value /= step;
        ++i;
    }
    return three_digits(value) + std::string(names[i]);
}

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

std::string format_count(std::uint64_t count) {
    std::string out = std::to_string(count);
    for (std::size_t at = out.size(); at > 3; at -= 3) {
        out.insert(at - 3, ",");
    }
    return out;
}

std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural) {
    std::string out = format_count(count) + " ";
    if (count == 1) {
        return out.append(noun);
    }
    return plural.empty() ? out.append(noun) + "s" : out.append(plural);
}

std::string format_bytes(std::uint64_t bytes) {
    static constexpr std::array<std::string_view, 7> kNames = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    if (bytes < 1024) {
        return std::to_string(bytes) + " B";
    }
    return with_prefix(static_cast<double>(bytes), 1024, kNames);
}

std::string format_duration(std::int64_t nanoseconds) {
    const std::string sign = nanoseconds < 0 ? "-" : "";
    const double ns = std::abs(static_cast<double>(nanoseconds));
    static constexpr std::array<std::string_view, 4> kNames = {" ns", " us", " ms", " s"};
    if (ns < 1000) {
        return sign + std::to_string(static_cast<long>(ns)) + " ns";
    }
    if (ns < 59.95e9) {
        return sign + with_prefix(ns, 1000, kNames);
    }
    const auto seconds = static_cast<long>(std::llround(ns / 1e9));
    const long big = seconds < 3600 ? seconds / 60 : seconds / 3600;
    const long small = seconds < 3600 ? seconds % 60 : (seconds % 3600) / 60;
    std::array<char, 64> buffer{};
    std::snprintf(buffer.data(), buffer.size(), seconds < 3600 ? "%ld min %02ld s" : "%ld h %02ld min", big, small);
    return sign + buffer.data();
}

std::string format_rate(double bytes_per_second) {
    if (!std::isfinite(bytes_per_second) || bytes_per_second < 0) {
        return "-";
    }
    static constexpr std::array<std::string_view, 7> kNames = {" B/s",   " KiB/s", " MiB/s", " GiB/s",
                                                               " TiB/s", " PiB/s", " EiB/s"};
    return with_prefix(bytes_per_second, 1024, kNames);
}

std::string format_count_rate(double per_second, std::string_view noun) {
    if (!std::isfinite(per_second) || per_second < 0) {
        return "-";
    }
    static constexpr std::array<std::string_view, 5> kNames = {" ", " k ", " M ", " G ", " T "};
    return with_prefix(per_second, 1000, kNames) + std::string(noun) + "/s";
}

std::string format_share(double share) {
    if (!std::isfinite(share)) {
        return "-";
    }
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.1f %%", share * 100);
    return buffer.data();
}

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
