// SPDX-License-Identifier: MIT
#include "analyze/job/job_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Of the palette: the same thing has the same colour in every chart.
constexpr int kStorage = 0, kStall = 1, kCompute = 2, kWrites = 3, kWaits = 4, kMapped = 5, kMetadata = 6, kOther = 7,
              kAccelerator = 8, kNothing = 9;

bool any(const std::vector<double>& values) {
    return std::any_of(values.begin(), values.end(), [](double value) { return value != 0 && std::isfinite(value); });
}

void keep_if_any(std::vector<PageChart>& out, PageChart chart) {
    std::erase_if(chart.series, [](const PageSeries& series) { return !any(series.values); });
    if (!chart.series.empty()) {
        out.push_back(std::move(chart));
    }
}

std::vector<double> starts(const TimeGrid& grid) {
    std::vector<double> out;
    for (size_t i = 0; i < grid.count(); ++i) {
        out.push_back(grid.start_s(i));
    }
    return out;
}

/// Sums of intervals as rates, or as times of the width.
std::vector<double> divided(const OverTime& values, double by) {
    std::vector<double> out;
    for (const double value : values) {
        out.push_back(value / by);
    }
    return out;
}

PageChart over_time(const std::string& id, const char* title, const char* note, const JobOverTime& time,
                    PageUnit unit) {
    PageChart chart;
    chart.id = id;
    chart.title = title;
    chart.note = note;
    chart.unit = unit;
    chart.x = starts(time.grid);
    chart.zoom = "time";
    return chart;
}

PageChart bars(const std::string& id, const char* title, const char* note, PageUnit unit) {
    PageChart chart;
    chart.id = id;
    chart.title = title;
    chart.note = note;
    chart.kind = PageChart::Kind::bars;
    chart.unit = unit;
    return chart;
}

double seconds_or_none(const Histogram& latency, double share) {
    return latency.count() > 0 ? static_cast<double>(latency.percentile(share)) / 1e9 : kNone;
}

}  // namespace

std::optional<PageLanes> timeline_chart(const JobAnalysis& job, const std::string& prefix) {
    PageLanes out;
    out.id = prefix + "timeline";
    out.title = "Tasks over time";
    out.note = "What each task did, interval by interval; blank: waiting for a CPU, other calls, or not there.";
    out.end = static_cast<double>(job.time.grid.end() - job.time.grid.begin()) / 1e9;
    out.zoom = "time";
    struct Part {
        const char* name;
        int color;
        bool accelerator;
        size_t part;
    };
    std::vector<Part> parts{{"compute", kCompute, false, 0},
                            {"storage", kStorage, false, 1},
                            {"waits for an accelerator", kWaits, false, 2},
                            {"other waits", kNothing, false, 3},
                            {"accelerator busy", kAccelerator, true, 0},
                            {"accelerator stalled", kStall, true, 1}};
    std::erase_if(parts, [&](const Part& part) {
        return std::none_of(job.lanes.begin(), job.lanes.end(), [&](const JobLane& lane) {
            return lane.accelerator == part.accelerator &&
                   std::any_of(lane.parts.begin(), lane.parts.end(), [&](const auto& at) { return at[part.part] > 0; });
        });
    });
    for (const Part& part : parts) {
        out.states.push_back({part.name, part.color});
    }
    const double width = out.end * 1e9 / kLaneIntervals;
    for (const JobLane& lane : job.lanes) {
        PageLanes::Lane row{lane.name, std::vector<float>(kLaneIntervals * parts.size())};
        const auto whole = static_cast<float>(width * lane.of);
        for (size_t i = 0; i < lane.parts.size(); ++i) {
            for (size_t state = 0; state < parts.size(); ++state) {
                const bool has = lane.accelerator == parts[state].accelerator;
                row.shares[i * parts.size() + state] = has ? lane.parts[i][parts[state].part] / whole : 0;
            }
        }
        out.lanes.push_back(std::move(row));
    }
    return parts.empty() ? std::nullopt : std::optional(std::move(out));
}

