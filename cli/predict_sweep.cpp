// SPDX-License-Identifier: MIT
#include "cli/predict_sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

#include "cli/limit_options.h"
#include "cli/units.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

constexpr int kPoints = 8;
constexpr size_t kMostValues = 1000;
constexpr const char* kHint = "for example --sweep read=10M..1G or --sweep ratio=0.5,1,2,4";

struct Axis {
    const char* name;
    bool bytes;
};
constexpr std::array<Axis, 5> kAxes = {
    {{"read", true}, {"riops", false}, {"ratio", false}, {"memory", true}, {"gpu-speed", false}}};

const Axis& axis_named(const std::string& name) {
    const auto* const found =
        std::find_if(kAxes.begin(), kAxes.end(), [&](const Axis& axis) { return name == axis.name; });
    if (found == kAxes.end()) {
        throw usage_error("--sweep: '" + escape_line(name) + "' is none of read, riops, ratio, memory, gpu-speed, gpus",
                          kHint);
    }
    return *found;
}

double number_of(const Axis& axis, const std::string& text) {
    const std::string what = std::string("--sweep ") + axis.name;
    double value = 0;
    if (axis.bytes) {
        value = static_cast<double>(parse_bytes(text, what));
    } else if (axis.name == std::string_view("ratio")) {
        return ratio_of_text(text);
    } else {
        size_t used = 0;
        try {
            value = std::stod(text, &used);
        } catch (const std::exception&) {
            used = 0;
        }
        value = used == text.size() && std::isfinite(value) ? value : 0;
    }
    if (value <= 0) {
        throw usage_error(what + " is '" + escape_line(text) + "', expected a number above 0", kHint);
    }
    return value;
}

/// Two significant digits; bytes with the prefix that the command line knows.
std::string rounded(double value, bool bytes) {
    std::string_view prefix;
    for (const std::string_view next : {"K", "M", "G", "T"}) {
        if (!bytes || value < 1024) {
            break;
        }
        value /= 1024;
        prefix = next;
    }
    std::array<char, 64> text{};
    const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
    const bool whole = unit >= 1 || (bytes && prefix.empty());
    std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.2g", whole ? std::round(value / unit) * unit : value);
    return text.data() + std::string(prefix);
}

std::vector<std::string> range_of(const Axis& axis, const std::string& from, const std::string& to) {
    const double first = number_of(axis, from), last = number_of(axis, to);
    if (first >= last) {
        throw usage_error(std::string("--sweep ") + axis.name + " goes from " + from + " to " + to +
                              ", expected the smaller one first",
                          kHint);
    }
    std::vector<std::string> values = {from};
    for (int point = 1; point + 1 < kPoints; ++point) {
        const double value = first * std::pow(last / first, static_cast<double>(point) / (kPoints - 1));
        const std::string text = rounded(value, axis.bytes);
        const double is = number_of(axis, text);
        if (is > number_of(axis, values.back()) && is < last) {
            values.push_back(text);
        }
    }
    values.push_back(to);
    return values;
}

std::vector<std::string> list_of(const Axis& axis, const std::string& text) {
    std::vector<std::string> values;
    std::map<double, std::string> seen;  // however it is written
    for (size_t from = 0; from <= text.size();) {
        const size_t comma = std::min(text.find(',', from), text.size());
        const std::string value = text.substr(from, comma - from);
        const auto [before, is_new] = seen.emplace(number_of(axis, value), value);
        if (!is_new) {
            throw usage_error("--sweep " + std::string(axis.name) +
                                  " has one value twice: " + escape_line(before->second) + " and " + escape_line(value),
                              kHint);
        }
        if (values.size() == kMostValues) {
            throw usage_error(
                "--sweep " + std::string(axis.name) + " has more than " + std::to_string(kMostValues) + " values",
                kHint);
        }
        values.push_back(value);
        from = comma + 1;
    }
    return values;
}

