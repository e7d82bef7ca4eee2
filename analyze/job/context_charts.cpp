// SPDX-License-Identifier: MIT
// Charts of what happened around a job, of what bounds it, and of several jobs side by side.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/job/job_charts.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kMib = 1 << 20;

struct Shown {
    const char* id;
    const char* title;
    const char* note;
    PageUnit unit;
    double factor;
    std::vector<std::pair<const char*, int>> series;  // of the context, with their colours
};

const std::vector<Shown>& shown() {
    static const std::vector<Shown> all = {
        {"cache",
         "Page cache",
         "Pages of the job's files that came into memory, and left it.",
         PageUnit::bytes_per_second,
         kMib,
         {{"page cache added", 0}, {"page cache evicted", 1}}},
        {"device",
         "Device throughput",
         "What the devices of the job's files read and wrote.",
         PageUnit::bytes_per_second,
         kMib,
         {{"device read", 0}, {"device write", 3}}},
        {"device-calls",
         "Device requests",
         "Requests that the devices completed.",
         PageUnit::per_second,
         1,
         {{"device reads", 0}, {"device writes", 3}}},
        {"device-latency",
         "Device latency",
         "Mean of the requests of an interval.",
         PageUnit::seconds,
         1e-6,
         {{"device read latency", 0}, {"device write latency", 3}}},
        {"pressure",
         "Pressure",
         "Share of the time in which some task, or all of them, stood still for want of it.",
         PageUnit::percent,
         1,
         {{"CPU pressure, some", 2},
          {"memory pressure, some", 8},
          {"memory pressure, full", 3},
          {"I/O pressure, some", 0},
          {"I/O pressure, full", 1}}},
    };
    return all;
}

const ContextSeries* find(const Context& context, std::string_view name) {
    for (const ContextSeries& series : context.series) {
        if (series.name == name) {
            return &series;
        }
    }
    return nullptr;
}

/// Intervals of the context from the job's beginning to its end.
struct Window {
    size_t from = 0, to = 0;
    std::vector<double> x;  // s since the job's beginning
};

Window window_of(const JobAnalysis& job) {
    Window out;
    const auto interval = static_cast<double>(job.context.interval_ns);
    const auto begin = static_cast<double>(job.time.grid.begin()), end = static_cast<double>(job.time.grid.end());
    out.from = static_cast<size_t>(std::max(std::floor(begin / interval), 0.0));
    out.to = std::max(out.from + 1, static_cast<size_t>(std::max(std::ceil(end / interval), 0.0)));
    for (size_t i = out.from; i < out.to; ++i) {
        out.x.push_back(std::max((static_cast<double>(i) * interval - begin) / 1e9, 0.0));
    }
    return out;
}

PageChart memory_chart(const JobAnalysis& job, const std::string& prefix) {
    PageChart chart;
    chart.id = prefix + "memory";
    chart.title = "Memory held";
    chart.note = "Anonymous and shared memory of all processes together, without the page cache.";
    chart.kind = PageChart::Kind::areas;
    chart.unit = PageUnit::bytes;
    chart.zoom = "time";
    PageSeries held{"held", {}, 8};
    for (size_t i = 0; i < kIntervals; ++i) {
        chart.x.push_back(job.time.grid.start_s(i));
        const auto at = job.time.grid.begin() + std::llround(static_cast<double>(i) * job.time.grid.width_ns());
        held.values.push_back(static_cast<double>(held_at(*job.memory, at)));
    }
    chart.series = {std::move(held)};
    return chart;
}

}  // namespace

std::vector<PageChart> context_charts(const JobAnalysis& job, const std::string& prefix) {
    std::vector<PageChart> out;
    if (job.context.interval_ns > 0) {
        const Window window = window_of(job);
        for (const Shown& one : shown()) {
            PageChart chart;
            chart.id = prefix + one.id;
            chart.title = one.title;
            chart.note = one.note;
            chart.unit = one.unit;
            chart.zoom = "time";
            chart.x = window.x;
            for (const auto& [name, color] : one.series) {
                const ContextSeries* const series = find(job.context, name);
                if (series == nullptr) {
                    continue;
                }
                PageSeries drawn{name, {}, color};
                for (size_t i = window.from; i < window.to; ++i) {
                    drawn.values.push_back(i < series->values.size() ? series->values[i] * one.factor : 0);
                }
                chart.series.push_back(std::move(drawn));
            }
            if (!chart.series.empty()) {
                out.push_back(std::move(chart));
            }
        }
    }
    if (job.memory && !job.memory->empty()) {
        out.push_back(memory_chart(job, prefix));
    }
    return out;
}

