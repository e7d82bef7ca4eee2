// SPDX-License-Identifier: MIT
#include "analyze/job/analysis.h"

#include <algorithm>
#include <limits>

#include "analyze/job/job_counter.h"
#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/part_of_job.h"

namespace reprise {
namespace {

std::pair<int64_t, int64_t> whole_of(const LogReader& log) {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
    for (const BlockInfo& block : log.blocks()) {
        begin = std::min(begin, block.begin);
        end = std::max(end, block.end);
    }
    return begin <= end ? std::pair(begin, end) : std::pair<int64_t, int64_t>(0, 0);
}

/// Sum of a rate over all of its intervals; none where it was not recorded.
std::optional<double> sum_of(const Context& context, std::string_view name) {
    constexpr double kMib = 1 << 20;
    for (const ContextSeries& series : context.series) {
        if (series.name == name) {
            double sum = 0;
            for (const double value : series.values) {
                sum += value;
            }
            return sum * kMib * static_cast<double>(context.interval_ns) / 1e9;
        }
    }
    // Where others of the same source are there, this one was 0 throughout.
    return std::nullopt;
}

void around_the_job(const LogReader& log, JobAnalysis& out) {
    out.context = read_context(log.header());
    const bool recorded = out.context.interval_ns > 0;
    const auto sum = [&](std::string_view name) {
        const std::optional<double> bytes = sum_of(out.context, name);
        return bytes || !recorded ? bytes : std::optional<double>(0);
    };
    out.device_read = sum("device read");
    out.device_written = sum("device write");
    out.cache_added = sum("page cache added");
    out.cache_evicted = sum("page cache evicted");
    out.memory = [&]() -> std::optional<std::vector<HeldTotal>> {
        const std::optional<HeldMemories> held = held_memory(log);
        return held ? std::optional(total_held(*held)) : std::nullopt;
    }();
    out.run_queue = read_fact(log.header(), fact::run_queue);
    out.cpus = read_fact(log.header(), fact::capture_cpus);
    const auto add = [](std::optional<uint64_t>& to, const std::optional<uint64_t>& part) {
        if (part) {
            to = to.value_or(0) + *part;
        }
    };
    for (const RoleSummary& role : out.summary.roles) {
        if (role.role != Role::ipc) {
            add(out.fetched, role.bytes_fetched);
            add(out.cached, role.bytes_cached);
        }
    }
    // A capture of an earlier version has only the sum of what came again.
    if (out.fetched && !out.filtered() && !refetched_pages(log)) {
        *out.fetched +=
            static_cast<uint64_t>(std::max<int64_t>(read_fact(log.header(), fact::refetched).value_or(0), 0));
    }
}

/// What the device read during each epoch, by the intervals that lie in it.
void device_by_epoch(JobAnalysis& out) {
    constexpr double kMib = 1 << 20;
    for (const ContextSeries& series : out.context.series) {
        if (series.name != "device read") {
            continue;
        }
        const auto interval = static_cast<double>(out.context.interval_ns);
        for (EpochFigures& epoch : out.epochs) {
            double sum = 0;
            for (size_t i = 0; i < series.values.size(); ++i) {
                const double from = std::max(static_cast<double>(i) * interval, static_cast<double>(epoch.epoch.begin));
                const double to = std::min(static_cast<double>(i + 1) * interval, static_cast<double>(epoch.epoch.end));
                sum += std::max(to - from, 0.0) / 1e9 * series.values[i] * kMib;
            }
            epoch.device_bytes = sum;
        }
    }
}

}  // namespace

std::optional<double> JobAnalysis::amplification() const {
    if (!device_read || asked() == 0 || filtered()) {
        return std::nullopt;
    }
    return *device_read / static_cast<double>(asked());
}

std::optional<double> JobAnalysis::own_amplification() const {
    if (!fetched || asked() == 0) {
        return std::nullopt;
    }
    return (static_cast<double>(*fetched) + static_cast<double>(direct_read)) / static_cast<double>(asked());
}

std::optional<double> JobAnalysis::read_for_others() const {
    if (!fetched || !device_read || filtered()) {
        return std::nullopt;
    }
    return std::max(*device_read - static_cast<double>(*fetched) - static_cast<double>(direct_read), 0.0);
}

std::optional<double> JobAnalysis::hit_share() const {
    if (!fetched || asked_of_cache() == 0) {
        return std::nullopt;
    }
    return std::clamp(1 - static_cast<double>(*fetched) / static_cast<double>(asked_of_cache()), 0.0, 1.0);
}

JobAnalysis analyze_job(const LogReader& log, const AnalyzeOptions& options) {
    JobAnalysis out;
    out.path = log.path().string();
    out.header = log.header();
    out.losses = log.tables().losses();
    out.part = part_of_job(log.tables()).why();
    out.recovered = log.recovered();
    out.filter = options.filter.to_string();
    JobCounter counter(log, options, whole_of(log));
    const auto busy = [&](ProcessId process, int64_t device, int64_t begin, int64_t end) {
        counter.busy(process, device, begin, end);
    };
    out.summary = summarize(log, options.filter, options.progress, busy);
    OpBlock block;
    uint64_t done = log.op_count();
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        counter.add(block);
        log.forget(where);
        done += block.count();
        if (options.progress) {
            options.progress(done);
        }
    }
    around_the_job(log, out);
    counter.finish(out);
    device_by_epoch(out);
    return out;
}

}  // namespace reprise
