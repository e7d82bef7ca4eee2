// SPDX-License-Identifier: MIT
// What is worth knowing first of a job.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "analyze/job/job_page.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

using Figures = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kNotRecorded = "not recorded";

std::string ns(double value) { return format_duration(std::llround(value)); }
std::string bytes(double value) { return format_bytes(static_cast<uint64_t>(std::llround(std::max(value, 0.0)))); }
std::string decimal(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value >= 10 ? "%.0f" : "%.2f", value);
    return text;
}

std::string shares(const AccessOrders& orders) {
    const auto total = static_cast<double>(orders.total());
    if (total == 0) {
        return "no data moved";
    }
    return format_share(static_cast<double>(orders.sequential) / total) + " sequential, " +
           format_share(static_cast<double>(orders.strided) / total) + " strided, " +
           format_share(static_cast<double>(orders.random) / total) + " random";
}

/// " in 12 calls and 1,000 requests"
std::string in_words(uint64_t calls, uint64_t requests) {
    if (requests == 0) {
        return " in " + format_count(calls) + " calls";
    }
    return " in " + (calls == 0 ? std::string() : counted(calls, "call") + " and ") +
           counted(requests, "asynchronous request");
}

void add_data(const JobAnalysis& job, Figures& out) {
    const Summary& summary = job.summary;
    const double seconds = std::max(job.elapsed_s(), 1e-9);
    const RequestFigures& requests = summary.requests.all;
    out.emplace_back("read", format_bytes(summary.bytes_read) + in_words(summary.reads.count, requests.reads) + ", " +
                                 format_rate(static_cast<double>(summary.bytes_read) / seconds));
    out.emplace_back("written", format_bytes(summary.bytes_written) + in_words(summary.writes.count, requests.writes));
    if (summary.bytes_touched > 0) {
        out.emplace_back("mapped files", format_bytes(summary.bytes_touched) + " touched");
    }
    out.emplace_back("read latency", summary.reads.count == 0 ? "no reads"
                                                              : "p50 " + format_duration(summary.reads.p50) + ", p99 " +
                                                                    format_duration(summary.reads.p99));
    if (requests.requests != 0) {
        out.emplace_back("requests", decimal(requests.depth.mean()) + " in flight (p50 " +
                                         std::to_string(requests.depth.percentile(0.5)) + ", max " +
                                         std::to_string(requests.depth.max()) + "), latency p50 " +
                                         format_duration(requests.latency.percentile(0.5)) + ", p99 " +
                                         format_duration(requests.latency.percentile(0.99)));
    }
    out.emplace_back("metadata", format_count(job.metadata_calls) + " calls, " +
                                     format_count_rate(static_cast<double>(job.metadata_calls) / seconds, "calls") +
                                     ", " + ns(static_cast<double>(job.metadata_ns)) + " in them");
    AccessOrders all;
    for (const OrderOfRole& row : job.orders) {
        all += row.orders;
    }
    out.emplace_back("access", shares(all));
    out.emplace_back("re-use", job.reuse.again_bytes > 0
                                   ? bytes(job.reuse.again_bytes) + " of " + bytes(job.reuse.bytes()) +
                                         " read again (reads that begin in the same page), half after at most " +
                                         bytes(job.reuse.median())
                                   : "no two reads begin in the same page");
    out.emplace_back("queue depth",
                     decimal(job.mean_depth) + " while there is I/O, at most " + decimal(job.most_depth));
}

void add_cache(const JobAnalysis& job, Figures& out) {
    const auto hit = job.hit_share();
    const bool past = job.direct_read != 0;
    std::string cache = hit ? format_share(*hit) + (past ? " of the other bytes" : " of the bytes") +
                                  " were in memory, " + format_bytes(*job.fetched) + " fetched"
                        : job.fetched ? past ? "nothing else read" : "nothing read"
                                      : kNotRecorded;
    if (job.cache_added && *job.cache_added > 0) {
        cache = (job.fetched ? cache + ", " : "") + bytes(*job.cache_added) + " came in, " +
                bytes(job.cache_evicted.value_or(0)) + " evicted";
    }
    if (past) {
        cache = format_bytes(job.direct_read) + " read past it (O_DIRECT); " + cache;
    }
    out.emplace_back("page cache", cache);
    const auto times = job.amplification();
    std::string amplification =
        !job.device_read ? kNotRecorded
        : job.filtered() ? "unknown of a part of the files: the device read " + bytes(*job.device_read) + " for all"
                         : "nothing asked for";
    if (times) {
        amplification = decimal(*times) + " x (device " + bytes(*job.device_read) + ")";
        amplification +=
            job.summary.storage_bytes_touched > 0 ? "; of mapped files only faulted pages count as asked for" : "";
        constexpr double kMuch = 16 << 20, kPart = 0.3;
        const double others = job.read_for_others().value_or(0);
        if (others > std::max(kMuch, kPart * *job.device_read)) {
            amplification += "; " + bytes(others) + " of that was not for the job's files";
        }
    }
    out.emplace_back("read amplification", amplification);
}

