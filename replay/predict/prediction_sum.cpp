// SPDX-License-Identifier: MIT
#include "replay/predict/prediction_sum.h"

#include <algorithm>
#include <climits>
#include <cstddef>

#include "formats/oplog/header_facts.h"

namespace reprise {

Prediction begun(const PlannedJob& job, const PredictOptions& options) {
    Prediction out;
    out.cpus = options.cpus;
    out.async_depth = job.plan.async_depth;
    out.doubts = recorded_doubts(job.plan);
    out.calls = options.calls;
    out.names_cached = options.calls == CallTimes::model && !options.warm && options.storage.open_cold_ns <= 0;
    if (options.filter_asked) {
        out.doubts.accept_filter();
    }
    if (out.cpus == 0) {
        const int64_t recorded = read_fact(job.plan.log->header(), fact::capture_cpus).value_or(0);
        out.cpus = static_cast<int>(std::min<int64_t>(recorded, INT_MAX));
    }
    out.output = options.output;
    if (options.memory) {
        out.limit_bytes = options.memory->bytes;
        out.held_unknown = options.memory->held && !job.held();
    }
    return out;
}

void sum_up(Prediction& out, const Plan& plan, const VirtualCalls& calls) {
    out.bytes_read = calls.bytes_read;
    out.bytes_written = calls.bytes_written;
    out.storage_reads = calls.storage().reads;
    out.scattered_reads = calls.scattered_reads;
    out.storage_bytes = calls.storage().bytes_read;
    out.dropped_bytes = calls.storage().dropped_bytes;
    out.storage_ns = calls.storage().time_ns;
    out.journal_ns = calls.storage().journal_ns;
    out.unknown_journal_ns = calls.storage().unknown_journal_ns();
    out.touched_pages = calls.touched_pages;
    out.left_mapped_bytes = calls.storage().left_mapped();
    out.accelerators = !plan.streams.empty();
    out.shared_work = plan.queues.shared_work();
    out.shares_otherwise = QueueInference::shares_otherwise(out.elapsed_ns, out.recorded_ns);
    for (size_t what = 0; what < kUnmodelledKinds; ++what) {
        if (const uint64_t n = calls.unmodelled[what]; n != 0) {
            out.not_modelled.emplace_back(unmodelled_name(static_cast<Unmodelled>(what)), n);
        }
    }
    if (const uint64_t maps = plan.counted(Count::mapped_writes_unseen); maps != 0) {
        out.not_modelled.emplace_back("mapping on tmpfs whose writes left no fault", maps);
    }
    out.counters = plan.counters;
}

std::optional<TimeInterval> interval_of(const Prediction& out, const Plan& plan, const PredictOptions& options) {
    if (!why_no_interval(out, options.storage).empty()) {
        return std::nullopt;
    }
    ErrorSources from;
    from.elapsed_ns = out.elapsed_ns;
    from.path = out.path;
    from.speed_uncertainty = options.speed_uncertainty;
    from.predicted = true;
    from.after_waits_ns =
        after_waits_on_path(out.path, static_cast<double>(out.after_waits_ns), static_cast<double>(out.computing_ns));
    from.guessed_reads_ns = scattered_ns(out) + static_cast<double>(out.journal_ns);
    from.alone_ns = alone_ns(out.helpers, out.path.of(PathPart::asleep)) +
                    kept_by_limit(out.helpers, out.path.of(PathPart::asleep), out.elapsed_ns, out.recorded_ns);
    from.order_open = !plan.queues.event_loops.empty() || !plan.queues.shared.empty() ||
                      !lock_polls(out.doubts).empty() || !batched_syncs(out.doubts).empty();
    return reprise::interval_of(from);
}

}  // namespace reprise
