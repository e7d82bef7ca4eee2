// SPDX-License-Identifier: MIT
#include "metrics/exposition.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

namespace reprise {
namespace {

/// Length of the UTF-8 sequence at the front; 0: there is none.
size_t sequence_length(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0 || length > text.size()) {
        return 0;
    }
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return 0;
        }
    }
    // Overlong forms, surrogates, and what lies beyond Unicode.
    const bool bad = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                     (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
    return bad ? 0 : length;
}

}  // namespace

std::string label_value(std::string_view value) {
    std::string out;
    out.reserve(value.size());
    while (!value.empty()) {
        const size_t length = sequence_length(value);
        if (length == 0) {
            out += "\xef\xbf\xbd";  // U+FFFD
        } else if (value.front() == '\\') {
            out += "\\\\";
        } else if (value.front() == '"') {
            out += "\\\"";
        } else if (value.front() == '\n') {
            out += "\\n";
        } else {
            out += value.substr(0, length);
        }
        value.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string help_text(std::string_view help) {
    std::string out;
    for (const char c : help) {
        if (c == '\\') {
            out += "\\\\";
        } else if (c == '\n') {
            out += "\\n";
        } else {
            out += c;
        }
    }
    return out;
}

std::string sample_value(double value) {
    if (std::isnan(value)) {
        return "NaN";
    }
    if (std::isinf(value)) {
        return value > 0 ? "+Inf" : "-Inf";
    }
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value);
    return {text, end.ptr};
}

/// Begins a line; what follows is the value. `bound`: of a bucket; empty: none.
std::string& Exposition::line(Metric metric, std::string_view suffix, Labels labels, std::string_view bound) {
    std::string& out = lines_[static_cast<size_t>(metric)];
    std::string_view names = metric_info(metric).labels;
    out += metric_info(metric).name;
    out += suffix;
    char before = '{';
    const auto put = [&](std::string_view name, std::string_view value) {
        out += before;
        out += name;
        out += "=\"";
        out += label_value(value);
        out += '"';
        before = ',';
    };
    for (const std::string_view value : labels) {
        assert(!names.empty());
        const size_t comma = std::min(names.find(','), names.size());
        put(names.substr(0, comma), value);
        names.remove_prefix(std::min(comma + 1, names.size()));
    }
    assert(names.empty());
    if (!bound.empty()) {
        put("le", bound);
    }
    out += before == ',' ? "} " : " ";
    return out;
}

void Exposition::add(Metric metric, Labels labels, uint64_t value) {
    line(metric, "", labels, "") += std::to_string(value) + "\n";
}

void Exposition::add(Metric metric, Labels labels, double value) {
    line(metric, "", labels, "") += sample_value(value) + "\n";
}

void Exposition::add(Metric metric, Labels labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                     double sum) {
    assert(metric_info(metric).type == MetricType::histogram && counts.size() == bounds.size() + 1);
    uint64_t below = 0;
    for (size_t i = 0; i < bounds.size(); ++i) {
        below += counts[i];
        line(metric, "_bucket", labels, sample_value(bounds[i])) += std::to_string(below) + "\n";
    }
    below += counts.back();
    line(metric, "_bucket", labels, "+Inf") += std::to_string(below) + "\n";
    line(metric, "_sum", labels, "") += sample_value(sum) + "\n";
    line(metric, "_count", labels, "") += std::to_string(below) + "\n";
}

std::string Exposition::text() const {
    std::string out;
    for (size_t i = 0; i < kMetricCount; ++i) {
        if (lines_[i].empty()) {
            continue;
        }
        const MetricInfo& row = all_metrics()[i];
        const std::string name(row.name);
        out += "# HELP " + name + " " + help_text(row.help) + "\n# TYPE " + name + " " +
               std::string(metric_type_name(row.type)) + "\n" + lines_[i];
    }
    return out;
}

}  // namespace reprise