void add_machine(const JobAnalysis& job, Figures& out) {
    const double elapsed = static_cast<double>(std::max<int64_t>(job.summary.elapsed(), 1));
    const bool timed = job.summary.time.compute > 0;
    std::string cpu = timed
                          ? decimal(static_cast<double>(job.summary.time.compute) / elapsed) + " computing in the mean"
                          : kNotRecorded;
    if (timed && job.cpus) {
        cpu += " of " + std::to_string(*job.cpus);
    }
    if (job.run_queue) {
        cpu += "; waited " + format_duration(*job.run_queue) + " for one";
    }
    out.emplace_back("CPUs", cpu);
    out.emplace_back("memory", job.memory ? "up to " + format_bytes(most_held(*job.memory)) : kNotRecorded);
    const bool waits = !job.summary.task_times.empty();
    out.emplace_back("blocking waits",
                     waits ? format_count(job.blocking_waits) + ", " +
                                 format_count_rate(
                                     static_cast<double>(job.blocking_waits) / std::max(job.elapsed_s(), 1e-9), "waits")
                           : kNotRecorded);
}

void add_accelerators(const JobAnalysis& job, Figures& out) {
    if (job.summary.devices.empty()) {
        out.emplace_back("accelerators", kNotRecorded);
        return;
    }
    const auto mlperf = job.summary.au_mlperf();
    out.emplace_back("accelerators", "AU " + format_share(job.summary.au().value_or(0)) +
                                         (mlperf ? " (MLPerf: " + format_share(*mlperf) + ")" : "") + ", stalled " +
                                         format_duration(job.summary.stall()));
    out.emplace_back("I/O behind accelerators", job.overlap.storage > 0
                                                    ? format_share(job.overlap.both / job.overlap.storage) + " of " +
                                                          ns(job.overlap.storage) + " with I/O in flight"
                                                    : "no I/O");
}

std::string one_order(const SampleOrder& order, const char* what) {
    std::string out(sample_order_name(order.kind));
    if (order.kind == SampleOrder::Kind::windowed) {
        out += " of about " + format_count(static_cast<uint64_t>(std::llround(order.window))) + " " + what;
    }
    return out;
}

}  // namespace

std::string order_words(const JobAnalysis& job) {
    if (job.epochs.empty()) {
        return job.passes.why_none.empty() ? "unknown" : "unknown: " + job.passes.why_none;
    }
    // The last epoch may be cut short; the one that read most stands for all.
    const auto most = std::max_element(job.epochs.begin(), job.epochs.end(),
                                       [](const auto& a, const auto& b) { return a.epoch.samples < b.epoch.samples; });
    const JobEpoch& epoch = most->epoch;
    std::string out;
    if (epoch.files.kind != SampleOrder::Kind::too_few) {
        out = "files " + one_order(epoch.files, "files");
    }
    if (epoch.records.kind != SampleOrder::Kind::too_few) {
        out += (out.empty() ? "" : ", ") + std::string("records ") + one_order(epoch.records, "records");
    }
    if (out.empty()) {
        return "unknown: too few samples";
    }
    size_t same = 0, known = 0;
    for (const EpochFigures& row : job.epochs) {
        known += row.epoch.as_before.has_value() ? 1 : 0;
        same += row.epoch.as_before.value_or(false) ? 1 : 0;
    }
    return out + (known == 0      ? ""
                  : same == known ? "; the same order in each epoch"
                  : same == 0     ? "; another order in each epoch"
                                  : "; the same order in some epochs");
}

Figures key_figures(const AnalyzedJob& analyzed) {
    const JobAnalysis& job = analyzed.job;
    const Summary& summary = job.summary;
    Figures out;
    out.emplace_back("elapsed", format_duration(summary.elapsed()));
    out.emplace_back("tasks", format_count(summary.tasks_with_ops) + " in " +
                                  counted(summary.processes, "process", "processes") + ", " +
                                  counted(summary.files, "file"));
    add_data(job, out);
    add_cache(job, out);
    add_accelerators(job, out);
    std::string epochs = job.epochs.empty() ? "unknown" : format_count(job.epochs.size());
    epochs += job.passes.by == JobEpochs::By::marks     ? " (marked)"
              : job.passes.by == JobEpochs::By::samples ? " (by the samples read)"
                                                        : "";
    out.emplace_back("epochs", epochs);
    out.emplace_back("order", order_words(job));
    out.emplace_back("skew", job.by_process.count == 0
                                 ? "no data moved"
                                 : "processes " + decimal(job.by_process.most_over_mean()) + " x the mean (Gini " +
                                       decimal(job.by_process.gini) + "), files Gini " + decimal(job.by_file.gini));
    out.emplace_back(
        "bursts", job.bursts.bursts.empty()
                      ? "none"
                      : counted(job.bursts.bursts.size(), "burst") + " of " +
                            (job.bursts_of_checkpoints ? "checkpoints, " : "writing, ") + bytes(job.bursts.bytes) +
                            (job.bursts.period_ns > 0 ? ", one every " + format_duration(job.bursts.period_ns) : ""));
    add_machine(job, out);
    return out;
}

}  // namespace reprise