std::vector<PageChart> time_charts(const JobAnalysis& job, const std::string& prefix) {
    const JobOverTime& time = job.time;
    const double width = time.grid.width_ns(), seconds = width / 1e9;
    std::vector<PageChart> out;
    PageChart throughput =
        over_time(prefix + "throughput", "Throughput", "Bytes that calls and requests on storage moved.", time,
                  PageUnit::bytes_per_second);
    throughput.series = {{"read", divided(time.read_bytes, seconds), kStorage},
                         {"written", divided(time.written_bytes, seconds), kWrites},
                         {"touched in mapped files", divided(time.touched_bytes, seconds), kMapped}};
    keep_if_any(out, std::move(throughput));
    PageChart calls =
        over_time(prefix + "iops", "Calls", "Calls and requests on storage that began.", time, PageUnit::per_second);
    calls.series = {{"reads", divided(time.reads, seconds), kStorage},
                    {"writes", divided(time.writes, seconds), kWrites},
                    {"metadata", divided(time.metadata, seconds), kMetadata},
                    {"syncs", divided(time.syncs, seconds), kStall}};
    keep_if_any(out, std::move(calls));
    PageChart depth =
        over_time(prefix + "depth", "Queue depth",
                  "Calls and requests on storage in flight, in the mean of an interval.", time, PageUnit::count);
    depth.series = {{"in flight", divided(time.in_flight_ns, width), kStorage}};
    keep_if_any(out, std::move(depth));
    PageChart use = over_time(prefix + "use", "Computing and accelerators",
                              "How many CPUs computed, and how many accelerators were busy.", time, PageUnit::count);
    use.series = {{"computing tasks", divided(time.compute_ns, width), kCompute},
                  {"busy accelerators", divided(time.busy_ns, width), kAccelerator}};
    keep_if_any(out, std::move(use));
    PageChart waits = over_time(prefix + "waits", "Blocking waits",
                                "How often tasks blocked (voluntary context switches, other than those inside I/O "
                                "calls).",
                                time, PageUnit::per_second);
    waits.series = {{"blocking waits", divided(time.waits, seconds), kWaits}};
    keep_if_any(out, std::move(waits));
    return out;
}

std::vector<PageChart> request_charts(const JobAnalysis& job, const std::string& prefix) {
    std::vector<PageChart> out;
    if (!job.summary.requests.any()) {
        return out;
    }
    PageChart latency = bars(prefix + "request-latency", "Latency of asynchronous requests by size",
                             "From submission to completion, on a logarithmic scale.", PageUnit::seconds);
    latency.logarithmic = true;
    latency.x_title = "size asked for, up to";
    latency.series = {{"reads p50", {}, kStorage},
                      {"reads p99", {}, kStall},
                      {"writes p50", {}, kWrites},
                      {"writes p99", {}, kMetadata}};
    for (size_t i = 0; i < kSizeClasses; ++i) {
        const Histogram &reads = job.reads_by_size[i].request_latency, &writes = job.writes_by_size[i].request_latency;
        if (reads.count() + writes.count() > 0) {
            latency.labels.push_back(format_bytes(uint64_t{1} << i));
            latency.series[0].values.push_back(seconds_or_none(reads, 0.5));
            latency.series[1].values.push_back(seconds_or_none(reads, 0.99));
            latency.series[2].values.push_back(seconds_or_none(writes, 0.5));
            latency.series[3].values.push_back(seconds_or_none(writes, 0.99));
        }
    }
    keep_if_any(out, std::move(latency));
    PageChart depth =
        bars(prefix + "requests", "Share of the time by requests in flight",
             "Asynchronous requests between submission and completion; of the time with any.", PageUnit::percent);
    PageSeries time{"of the time", {}, kStorage};
    for (const DepthShare& part : depth_shares(job.summary.requests.all.depth, true)) {
        depth.labels.push_back((part.from == part.to ? "" : std::to_string(part.from) + " to ") +
                               std::to_string(part.to));
        time.values.push_back(100 * part.share);
    }
    depth.series = {std::move(time)};
    keep_if_any(out, std::move(depth));
    return out;
}

std::vector<PageChart> size_charts(const JobAnalysis& job, const std::string& prefix) {
    std::vector<PageChart> out;
    std::vector<std::string> labels;
    std::vector<double> reads, writes, read_rate, write_rate, p50, p99;
    size_t first = kSizeClasses, last = 0;
    for (size_t i = 0; i < kSizeClasses; ++i) {
        if (job.reads_by_size[i].calls + job.writes_by_size[i].calls > 0) {
            first = std::min(first, i);
            last = i;
        }
    }
    for (size_t i = first; i <= last && first < kSizeClasses; ++i) {
        const BySize &r = job.reads_by_size[i], &w = job.writes_by_size[i];
        labels.push_back(format_bytes(uint64_t{1} << i));
        reads.push_back(static_cast<double>(r.calls));
        writes.push_back(static_cast<double>(w.calls));
        read_rate.push_back(r.latency.count() > 0 ? r.bytes_per_second() : kNone);
        write_rate.push_back(w.latency.count() > 0 ? w.bytes_per_second() : kNone);
        p50.push_back(seconds_or_none(r.latency, 0.5));
        p99.push_back(seconds_or_none(r.latency, 0.99));
    }
    const auto by_size = [&](const char* id, const char* title, const char* note, PageUnit unit) {
        PageChart chart = bars(prefix + id, title, note, unit);
        chart.labels = labels;
        chart.x_title = "size asked for, up to";
        return chart;
    };
    PageChart sizes =
        by_size("sizes", "Request sizes", "Calls and requests on storage that move data.", PageUnit::count);
    sizes.series = {{"reads", reads, kStorage}, {"writes", writes, kWrites}};
    keep_if_any(out, std::move(sizes));
    PageChart rates = by_size("bandwidth", "Bandwidth by request size",
                              "Bytes over the time in the calls of that size.", PageUnit::bytes_per_second);
    rates.series = {{"reads", read_rate, kStorage}, {"writes", write_rate, kWrites}};
    keep_if_any(out, std::move(rates));
    PageChart latency =
        by_size("latency", "Read latency by request size", "On a logarithmic scale.", PageUnit::seconds);
    latency.logarithmic = true;
    latency.series = {{"p50", p50, kStorage}, {"p99", p99, kStall}};
    keep_if_any(out, std::move(latency));
    PageChart depths = bars(prefix + "depths", "Share of the time by queue depth",
                            "Mean depth in a hundred thousandth of the time; 0: no I/O in flight.", PageUnit::percent);
    PageSeries share{"of the time", {}, kStorage};
    for (size_t i = 0; i < job.depths.size(); ++i) {
        if (i < 2 || job.depths[i] > 0) {
            depths.labels.push_back(i == 0 ? "0" : "up to " + std::to_string(uint64_t{1} << (i - 1)));
            share.values.push_back(100 * job.depths[i]);
        }
    }
    depths.series = {std::move(share)};
    keep_if_any(out, std::move(depths));
    return out;
}