std::vector<PageChart> bounds_charts(const JobBounds& bounds, const std::string& prefix) {
    std::vector<PageChart> out;
    if (!bounds.known()) {
        return out;
    }
    const auto seconds = [](int64_t ns) { return static_cast<double>(ns) / 1e9; };
    PageChart times;
    times.id = prefix + "what-if";
    times.title = "Elapsed time, and what would be left of it";
    times.note = "Each with one thing that takes no time, all else as recorded.";
    times.kind = PageChart::Kind::bars;
    times.sideways = true;
    times.unit = PageUnit::seconds;
    PageSeries elapsed{"elapsed", {}, 0};
    const auto add = [&](const char* label, const std::optional<JobBounds::WhatIf>& what) {
        if (what) {
            times.labels.emplace_back(label);
            elapsed.values.push_back(seconds(what->elapsed));
        }
    };
    times.labels.emplace_back("recorded");
    elapsed.values.push_back(seconds(bounds.recorded));
    add("modelled", bounds.modelled);
    add("infinitely fast storage", bounds.storage);
    add("infinitely fast processors", bounds.processor);
    add("infinitely fast accelerators", bounds.accelerator);
    times.series = {std::move(elapsed)};
    out.push_back(std::move(times));
    PageChart path;
    path.id = prefix + "path";
    path.title = "Critical path";
    path.note = "What the end of the job had to wait for, from its start on; the parts add up to the modelled time.";
    path.kind = PageChart::Kind::stacked_bars;
    path.sideways = true;
    path.unit = PageUnit::seconds;
    path.labels = {"critical path"};
    const JobBounds::Path& parts = bounds.path;
    for (const auto& [name, ns, color] : {std::tuple{"compute", parts.compute, 2},
                                          {"storage", parts.storage, 0},
                                          {"calls and gaps", parts.calls, 5},
                                          {"accelerator", parts.accelerator, 8},
                                          {"asleep", parts.asleep, 9},
                                          {"waits without a known cause", parts.unexplained, 4}}) {
        if (ns > 0) {
            path.series.push_back({name, {seconds(ns)}, color});
        }
    }
    if (!path.series.empty()) {
        out.push_back(std::move(path));
    }
    return out;
}

std::vector<PageChart> side_by_side_charts(std::span<const AnalyzedJob> jobs) {
    PageChart times;
    times.id = "all-what-if";
    times.title = "Elapsed time, and what would be left of it";
    times.note = "Of each log; missing where it was not computed.";
    times.kind = PageChart::Kind::bars;
    times.unit = PageUnit::seconds;
    times.labels = {"recorded", "infinitely fast storage", "infinitely fast processors",
                    "infinitely fast accelerators"};
    PageChart depth;
    depth.id = "all-sizes";
    depth.title = "Read sizes";
    depth.note = "Share of the reads of each log.";
    depth.kind = PageChart::Kind::bars;
    depth.unit = PageUnit::percent;
    depth.x_title = "size asked for, up to";
    const auto total = [](const JobAnalysis& job) {
        double sum = 0;
        for (const BySize& row : job.reads_by_size) {
            sum += static_cast<double>(row.calls);
        }
        return std::max(sum, 1.0);
    };
    std::vector<size_t> classes;
    for (size_t i = 0; i < kSizeClasses; ++i) {
        if (std::any_of(jobs.begin(), jobs.end(),
                        [&](const AnalyzedJob& one) { return one.job.reads_by_size[i].calls > 0; })) {
            classes.push_back(i);
            depth.labels.push_back(format_bytes(uint64_t{1} << i));
        }
    }
    for (const AnalyzedJob& one : jobs) {
        const auto left = [&](const std::optional<JobBounds::WhatIf> JobBounds::*what) {
            const bool known = one.bounds && ((*one.bounds).*what).has_value();
            return known ? static_cast<double>(((*one.bounds).*what)->elapsed) / 1e9 : kNone;
        };
        times.series.push_back({one.name,
                                {one.job.elapsed_s(), left(&JobBounds::storage), left(&JobBounds::processor),
                                 left(&JobBounds::accelerator)}});
        PageSeries share{one.name, {}};
        for (const size_t i : classes) {
            share.values.push_back(100 * static_cast<double>(one.job.reads_by_size[i].calls) / total(one.job));
        }
        depth.series.push_back(std::move(share));
    }
    return {std::move(times), std::move(depth)};
}

}  // namespace reprise
