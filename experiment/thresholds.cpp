// SPDX-License-Identifier: MIT
#include "experiment/thresholds.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>

#include "formats/oplog/op.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

constexpr const char* kExample = "for example elapsed=3%, p99=20% or read.p99=20%";

std::string_view trimmed(std::string_view text) {
    constexpr const char* kBlanks = " \t\r";
    const size_t begin = text.find_first_not_of(kBlanks);
    return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

std::vector<std::string> metric_names() {
    std::vector<std::string> names{"elapsed", "throughput", "au", "p50", "p99", "request.p50", "request.p99"};
    for (const OpInfo& row : all_ops()) {
        if (row.is(Trait::io)) {
            names.push_back(std::string(row.name) + ".p50");
            names.push_back(std::string(row.name) + ".p99");
        }
    }
    return names;
}

std::string Thresholds::try_add(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
        return "'" + escape_line(text) + "' is not METRIC=SHARE";
    }
    const std::string name(trimmed(text.substr(0, equals)));
    const std::vector<std::string> names = metric_names();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        return "'" + escape_line(name) + "' is not a metric" + did_you_mean(nearest_names(name, names));
    }
    const std::string_view value = trimmed(text.substr(equals + 1));
    const std::string_view digits = trimmed(value.substr(0, value.ends_with('%') ? value.size() - 1 : 0));
    double percent = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
    if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(percent) || percent < 0) {
        return name + ": '" + escape_line(value) + "' is not a share such as 5%";
    }
    given_[name] = percent / 100;
    return {};
}

void Thresholds::add(std::string_view text) {
    if (const std::string wrong = try_add(text); !wrong.empty()) {
        throw usage_error("--threshold: " + wrong, kExample);
    }
}

void Thresholds::read(const std::string& file) {
    std::ifstream in(file);
    if (!in) {
        throw bad_input(file, "cannot be read: " + reason(errno),
                        "--threshold takes METRIC=SHARE or a file of such lines");
    }
    std::string line;
    for (size_t number = 1; std::getline(in, line); ++number) {
        const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
        if (text.empty()) {
            continue;
        }
        if (const std::string wrong = try_add(text); !wrong.empty()) {
            throw bad_input(at(file, number), wrong, kExample);
        }
    }
}

double Thresholds::of(std::string_view metric) const {
    constexpr double kTimes = 0.02, kMedians = 0.05, kTails = 0.1;
    const size_t dot = metric.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? metric : metric.substr(dot + 1);
    for (const std::string_view name : {metric, last}) {
        if (const auto found = given_.find(std::string(name)); found != given_.end()) {
            return found->second;
        }
    }
    return last == "p50" ? kMedians : last == "p99" ? kTails : kTimes;
}

}  // namespace reprise