std::vector<PageChart> file_charts(const JobAnalysis& job, const std::string& prefix) {
    std::vector<PageChart> out;
    PageChart order =
        bars(prefix + "order", "Order of accesses by role",
             "Sequential: where the access before ended. Strided: jumps of equal length.", PageUnit::percent);
    order.kind = PageChart::Kind::stacked_bars;
    order.series = {{"sequential", {}, kCompute}, {"strided", {}, kMapped}, {"random", {}, kStall}};
    for (const OrderOfRole& row : job.orders) {
        const auto total = static_cast<double>(row.orders.total());
        order.labels.emplace_back(role_name(row.role));
        order.series[0].values.push_back(100 * static_cast<double>(row.orders.sequential) / total);
        order.series[1].values.push_back(100 * static_cast<double>(row.orders.strided) / total);
        order.series[2].values.push_back(100 * static_cast<double>(row.orders.random) / total);
    }
    keep_if_any(out, std::move(order));
    PageChart reuse =
        bars(prefix + "reuse", "Re-use distance",
             "Bytes read again, by how much else was read since: a page cache that large has them.", PageUnit::bytes);
    PageSeries again{"read again", {}, kStorage};
    size_t first = Reuse::kSizes, last = 0;
    for (size_t i = 0; i < Reuse::kSizes; ++i) {
        if (job.reuse.again_by[i] > 0) {
            first = std::min(first, i);
            last = i;
        }
    }
    for (size_t i = first; i <= last && first < Reuse::kSizes; ++i) {
        reuse.labels.push_back(i == 0 ? "nothing" : format_bytes(uint64_t{1} << i));
        again.values.push_back(job.reuse.again_by[i]);
    }
    reuse.x_title = "other data since, up to";
    reuse.series = {std::move(again)};
    keep_if_any(out, std::move(reuse));
    return out;
}

std::vector<PageChart> epoch_charts(const JobAnalysis& job, const std::string& prefix) {
    std::vector<PageChart> out;
    if (job.epochs.size() < 2) {
        return out;
    }
    PageChart time = bars(prefix + "epoch-times", "Epochs: time", "From its beginning to its end.", PageUnit::seconds);
    PageChart bytes =
        bars(prefix + "epoch-bytes", "Epochs: bytes", "Asked for by calls, and read by the device.", PageUnit::bytes);
    PageSeries elapsed{"elapsed", {}, kOther}, busy{"accelerators busy", {}, kAccelerator};
    PageSeries read{"read", {}, kStorage}, device{"device read", {}, kStall};
    for (const EpochFigures& row : job.epochs) {
        time.labels.push_back(std::to_string(row.epoch.number));
        bytes.labels.push_back(std::to_string(row.epoch.number));
        elapsed.values.push_back(static_cast<double>(row.epoch.end - row.epoch.begin) / 1e9);
        const auto accelerators = static_cast<double>(std::max<size_t>(job.summary.devices.size(), 1));
        busy.values.push_back(row.busy_ns / 1e9 / accelerators);
        read.values.push_back(row.read_bytes);
        device.values.push_back(row.device_bytes.value_or(kNone));
    }
    time.x_title = bytes.x_title = "epoch";
    time.series = {std::move(elapsed), std::move(busy)};
    bytes.series = {std::move(read), std::move(device)};
    keep_if_any(out, std::move(time));
    keep_if_any(out, std::move(bytes));
    return out;
}

}  // namespace reprise
