// SPDX-License-Identifier: MIT
#include "formats/support/quantity.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <span>

namespace reprise {

namespace {

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

}  // namespace reprise
