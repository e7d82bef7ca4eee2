// SPDX-License-Identifier: MIT
#include "cli/limit_options.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "cli/units.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

constexpr double kLeastRatio = 0.01, kMostRatio = 1e6;

struct IoWord {
    const char* name;
    uint64_t IoLimits::*member;
    bool bytes;
};
constexpr IoWord kIoWords[] = {{"read", &IoLimits::read_bytes, true},
                               {"write", &IoLimits::write_bytes, true},
                               {"riops", &IoLimits::reads, false},
                               {"wiops", &IoLimits::writes, false}};

/// `predict --sweep ratio=1,2`
bool sweeps_memory(const po::variables_map& values) {
    if (values.count("sweep") == 0) {
        return false;
    }
    const auto& axes = values["sweep"].as<std::vector<std::string>>();
    return std::any_of(axes.begin(), axes.end(), [](const std::string& axis) {
        return axis.starts_with("ratio=") || axis.starts_with("memory=");
    });
}

}  // namespace

IoLimits io_limits_of(const std::string& text) {
    constexpr const char* kHint = "for example --io-limit read=50M,write=20M,riops=1000,wiops=500";
    IoLimits limits;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const size_t equals = part.find('=');
        const std::string name = part.substr(0, equals);
        const IoWord* word = nullptr;
        for (const IoWord& each : kIoWords) {
            word = name == each.name ? &each : word;
        }
        if (word == nullptr || equals == std::string::npos) {
            throw usage_error(
                "--io-limit: '" + escape_line(part) + "' is none of read=SIZE, write=SIZE, riops=N, wiops=N", kHint);
        }
        if (limits.*word->member != 0) {
            throw usage_error("--io-limit names " + name + " twice", kHint);
        }
        const std::string value = part.substr(equals + 1);
        if (!word->bytes && value.find_first_not_of("0123456789") != std::string::npos) {
            throw usage_error("--io-limit " + name + " is '" + escape_line(value) + "', expected a number of requests",
                              kHint);
        }
        limits.*word->member = parse_bytes(value, "--io-limit " + name);
        if (limits.*word->member == 0) {
            throw usage_error("--io-limit " + name + " is 0: nothing would ever be done", kHint);
        }
    }
    if (!limits.any()) {
        throw usage_error("--io-limit names no limit", kHint);
    }
    return limits;
}

double ratio_of_text(const std::string& text) {
    size_t used = 0;
    double value = 0.0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != text.size() || !(value >= kLeastRatio && value <= kMostRatio)) {
        throw usage_error("--ratio is '" + escape_line(text) + "', expected a number from 0.01 to 1000000",
                          "--ratio 4: the data are four times the memory");
    }
    return value;
}

void add_limit_options(po::options_description& add) {
    add.add_options()("memory", po::value<std::string>()->value_name("SIZE"),
                      "run in a control group with so much memory, for the page cache and what stands in for the job's "
                      "own memory; starts cold")("ratio", po::value<std::string>()->value_name("R"),
                                                 "the same, with memory for the Rth part of the data that are read")(
        "no-ballast", "do not stand in for the job's own memory: all of the limit is page cache")(
        "io-limit", po::value<std::string>()->value_name("LIMITS"),
        "limit the run's I/O a second: read=SIZE, write=SIZE, riops=N, wiops=N, with commas between them");
}

RunLimits run_limits(const po::variables_map& values) {
    RunLimits limits;
    if (values.count("memory") != 0) {
        limits.memory = parse_bytes(values["memory"].as<std::string>(), "--memory");
    }
    if (values.count("ratio") != 0) {
        limits.ratio = ratio_of_text(values["ratio"].as<std::string>());
    }
    if (limits.memory && limits.ratio) {
        throw usage_error("--memory and --ratio both say how much memory there is", "leave out one of them");
    }
    limits.ballast = values.count("no-ballast") == 0;
    if (!limits.ballast && !limits.memory_limited() && !sweeps_memory(values)) {
        throw usage_error("--no-ballast without a memory limit", "add --memory SIZE or --ratio R");
    }
    if (values.count("io-limit") != 0) {
        limits.io = io_limits_of(values["io-limit"].as<std::string>());
    }
    return limits;
}

void check_limits(const RunLimits& limits, EngineKind engine, std::optional<CacheRegime> regime) {
    if (limits.any() && !uses_root(engine)) {
        throw usage_error(
            "a memory or I/O limit with --engine " + std::string(engine_name(engine)) + ", which reads no files",
            "leave out one of them");
    }
    if (limits.memory_limited() && regime == CacheRegime::as_is) {
        throw usage_error("--cache as-is with a memory limit: what is in memory now was not brought in under the limit",
                          "use --cache cold, warm or recorded");
    }
}

std::string limit_words(const RunLimits& limits) {
    std::ostringstream words;
    const auto put = [&](const std::string& word) { words << (words.tellp() == 0 ? "" : " ") << word; };
    if (limits.memory) {
        put("--memory " + format_bytes(*limits.memory));
    }
    if (limits.ratio) {
        put("--ratio ");
        words << *limits.ratio;
    }
    if (!limits.ballast) {
        put("--no-ballast");
    }
    if (limits.io.any()) {
        std::string text;
        for (const IoWord& word : kIoWords) {
            const uint64_t value = limits.io.*word.member;
            if (value != 0) {
                text += (text.empty() ? "" : ",") + std::string(word.name) + "=" +
                        (word.bytes ? format_bytes(value) : std::to_string(value));
            }
        }
        put("--io-limit " + text);
    }
    return words.str();
}

}  // namespace reprise::cli
