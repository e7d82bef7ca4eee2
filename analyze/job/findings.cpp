// SPDX-License-Identifier: MIT
#include "analyze/job/findings.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr double kWorthIt = 0.05;  // of the elapsed time

std::string ns(double value) { return format_duration(std::llround(value)); }
std::string bytes(double value) { return format_bytes(static_cast<uint64_t>(std::llround(std::max(value, 0.0)))); }
std::string times(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
}

using Out = std::vector<JobFinding>;

void add_bounds(const JobBounds& bounds, Out& out) {
    if (!bounds.known()) {
        return;
    }
    const auto elapsed = static_cast<double>(bounds.modelled->elapsed);
    const auto with = [&](const std::optional<JobBounds::WhatIf>& what, const char* begin, const char* fast) {
        const double saved = bounds.saved(what);
        if (!what || saved < kWorthIt) {
            return;
        }
        out.push_back({saved, std::string(begin) + " " + format_share(saved) + " of the elapsed time: with " + fast +
                                  " the job would take " + ns(static_cast<double>(what->elapsed)) + " instead of " +
                                  ns(elapsed) + "."});
    };
    with(bounds.storage, "Storage decides", "infinitely fast storage");
    with(bounds.processor, "The processors decide", "infinitely fast processors");
    with(bounds.accelerator, "The accelerators decide", "infinitely fast accelerators");
    const double unexplained = static_cast<double>(bounds.path.unexplained) / elapsed;
    if (unexplained >= kWorthIt) {
        out.push_back({unexplained, format_share(unexplained) + " of the elapsed time (" +
                                        ns(static_cast<double>(bounds.path.unexplained)) +
                                        ") is waiting for something that was not recorded, such as the network."});
    }
    const double storage = bounds.saved(bounds.storage);
    if (storage < kWorthIt && bounds.storage) {
        out.push_back({0.15, "Faster storage hardly helps: infinitely fast storage would save " +
                                 format_share(std::max(storage, 0.0)) + " of the elapsed time."});
    }
}

void add_accelerators(const JobAnalysis& job, Out& out) {
    if (job.summary.devices.empty()) {
        return;
    }
    double span = 0;
    for (const DeviceUtilisation& device : job.summary.devices) {
        span += static_cast<double>(device.last_work - device.first_work);
    }
    const auto stall = static_cast<double>(job.summary.stall());
    if (span > 0 && stall / span >= kWorthIt) {
        out.push_back({stall / span, "The accelerators stood still for " + format_share(stall / span) +
                                         " of the time between their first and last work; utilisation (AU) is " +
                                         format_share(job.summary.au().value_or(0)) + "."});
    }
    if (job.overlap.storage > 0 && job.overlap.busy > 0) {
        const double hidden = job.overlap.both / job.overlap.storage;
        const double shown = (job.overlap.storage - job.overlap.both) / static_cast<double>(job.summary.elapsed());
        if (hidden < 0.5 && shown >= kWorthIt) {
            out.push_back({shown, "Only " + format_share(hidden) +
                                      " of the time with I/O in flight overlaps with accelerator work (" +
                                      ns(job.overlap.both) + " of " + ns(job.overlap.storage) + ")."});
        }
    }
}

/// Time in calls of all tasks weighs as much as it is of the time of all tasks.
double of_task_time(const JobAnalysis& job, double time) {
    const auto total = static_cast<double>(job.summary.time.total);
    return total > 0 ? std::min(time / total, 1.0) : 0;
}

void add_calls(const JobAnalysis& job, Out& out) {
    const double all =
        static_cast<double>(job.data_ns) + static_cast<double>(job.metadata_ns) + static_cast<double>(job.sync_ns);
    const auto metadata = static_cast<double>(job.metadata_ns);
    if (all > 0 && metadata / all >= 0.3 && of_task_time(job, metadata) >= 0.01) {
        out.push_back({of_task_time(job, metadata) + 0.05,
                       "Metadata calls (open, stat, close, ...) take " + format_share(metadata / all) +
                           " of the time in I/O calls: " + format_count(job.metadata_calls) + " calls in " +
                           ns(metadata) + "."});
    }
    const auto sync = static_cast<double>(job.sync_ns);
    if (all > 0 && sync / all >= 0.3 && of_task_time(job, sync) >= 0.01) {
        out.push_back({of_task_time(job, sync) + 0.05,
                       "Waiting for syncs takes " + format_share(sync / all) + " of the time in I/O calls: " +
                           format_count(job.sync_calls) + " calls in " + ns(sync) + "."});
    }
    double small = 0, reads = 0, small_ns = 0;
    constexpr size_t kSmall = 15;  // up to 32 KiB
    for (size_t i = 0; i < job.reads_by_size.size(); ++i) {
        const auto calls = static_cast<double>(job.reads_by_size[i].calls);
        reads += calls;
        small += i <= kSmall ? calls : 0;
        small_ns += i <= kSmall ? job.reads_by_size[i].latency.sum() : 0;
    }
    if (reads >= 1000 && small / reads >= 0.5 && of_task_time(job, small_ns) >= 0.02) {
        out.push_back({of_task_time(job, small_ns) + 0.03,
                       format_share(small / reads) + " of the reads ask for 32 KiB or less (" +
                           format_count(static_cast<uint64_t>(small)) + " of " +
                           format_count(static_cast<uint64_t>(reads)) + "), and take " + ns(small_ns) + "."});
    }
}

