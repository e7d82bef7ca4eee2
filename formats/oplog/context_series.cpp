// SPDX-License-Identifier: MIT
#include "formats/oplog/context_series.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/oplog/header_facts.h"

namespace reprise {
namespace {

constexpr size_t kMostPoints = 10'000;
constexpr int64_t kLongestInterval = 100'000'000;  // ms

struct Shown {
    const char* stored;
    const char* name;
    enum class By { percent, mib_s, per_s, mean_us } by;
    const char* count = "";  // what a mean divides by
};
using By = Shown::By;

constexpr Shown kShown[] = {
    {"cpu_some_us", "CPU pressure, some", By::percent},
    {"cpu_full_us", "CPU pressure, full", By::percent},
    {"memory_some_us", "memory pressure, some", By::percent},
    {"memory_full_us", "memory pressure, full", By::percent},
    {"io_some_us", "I/O pressure, some", By::percent},
    {"io_full_us", "I/O pressure, full", By::percent},
    {"cache_added_kib", "page cache added", By::mib_s},
    {"cache_evicted_kib", "page cache evicted", By::mib_s},
    {"block_read_kib", "device read", By::mib_s},
    {"block_write_kib", "device write", By::mib_s},
    {"block_reads", "device reads", By::per_s},
    {"block_writes", "device writes", By::per_s},
    {"block_read_us", "device read latency", By::mean_us, "block_reads"},
    {"block_write_us", "device write latency", By::mean_us, "block_writes"},
};

const char* unit(By by) {
    switch (by) {
        case By::percent: return "%";
        case By::mib_s: return "MiB/s";
        case By::per_s: return "per s";
        case By::mean_us: return "us";
    }
    return "";
}

std::vector<double> numbers(const nlohmann::json& series, const char* name) {
    std::vector<double> out;
    const auto found = series.find(name);
    if (found == series.end() || !found->is_array()) {
        return out;
    }
    for (const auto& value : *found) {
        if (!value.is_number() || out.size() == kMostPoints) {
            break;
        }
        out.push_back(std::max(0.0, value.get<double>()));
    }
    return out;
}

}  // namespace

Context read_context(const Header& header) {
    Context context;
    const std::optional<std::string> text = read_fact(header, fact::context);
    if (!text) {
        return context;
    }
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("interval_ms") || !json["interval_ms"].is_number_integer() ||
        !json.contains("series") || !json["series"].is_object()) {
        return context;
    }
    const auto interval_ms = json["interval_ms"].get<int64_t>();
    if (interval_ms <= 0 || interval_ms > kLongestInterval) {
        return context;
    }
    context.interval_ns = interval_ms * 1'000'000;
    const double seconds = static_cast<double>(interval_ms) / 1e3;
    for (const Shown& shown : kShown) {
        ContextSeries one{shown.name, unit(shown.by), numbers(json["series"], shown.stored)};
        if (one.values.empty()) {
            continue;
        }
        const std::vector<double> counts = numbers(json["series"], shown.count);
        for (size_t i = 0; i < one.values.size(); ++i) {
            double& value = one.values[i];
            switch (shown.by) {
                case By::percent: value = std::min(100.0, value / (seconds * 1e4)); break;
                case By::mib_s: value /= 1024 * seconds; break;
                case By::per_s: value /= seconds; break;
                case By::mean_us: value = i < counts.size() && counts[i] > 0 ? value / counts[i] : 0; break;
            }
        }
        context.series.push_back(std::move(one));
    }
    return context;
}

}  // namespace reprise
