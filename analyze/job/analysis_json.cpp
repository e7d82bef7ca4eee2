// SPDX-License-Identifier: MIT
// A job's analysis as JSON, and what its log does not hold.
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyze/job/analysis.h"
#include "analyze/job/not_recorded.h"
#include "formats/support/escape.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

std::string name(std::string_view bytes) {
    std::string out;
    append_escaped(out, bytes);
    return out;
}

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

/// Whole numbers: a part of a byte or of a nanosecond says nothing.
Json whole(const OverTime& values) {
    Json out = Json::array();
    for (const double value : values) {
        out.push_back(std::llround(value));
    }
    return out;
}

Json over_time_json(const JobOverTime& time) {
    return {{"begin_ns", time.grid.begin()},
            {"interval_ns", time.grid.width_ns()},
            {"read_bytes", whole(time.read_bytes)},
            {"written_bytes", whole(time.written_bytes)},
            {"touched_bytes", whole(time.touched_bytes)},
            {"reads", whole(time.reads)},
            {"writes", whole(time.writes)},
            {"metadata_calls", whole(time.metadata)},
            {"syncs", whole(time.syncs)},
            {"blocking_waits", whole(time.waits)},
            {"compute_ns", whole(time.compute_ns)},
            {"in_flight_ns", whole(time.in_flight_ns)},
            {"accelerator_busy_ns", whole(time.busy_ns)}};
}

Json lanes_json(const std::vector<JobLane>& lanes) {
    Json out = Json::array();
    for (const JobLane& lane : lanes) {
        std::array<double, 4> sums{};
        for (const auto& parts : lane.parts) {
            for (size_t i = 0; i < sums.size(); ++i) {
                sums[i] += parts[i];
            }
        }
        Json row = {{"name", name(lane.name)}, {"task", lane.task == 0 ? Json(nullptr) : Json(lane.task)}};
        if (lane.accelerator) {
            row["busy_ns"] = std::llround(sums[0]);
            row["stalled_ns"] = std::llround(sums[1]);
        } else {
            row["tasks"] = lane.of;
            row["compute_ns"] = std::llround(sums[0]);
            row["storage_ns"] = std::llround(sums[1]);
            row["accelerator_ns"] = std::llround(sums[2]);
            row["other_waits_ns"] = std::llround(sums[3]);
        }
        out.push_back(std::move(row));
    }
    return out;
}

Json sizes_json(const std::array<BySize, kSizeClasses>& sizes) {
    Json out = Json::array();
    for (size_t i = 0; i < sizes.size(); ++i) {
        const BySize& row = sizes[i];
        if (row.calls == 0) {
            continue;
        }
        const bool timed = row.latency.count() > 0, requested = row.request_latency.count() > 0;
        out.push_back({{"up_to_bytes", uint64_t{1} << i},
                       {"calls", row.calls},
                       {"bytes", row.bytes},
                       {"bytes_per_s", timed ? Json(row.bytes_per_second()) : Json(nullptr)},
                       {"p50_ns", timed ? Json(row.latency.percentile(0.5)) : Json(nullptr)},
                       {"p99_ns", timed ? Json(row.latency.percentile(0.99)) : Json(nullptr)},
                       {"requests", row.request_latency.count()},
                       {"request_p50_ns", requested ? Json(row.request_latency.percentile(0.5)) : Json(nullptr)},
                       {"request_p99_ns", requested ? Json(row.request_latency.percentile(0.99)) : Json(nullptr)}});
    }
    return out;
}

Json kinds_json(const std::vector<KindOfRole>& kinds) {
    Json out = Json::array();
    for (const KindOfRole& row : kinds) {
        const bool sized = row.sizes.count() > 0;
        out.push_back({{"op", info(row.kind).name},
                       {"role", role_name(row.role)},
                       {"calls", row.calls},
                       {"errors", row.errors},
                       {"bytes", row.bytes},
                       {"time_ns", row.latency.sum()},
                       {"latency_ns", to_json(latency_of(row.latency))},
                       {"size_p50", sized ? Json(row.sizes.percentile(0.5)) : Json(nullptr)},
                       {"size_max", sized ? Json(row.sizes.max()) : Json(nullptr)}});
    }
    return out;
}

