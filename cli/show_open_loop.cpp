// SPDX-License-Identifier: MIT
#include "cli/show_open_loop.h"

#include "cli/units.h"

namespace reprise::cli {
namespace {

nlohmann::json spread_us(const Histogram& times) {
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
    return {{"p50", us(times.percentile(0.5))},
            {"p99", us(times.percentile(0.99))},
            {"p999", us(times.percentile(0.999))},
            {"max", us(times.max())}};
}

}  // namespace

std::vector<std::string> open_loop_lines(const std::vector<OpenLoop>& loops) {
    std::vector<std::string> out;
    for (const OpenLoop& loop : loops) {
        const auto time = [](const Histogram& of, double share) { return format_duration(of.percentile(share)); };
        std::string line = (loop.name.empty() ? "" : printable(loop.name) + ": ") + format_count(loop.requests) +
                           ", from due p50 " + time(loop.from_due, 0.5) + ", p99 " + time(loop.from_due, 0.99) +
                           ", max " + format_duration(loop.from_due.max()) + "; from begin p99 " +
                           time(loop.from_begin, 0.99);
        if (loop.late != 0) {
            line += "; " + format_count(loop.late) + " began late (max " + format_duration(loop.late_by.max()) + ")";
        }
        if (loop.unfinished != 0) {
            line += "; " + format_count(loop.unfinished) + " not done";
        }
        out.push_back(line);
    }
    return out;
}

nlohmann::json open_loops_json(const std::vector<OpenLoop>& loops) {
    nlohmann::json out = nlohmann::json::array();
    for (const OpenLoop& loop : loops) {
        out.push_back({{"name", printable(loop.name)},
                       {"requests", loop.requests},
                       {"began_late", loop.late},
                       {"not_done", loop.unfinished},
                       {"from_due_us", spread_us(loop.from_due)},
                       {"from_begin_us", spread_us(loop.from_begin)},
                       {"late_us", spread_us(loop.late_by)}});
    }
    return out;
}

}  // namespace reprise::cli
