// SPDX-License-Identifier: MIT
#include "transform/accelerator_model.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>

#include "formats/support/error.h"
#include "formats/support/random.h"

namespace reprise {
namespace {

constexpr double kLongest = 86'400e9;  // a day
constexpr size_t kMostValues = 10'000'000;
constexpr const char* kExamples =
    "for example 250ms, normal(250ms,20ms), lognormal(250ms,20ms), empirical, empirical(steps.txt); ,seed=7 behind it "
    "chooses other draws";

std::string_view trim(std::string_view text) {
    const size_t from = text.find_first_not_of(" \t\r");
    return from == text.npos ? std::string_view() : text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

/// Nanoseconds, at least 0 and at most a day.
std::optional<double> time_of(std::string_view text) {
    text = trim(text);
    double value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !std::isfinite(value)) {
        return std::nullopt;
    }
    const std::string_view unit = trim({rest, static_cast<size_t>(text.data() + text.size() - rest)});
    const double scale = unit.empty() || unit == "s" ? 1e9
                         : unit == "ms"              ? 1e6
                         : unit == "us"              ? 1e3
                         : unit == "ns"              ? 1
                                                     : 0;
    value *= scale;
    return scale == 0 || value < 0 || value > kLongest ? std::nullopt : std::optional(value);
}

Error wrong(std::string_view what) { return usage_error("--gpu-model: " + std::string(what), kExamples); }

double time_or_throw(std::string_view text) {
    const auto time = time_of(text);
    if (!time) {
        throw wrong("'" + escape_line(trim(text)) + "' is not a time from 0 to a day");
    }
    return *time;
}

std::vector<int64_t> read_values(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw bad_input(path, "step times cannot be read", "name a file with one time a line, e.g. 0.25 or 250ms");
    }
    std::vector<int64_t> values;
    std::string line;
    for (uint64_t number = 1; std::getline(file, line); ++number) {
        const std::string_view text = trim(line);
        if (text.empty() || text.front() == '#') {
            continue;
        }
        const auto time = time_of(text);
        if (!time || values.size() == kMostValues) {
            throw bad_input(path + ":" + std::to_string(number),
                            time ? "more step times than a model holds" : "not a time from 0 to a day",
                            "one time a line, e.g. 0.25 or 250ms");
        }
        values.push_back(std::llround(*time));
    }
    if (values.empty()) {
        throw bad_input(path, "no step time in it", "one time a line, e.g. 0.25 or 250ms");
    }
    return values;
}

}  // namespace

GpuModel GpuModel::parse(std::string_view spec) {
    GpuModel model;
    spec = trim(spec);
    model.spec = spec;
    constexpr std::string_view kSeed = ",seed=";
    if (const size_t at = spec.rfind(kSeed); at != spec.npos) {
        const std::string_view seed = spec.substr(at + kSeed.size());
        const auto [rest, error] = std::from_chars(seed.data(), seed.data() + seed.size(), model.seed);
        if (error != std::errc() || rest != seed.data() + seed.size()) {
            throw wrong("the seed '" + escape_line(seed) + "' is not a whole number");
        }
        spec = trim(spec.substr(0, at));
    }
    const size_t open = spec.find('(');
    if (open != spec.npos && spec.back() != ')') {
        throw wrong("no ) at the end of '" + escape_line(spec) + "'");
    }
    const std::string_view name = trim(spec.substr(0, open));
    const std::string_view inside =
        open == spec.npos ? std::string_view() : trim(spec.substr(open + 1, spec.size() - open - 2));
    if (name == "empirical") {
        model.kind = Kind::empirical;
        if (open != spec.npos) {
            model.values = read_values(std::string(inside));
        }
        return model;
    }
    if (name == "normal" || name == "lognormal") {
        const size_t comma = inside.find(',');
        if (comma == inside.npos) {
            throw wrong(std::string(name) + " requires a mean and a standard deviation");
        }
        model.kind = name == "normal" ? Kind::normal : Kind::lognormal;
        model.mean_ns = time_or_throw(inside.substr(0, comma));
        model.sd_ns = time_or_throw(inside.substr(comma + 1));
        if (model.kind == Kind::lognormal && model.mean_ns <= 0) {
            throw wrong("the mean of a lognormal must be above 0");
        }
        return model;
    }
    if (open != spec.npos && name != "constant") {
        throw wrong("'" + escape_line(name) + "' is not a model");
    }
    model.mean_ns = time_or_throw(open == spec.npos ? spec : inside);
    return model;
}

StepDraws::StepDraws(const GpuModel& model, uint64_t accelerator, const std::vector<int64_t>& recorded)
    : model_(model),
      values_(model.values.empty() ? recorded : model.values),
      state_(model.seed * kGolden + accelerator * 0xd1b54a32d192ed03u) {}

double StepDraws::uniform() { return uniform_of(splitmix64(state_ += kGolden)); }

double StepDraws::gauss() {
    const double radius = uniform();
    return gauss_of(radius, uniform());
}

int64_t StepDraws::next() {
    double ns = model_.mean_ns;
    switch (model_.kind) {
        case GpuModel::Kind::constant: break;
        case GpuModel::Kind::normal: ns += model_.sd_ns * gauss(); break;
        case GpuModel::Kind::lognormal: ns = lognormal_of(model_.mean_ns, model_.sd_ns, gauss()); break;
        case GpuModel::Kind::empirical:
            if (values_.empty()) {
                return 0;
            }
            return values_[static_cast<size_t>((1 - uniform()) * static_cast<double>(values_.size())) % values_.size()];
    }
    negative_ += ns < 0 ? 1 : 0;
    return std::llround(std::min(std::max(ns, 0.0), kLongest));
}

}  // namespace reprise