Json orders_json(const AccessOrders& orders) {
    return {{"accesses", orders.total()},
            {"sequential", orders.sequential},
            {"strided", orders.strided},
            {"random", orders.random}};
}

Json access_json(const JobAnalysis& job) {
    AccessOrders all;
    Json roles = Json::array();
    for (const OrderOfRole& row : job.orders) {
        all += row.orders;
        Json one = {{"role", role_name(row.role)}};
        one.update(orders_json(row.orders));
        roles.push_back(std::move(one));
    }
    Json out = orders_json(all);
    out["by_role"] = std::move(roles);
    return out;
}

Json reuse_json(const Reuse& reuse, double sampled) {
    Json distances = Json::array();
    for (size_t i = 0; i < reuse.again_by.size(); ++i) {
        if (reuse.again_by[i] > 0) {
            distances.push_back({{"up_to_bytes", uint64_t{1} << i}, {"bytes", reuse.again_by[i]}});
        }
    }
    return {{"first_bytes", reuse.first_bytes},
            {"again_bytes", reuse.again_bytes},
            {"median_distance_bytes", reuse.again_bytes > 0 ? Json(reuse.median()) : Json(nullptr)},
            {"longest_distance_bytes", reuse.again_bytes > 0 ? Json(reuse.longest) : Json(nullptr)},
            {"sampled_share", sampled},
            {"distances", std::move(distances)}};
}

Json hot_json(const JobAnalysis& job, bool directories) {
    Json out = Json::array();
    if (directories) {
        for (const HotDirectory& row : job.hot_directories) {
            out.push_back({{"path", name(row.path)},
                           {"files", row.files},
                           {"ops", row.ops},
                           {"read_bytes", row.read},
                           {"written_bytes", row.written},
                           {"time_ns", row.time}});
        }
        return out;
    }
    for (const HotFile& row : job.hot_files) {
        out.push_back({{"path", name(row.path)},
                       {"role", role_name(row.role)},
                       {"ops", row.use.ops},
                       {"opens", row.use.opens},
                       {"read_bytes", row.use.read},
                       {"written_bytes", row.use.written},
                       {"time_ns", row.use.time},
                       {"order", orders_json(row.use.orders)},
                       {"reuse_distance_bytes", row.reuse < 0 ? Json(nullptr) : Json(row.reuse)}});
    }
    return out;
}

Json order_json(const SampleOrder& order) {
    if (order.kind == SampleOrder::Kind::too_few) {
        return nullptr;
    }
    const bool windowed = order.kind == SampleOrder::Kind::windowed;
    return {{"order", sample_order_name(order.kind)},
            {"forward_share", order.forward_share},
            {"window_samples", windowed ? Json(std::llround(order.window)) : Json(nullptr)}};
}

Json epochs_json(const JobAnalysis& job) {
    constexpr const char* kBy[] = {"nothing", "marks", "samples"};
    Json rows = Json::array();
    for (const EpochFigures& row : job.epochs) {
        const int64_t elapsed = row.epoch.end - row.epoch.begin;
        rows.push_back(
            {{"epoch", row.epoch.number},
             {"begin_ns", row.epoch.begin},
             {"elapsed_ns", elapsed},
             {"samples", std::llround(row.epoch.samples)},
             {"read_bytes", std::llround(row.read_bytes)},
             {"written_bytes", std::llround(row.written_bytes)},
             {"reads", std::llround(row.reads)},
             {"read_time_ns", std::llround(row.read_ns)},
             {"device_read_bytes", row.device_bytes ? Json(std::llround(*row.device_bytes)) : Json(nullptr)},
             {"accelerator_busy_ns", job.summary.devices.empty() ? Json(nullptr) : Json(std::llround(row.busy_ns))},
             {"files", order_json(row.epoch.files)},
             {"records", order_json(row.epoch.records)},
             {"as_before", or_null(row.epoch.as_before)}});
    }
    return {{"by", kBy[static_cast<size_t>(job.passes.by)]},
            {"why_none", job.passes.why_none.empty() ? Json(nullptr) : Json(job.passes.why_none)},
            {"data_set_samples", std::llround(job.passes.data_set)},
            {"epochs", std::move(rows)}};
}

Json skew_json(const Skew& skew) {
    return {{"count", skew.count},     {"most_bytes", skew.most},
            {"mean_bytes", skew.mean}, {"most_over_mean", skew.most_over_mean()},
            {"gini", skew.gini},       {"top_tenth_share", skew.top_share}};
}