void add_data(const JobAnalysis& job, Out& out) {
    AccessOrders data;
    for (const OrderOfRole& row : job.orders) {
        if (row.role == Role::dataset) {
            data = row.orders;
        }
    }
    const auto random = static_cast<double>(data.random), total = static_cast<double>(data.total());
    if (total >= 1000 && random / total >= 0.5) {
        out.push_back({0.1, format_share(random / total) + " of the accesses to the data set are at random places in "
                                                           "their files, so that read-ahead does not help."});
    }
    // Of mapped files only the pages that faulted count as asked for.
    const bool mapped = job.summary.storage_bytes_touched * 5 > job.asked();
    const auto own = job.own_amplification(), device = job.amplification();
    // The device's counters hold what others read, too; what came into memory lacks what the device gave twice.
    const auto times_read = own && device ? std::min(own, device) : own ? own : device;
    if (times_read && *times_read >= 1.3 && !mapped && job.asked() > (1 << 20)) {
        out.push_back({std::min(0.1 * *times_read, 0.5),
                       times(*times_read) + " bytes were read from storage for each byte that was asked for (" +
                           bytes(*times_read * static_cast<double>(job.asked())) + " for " + format_bytes(job.asked()) +
                           ")."});
    }
    if (job.reuse.again_bytes > 0.2 * job.reuse.bytes() && job.reuse.bytes() > (1 << 20)) {
        out.push_back({0.12, "Of " + bytes(job.reuse.bytes()) + " read, " + bytes(job.reuse.again_bytes) +
                                 " by reads that begin where others began before; half of them after at most " +
                                 bytes(job.reuse.median()) +
                                 " of other data, so a page cache of that size serves them."});
    }
    if (job.by_process.count > 1 && job.by_process.most_over_mean() >= 2 && job.by_process.most > (1 << 20)) {
        out.push_back({0.08, "One of " + std::to_string(job.by_process.count) + " processes moves " +
                                 times(job.by_process.most_over_mean()) +
                                 " times as many bytes as they do in the mean (" + bytes(job.by_process.most) + ")."});
    }
}

void add_bursts(const JobAnalysis& job, Out& out) {
    if (job.bursts.bursts.empty() || job.bursts.bytes < (1 << 20)) {
        return;
    }
    double time = 0, most = 0;
    for (const Burst& burst : job.bursts.bursts) {
        time += static_cast<double>(burst.end_ns - burst.begin_ns);
        most = std::max(most, burst.bytes);
    }
    const double share = time / static_cast<double>(std::max<int64_t>(job.summary.elapsed(), 1));
    const std::string of = job.bursts_of_checkpoints ? "Checkpoints are" : "The job writes";
    const uint64_t count = job.bursts.bursts.size();
    std::string sentence = of + (job.bursts_of_checkpoints ? " written in " : " in ") + counted(count, "burst") +
                           " of up to " + bytes(most) + ", " + ns(time / static_cast<double>(count)) +
                           " each in the mean";
    if (job.bursts.period_ns > 0) {
        sentence += ", one every " + format_duration(job.bursts.period_ns);
    }
    out.push_back({std::min(share, 1.0), sentence + "."});
}

void add_epochs(const JobAnalysis& job, Out& out) {
    if (job.epochs.size() < 2) {
        return;
    }
    const EpochFigures& first = job.epochs.front();
    const auto length = [](const EpochFigures& row) { return static_cast<double>(row.epoch.end - row.epoch.begin); };
    double later = 0, device = 0;
    bool known = true;
    for (size_t i = 1; i < job.epochs.size(); ++i) {
        later += length(job.epochs[i]) / static_cast<double>(job.epochs.size() - 1);
        known = known && job.epochs[i].device_bytes.has_value();
        device += job.epochs[i].device_bytes.value_or(0) / static_cast<double>(job.epochs.size() - 1);
    }
    if (later <= 0 || length(first) <= 0) {
        return;
    }
    const double saved = 1 - later / length(first);
    if (std::abs(saved) < 0.1) {
        return;
    }
    std::string sentence = "The first epoch takes " + ns(length(first)) + ", later ones " + ns(later) + " in the mean";
    if (known && first.device_bytes) {
        sentence += "; the device read " + bytes(*first.device_bytes) + " in the first and " + bytes(device) +
                    " in each later one";
    }
    out.push_back({std::min(std::abs(saved) * 0.5, 0.5), sentence + "."});
}

void add_waiting(const JobAnalysis& job, Out& out) {
    if (job.run_queue) {
        const auto waited = static_cast<double>(*job.run_queue);
        const double share = waited / static_cast<double>(std::max<int64_t>(job.summary.elapsed(), 1));
        if (share >= 0.1) {
            out.push_back({std::min(share, 1.0) * 0.5, "Tasks waited " + ns(waited) +
                                                           " for a CPU, all together: there are too few, or a quota "
                                                           "holds them."});
        }
    }
    if (job.cache_evicted && job.device_read && *job.cache_evicted > 0.1 * *job.device_read &&
        *job.cache_evicted > (16 << 20)) {
        out.push_back(
            {0.1, bytes(*job.cache_evicted) +
                      " of the job's files left the page cache while it ran: the data do not fit in memory."});
    }
}

}  // namespace

std::vector<JobFinding> find_all(const JobAnalysis& job, const JobBounds* bounds) {
    Out out;
    if (bounds != nullptr) {
        add_bounds(*bounds, out);
    }
    add_accelerators(job, out);
    add_calls(job, out);
    add_data(job, out);
    add_bursts(job, out);
    add_epochs(job, out);
    add_waiting(job, out);
    std::stable_sort(out.begin(), out.end(),
                     [](const JobFinding& a, const JobFinding& b) { return a.weight > b.weight; });
    return out;
}

std::vector<std::string> top_findings(const JobAnalysis& job, const JobBounds* bounds) {
    std::vector<std::string> out;
    for (const JobFinding& finding : find_all(job, bounds)) {
        if (out.size() < 3) {
            out.push_back(finding.sentence);
        }
    }
    return out;
}

}  // namespace reprise
