// SPDX-License-Identifier: MIT
#include "cli/sweep_axes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "cli/limit_options.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/escape.h"

namespace reprise::cli {
namespace {

using Words = std::vector<std::string>;

// Axes, the first of those given is the one of the pictures.
constexpr const char* kListed[] = {"ratio", "memory", "gpu-speed"};

Words listed(const std::string& option, const std::string& text) {
    Words values;
    std::string value;
    for (const char c : text + ",") {
        if (c != ',') {
            value += c;
            continue;
        }
        if (value.empty()) {
            throw usage_error(
                "--" + option + " is '" + escape_line(text) + "', expected values with commas between them",
                "for example --ratio 0.5,1,2,4");
        }
        values.push_back(value);
        value.clear();
    }
    return values;
}

/// What a value means, however it is written. Throws Error (usage) where it means nothing.
std::string meaning_of(const std::string& option, const std::string& value) {
    if (option == "memory") {
        return std::to_string(parse_bytes(value, "--memory"));
    }
    if (option == "io-limit") {
        const IoLimits limits = io_limits_of(value);
        std::string text;
        for (const uint64_t one : {limits.read_bytes, limits.write_bytes, limits.reads, limits.writes}) {
            text += std::to_string(one) + " ";
        }
        return text;
    }
    char* end = nullptr;
    const double number = option == "ratio" ? ratio_of_text(value) : std::strtod(value.c_str(), &end);
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", number);
    return end == nullptr || *end == '\0' ? text : value;
}

/// The same circumstance twice would be two cells of one name.
void check_different(const SweepAxis& axis) {
    std::map<std::string, std::string> seen;  // meaning to value
    for (const std::string& value : axis.values) {
        const auto [before, is_new] = seen.emplace(meaning_of(axis.option, value), value);
        if (!is_new) {
            throw usage_error("--" + axis.option + " has one value twice: " + escape_line(before->second) + " and " +
                                  escape_line(value),
                              "leave out one of them; --runs makes more runs of each cell");
        }
    }
}

}  // namespace

std::vector<SweepAxis> axes_of(const po::variables_map& values) {
    std::vector<SweepAxis> axes;
    for (const char* const option : kListed) {
        if (values.count(option) != 0) {
            axes.push_back({option, listed(option, values[option].as<std::string>())});
        }
    }
    if (values.count("io-limit") != 0) {
        axes.push_back({"io-limit", values["io-limit"].as<Words>()});
    }
    std::for_each(axes.begin(), axes.end(), check_different);
    if (axes.empty()) {
        throw usage_error("nothing is varied", "for example --ratio 0.5,1,2,4, --gpu-speed 1,2 or --io-limit read=50M");
    }
    if (values.count("ratio") != 0 && values.count("memory") != 0) {
        throw usage_error("--memory and --ratio both say how much memory there is", "leave out one of them");
    }
    return axes;
}

std::vector<std::string> axis_names() {
    std::vector<std::string> names(std::begin(kListed), std::end(kListed));
    names.emplace_back("io-limit");
    return names;
}

}  // namespace reprise::cli