Json bursts_json(const JobAnalysis& job) {
    Json rows = Json::array();
    for (const Burst& burst : job.bursts.bursts) {
        rows.push_back({{"begin_ns", burst.begin_ns},
                        {"elapsed_ns", burst.end_ns - burst.begin_ns},
                        {"bytes", std::llround(burst.bytes)}});
    }
    return {{"of", job.bursts_of_checkpoints ? "checkpoint" : "all"},
            {"bytes", std::llround(job.bursts.bytes)},
            {"period_ns", job.bursts.bursts.size() > 1 ? Json(job.bursts.period_ns) : Json(nullptr)},
            {"bursts", std::move(rows)}};
}

Json depth_json(const JobAnalysis& job) {
    Json shares = Json::array();
    for (size_t i = 0; i < job.depths.size(); ++i) {
        if (job.depths[i] > 0) {
            shares.push_back({{"up_to", i == 0 ? 0 : int64_t{1} << (i - 1)}, {"share", job.depths[i]}});
        }
    }
    return {{"mean_while_any", job.mean_depth}, {"most", job.most_depth}, {"time", std::move(shares)}};
}

Json context_json(const Context& context) {
    if (context.interval_ns == 0) {
        return nullptr;
    }
    Json series = Json::array();
    for (const ContextSeries& one : context.series) {
        series.push_back({{"name", one.name}, {"unit", one.unit}, {"values", one.values}});
    }
    return {{"interval_ns", context.interval_ns}, {"series", std::move(series)}};
}

Json memory_json(const std::optional<std::vector<HeldTotal>>& memory) {
    if (!memory) {
        return nullptr;
    }
    Json points = Json::array();
    for (const HeldTotal& point : *memory) {
        points.push_back({point.time_ns, point.bytes});
    }
    return {{"most_bytes", most_held(*memory)}, {"points", std::move(points)}};
}

}  // namespace

Json to_json(const JobAnalysis& job, const Tables& tables) {
    return {{"summary", to_json(job.summary, tables)},
            {"over_time", over_time_json(job.time)},
            {"tasks", lanes_json(job.lanes)},
            {"reads_by_size", sizes_json(job.reads_by_size)},
            {"writes_by_size", sizes_json(job.writes_by_size)},
            {"calls", kinds_json(job.kinds)},
            {"access_order", access_json(job)},
            {"reuse", reuse_json(job.reuse, job.sampled)},
            {"hot_files", hot_json(job, false)},
            {"hot_directories", hot_json(job, true)},
            {"epochs", epochs_json(job)},
            {"skew", {{"processes", skew_json(job.by_process)}, {"files", skew_json(job.by_file)}}},
            {"bursts", bursts_json(job)},
            {"overlap",
             {{"storage_ns", job.overlap.storage},
              {"accelerator_ns", job.summary.devices.empty() ? Json(nullptr) : Json(job.overlap.busy)},
              {"both_ns", job.summary.devices.empty() ? Json(nullptr) : Json(job.overlap.both)}}},
            {"queue_depth", depth_json(job)},
            {"time_in_calls",
             {{"data_ns", job.data_ns},
              {"metadata_ns", job.metadata_ns},
              {"sync_ns", job.sync_ns},
              {"metadata_calls", job.metadata_calls},
              {"sync_calls", job.sync_calls}}},
            {"switches", {{"blocking_waits", job.blocking_waits}, {"run_queue_ns", or_null(job.run_queue)}}},
            {"page_cache",
             {{"asked_bytes", job.asked()},
              {"direct_bytes", job.direct_read},
              {"fetched_bytes", or_null(job.fetched)},
              {"cached_before_bytes", or_null(job.cached)},
              {"hit_share", or_null(job.hit_share())},
              {"added_bytes", or_null(job.cache_added)},
              {"evicted_bytes", or_null(job.cache_evicted)},
              {"device_read_bytes", or_null(job.device_read)},
              {"device_written_bytes", or_null(job.device_written)},
              {"read_amplification", or_null(job.amplification())}}},
            {"context", context_json(job.context)},
            {"memory", memory_json(job.memory)},
            {"cpus", or_null(job.cpus)},
            {"not_recorded", not_recorded(job)}};
}

}  // namespace reprise
