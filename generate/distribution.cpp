// SPDX-License-Identifier: MIT
#include "generate/distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "formats/support/read_quantity.h"

namespace reprise {
namespace {

constexpr double kMost = 0x1p62;

std::string_view trimmed(std::string_view text) {
    const size_t from = text.find_first_not_of(" \t");
    return from == text.npos ? std::string_view() : text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

std::optional<int64_t> whole(const ReadQuantity& read) {
    return read.wrong == nullptr && read.value < kMost ? std::optional(std::llround(read.value)) : std::nullopt;
}

double gauss_draw(uint64_t seed, uint64_t index) {
    return gauss_of(uniform_of(mixed_bits(seed, 2 * index)), uniform_of(mixed_bits(seed, 2 * index + 1)));
}

}  // namespace

std::optional<int64_t> read_bytes(std::string_view text) { return whole(read_byte_quantity(trimmed(text))); }

std::optional<int64_t> read_time(std::string_view text, double unit_ns) {
    return whole(read_time_quantity(trimmed(text), unit_ns));
}

double Distribution::share_below() const {
    const auto normal_below = [](double deviations) { return std::erfc(-deviations / std::sqrt(2.0)) / 2; };
    switch (kind) {
        case Kind::constant: break;
        case Kind::uniform: return b > a ? std::clamp((least - a) / (b - a), 0.0, 1.0) : a < least ? 1 : 0;
        case Kind::normal:
            if (b > 0) {
                return normal_below((least - a) / b);
            }
            break;
        case Kind::lognormal: {
            const double variance = std::log1p(b * b / (a * a));
            if (least <= 0) {
                return 0;
            }
            if (variance > 0) {
                return normal_below((std::log(least) - std::log(a) + variance / 2) / std::sqrt(variance));
            }
            break;
        }
    }
    return a < least ? 1 : 0;
}

int64_t Distribution::draw(uint64_t seed, uint64_t index, uint64_t* below) const {
    double value = a;
    switch (kind) {
        case Kind::constant: break;
        case Kind::uniform: value = a + (b - a) * uniform_of(mixed_bits(seed, index)); break;
        case Kind::normal: value = a + b * gauss_draw(seed, index); break;
        case Kind::lognormal: value = lognormal_of(a, b, gauss_draw(seed, index)); break;
    }
    if (below != nullptr && value < least) {
        ++*below;
    }
    return std::llround(std::clamp(value, least, kMost));
}

std::optional<Distribution> Distribution::parse(std::string_view text, Unit unit) {
    text = trimmed(text);
    Distribution out;
    out.text = text;
    const auto value = [&](std::string_view one) -> std::optional<double> {
        const auto read = unit == Unit::bytes ? read_bytes(one) : read_time(one, 1e9);
        return read ? std::optional(static_cast<double>(*read)) : std::nullopt;
    };
    const size_t open = text.find('(');
    if (open == text.npos) {
        const auto one = value(text);
        out.a = one.value_or(0);
        return one ? std::optional(out) : std::nullopt;
    }
    constexpr std::pair<std::string_view, Kind> kKinds[] = {
        {"uniform", Kind::uniform}, {"normal", Kind::normal}, {"lognormal", Kind::lognormal}};
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const auto& each) { return each.first == trimmed(text.substr(0, open)); });
    const size_t comma = text.find(',', open);
    if (kind == std::end(kKinds) || comma == text.npos || text.back() != ')') {
        return std::nullopt;
    }
    const auto first = value(text.substr(open + 1, comma - open - 1));
    const auto second = value(text.substr(comma + 1, text.size() - comma - 2));
    if (!first || !second || (kind->second == Kind::uniform && *second < *first) ||
        (kind->second == Kind::lognormal && *first <= 0)) {
        return std::nullopt;
    }
    out.kind = kind->second;
    out.a = *first;
    out.b = *second;
    return out;
}

}  // namespace reprise