SweepAxis axis_of(const std::string& text) {
    const size_t equals = text.find('=');
    const Axis& axis = axis_named(text.substr(0, equals));
    const std::string values = equals == std::string::npos ? std::string() : text.substr(equals + 1);
    if (values.empty()) {
        throw usage_error("--sweep " + escape_line(text) + " names no values", kHint);
    }
    const size_t dots = values.find("..");
    return {axis.name, dots == std::string::npos ? list_of(axis, values)
                                                 : range_of(axis, values.substr(0, dots), values.substr(dots + 2))};
}

/// The limit is another one; a device that is faster than the one measured moves what it is asked for faster, too.
void set_read_rate(StorageModel& model, double bytes_per_s) {
    const double faster = bytes_per_s / model.read_bytes_per_s;
    model.read_bytes_per_s = bytes_per_s;
    if (!(faster > 1) || model.read.empty()) {
        return;
    }
    model.read_depth.clear();  // of a device that is slower
    const int64_t least = model.read.front().ns;
    for (SizedLatency& each : model.read) {
        each.ns = std::min(each.ns, least) +
                  std::llround(static_cast<double>(std::max<int64_t>(each.ns - least, 0)) / faster);
    }
}

}  // namespace

void add_sweep_option(po::options_description& add) {
    add.add_options()(
        "sweep", po::value<std::vector<std::string>>()->value_name("AXIS=VALUES")->composing(),
        "predict over a list, or a range of about eight values, e.g. read=10M..1G or ratio=0.5,1,2; of "
        "read, riops, ratio, memory, gpu-speed, at most twice; or of gpus. With -o FOLDER, CSV and pictures");
}

std::vector<SweepAxis> predicted_axes(const std::vector<std::string>& asked) {
    std::vector<SweepAxis> axes;
    axes.reserve(asked.size());
    for (const std::string& text : asked) {
        axes.push_back(axis_of(text));
    }
    const auto has = [&](const char* name) {
        return std::count_if(axes.begin(), axes.end(), [&](const SweepAxis& axis) { return axis.option == name; });
    };
    if (axes.size() > 2 || (axes.size() == 2 && axes[0].option == axes[1].option)) {
        throw usage_error("--sweep takes one or two different axes", kHint);
    }
    if (has("ratio") != 0 && has("memory") != 0) {
        throw usage_error("--sweep memory and ratio both say how much memory there is", "leave out one of them");
    }
    return axes;
}

PredictedCell predicted_cell(const std::vector<SweepAxis>& axes, const SweepCell& cell, const StorageModel& storage) {
    PredictedCell out{storage, {}, {}, {}};
    for (size_t i = 0; i < axes.size(); ++i) {
        const std::string& name = axes[i].option;
        const double value = number_of(axis_named(name), axes[i].values[cell[i]]);
        if (name == "read") {
            set_read_rate(out.storage, value);
        } else if (name == "riops") {
            if (value > out.storage.reads_per_s) {
                out.storage.read_depth.clear();  // of a device that is slower
            }
            out.storage.reads_per_s = value;
        } else if (name == "ratio") {
            out.ratio = value;
        } else if (name == "memory") {
            out.memory = static_cast<uint64_t>(value);
        } else {
            out.gpu = value;
        }
    }
    return out;
}

PredictedSweep::PredictedSweep(std::string log, std::string storage, std::vector<SweepAxis> axes) {
    result_.log = std::move(log);
    result_.root = std::move(storage);
    result_.axes = std::move(axes);
    result_.cells = sweep_cells(result_.axes);
    result_.wanted = 1;
    result_.predicted = true;
}

void PredictedSweep::run(const std::function<SweepRun(const SweepCell&)>& predict) {
    runs_.reserve(result_.cells.size());
    for (const SweepCell& cell : result_.cells) {
        try {
            runs_.push_back(predict(cell));
        } catch (const Error& error) {
            if (error.code() != ExitCode::machine) {
                throw;
            }
            runs_.emplace_back();
            const std::string why = error.what();
            runs_.back().refused = why.substr(0, why.find('\n'));
        }
    }
}

SweepResult PredictedSweep::result() const {
    SweepResult result = result_;
    for (const SweepRun& run : runs_) {
        result.runs.push_back({&run});
    }
    return result;
}

}  // namespace reprise::cli
