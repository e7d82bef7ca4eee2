// SPDX-License-Identifier: MIT
// A summary as JSON.
#include <nlohmann/json.hpp>

#include "analyze/summary.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

template <class Part>
Json utilisation(const Part& part) {
    return {{"begin_ns", part.begin},
            {"end_ns", part.end},
            {"submits", part.submits},
            {"busy_ns", part.busy},
            {"stall_ns", part.stall()},
            {"au", number_or_null(part.au())},
            {"au_mlperf", number_or_null(part.au_mlperf())}};
}

Json device_json(const DeviceUtilisation& device, const Tables& tables) {
    Json out = {{"process", device.process}, {"device", device.device}};
    if (device.process < tables.processes.size()) {
        out["pid"] = tables.processes[device.process].pid;
    }
    out.update(utilisation(device));
    const Histogram& steps = device.steps.lengths;
    if (steps.count() > 0) {
        constexpr const char* kRules[] = {"mark", "span", "submission"};
        out["steps"] = {{"by", kRules[static_cast<size_t>(device.steps.rule)]},
                        {"count", steps.count() + 1},
                        {"p50_ns", steps.percentile(0.5)},
                        {"p99_ns", steps.percentile(0.99)},
                        {"max_ns", steps.max()}};
    }
    Json epochs = Json::array();
    for (const EpochUtilisation& epoch : device.epochs) {
        Json row = {{"epoch", epoch.number}, {"complete", epoch.complete}};
        row.update(utilisation(epoch));
        epochs.push_back(std::move(row));
    }
    out["epochs"] = std::move(epochs);
    return out;
}

}  // namespace

Json devices_json(const AcceleratorUse& use, const Tables& tables) {
    Json out = Json::array();
    for (const DeviceUtilisation& device : use.devices) {
        out.push_back(device_json(device, tables));
    }
    return out;
}

namespace {

Json edges_json(const Summary& summary) {
    Json out = Json::object();
    for (size_t kind = 1; kind < summary.edges_by_kind.size(); ++kind) {
        if (summary.edges_by_kind[kind] != 0) {
            out[std::string(edge_name(static_cast<EdgeKind>(kind)))] = summary.edges_by_kind[kind];
        }
    }
    return out;
}

Json time_json(const TaskTime& row) {
    Json known = Json::object();
    for (size_t kind = 1; kind < row.waited.size(); ++kind) {
        if (row.waited[kind]) {
            known[std::string(edge_name(static_cast<EdgeKind>(kind)))] = row.waited[kind];
        }
    }
    return {{"task", row.task},
            {"span_ns", row.span()},
            {"io_ns", row.io},
            {"compute_ns", row.compute},
            {"blocked_ns", row.blocked()},
            {"explained_ns", row.explained()},
            {"explained_by_ns", known},
            {"unexplained_ns", row.unexplained},
            {"slept_ns", row.slept},
            {"locks_ns", row.locks},
            {"idle_ns", row.idle},
            {"rest_ns", row.rest()}};
}

}  // namespace

Json to_json(const Latency& latency) {
    return {{"min", latency.min},   {"p50", latency.p50}, {"p90", latency.p90},  {"p99", latency.p99},
            {"p999", latency.p999}, {"max", latency.max}, {"mean", latency.mean}};
}

Json to_json(const Summary& summary, const Tables& tables) {
    Json out = {{"ops", summary.ops},
                {"io_ops", summary.io_ops},
                {"errors", summary.errors},
                {"left_out_ops", summary.left_out_ops},
                {"left_out_bytes", summary.left_out_bytes},
                {"tasks", summary.tasks},
                {"tasks_with_ops", summary.tasks_with_ops},
                {"processes", summary.processes},
                {"files", summary.files},
                {"handles", summary.handles},
                {"bytes", summary.bytes()},
                {"bytes_read", summary.bytes_read},
                {"bytes_written", summary.bytes_written},
                {"bytes_touched", summary.bytes_touched},
                {"storage_bytes_read", summary.storage_bytes_read},
                {"storage_bytes_touched", summary.storage_bytes_touched},
                {"edges", summary.edges},
                {"inferred_edges", summary.inferred_edges},
                {"edges_by_kind", edges_json(summary)},
                {"requests", to_json(summary.requests)},
                {"task_time", to_json(summary.time)},
                {"begin_ns", summary.begin},
                {"end_ns", summary.end},
                {"elapsed_s", summary.elapsed_s()},
                {"ops_per_s", summary.ops_per_second()},
                {"bytes_per_s", summary.bytes_per_second()},
                {"log_bytes", summary.file_bytes},
                {"log_bytes_per_op", summary.log_bytes_per_op()},
                {"au", number_or_null(summary.au())},
                {"au_mlperf", number_or_null(summary.au_mlperf())},
                {"accelerator_busy_ns", summary.busy()},
                {"stall_ns", summary.stall()}};
    Json kinds = Json::array();
    for (const KindSummary& row : summary.kinds) {
        kinds.push_back({{"kind", info(row.kind).name},
                         {"ops", row.ops},
                         {"errors", row.errors},
                         {"bytes", row.bytes},
                         {"time_ns", row.time},
                         {"latency_ns", to_json(row.latency)}});
    }
    out["kinds"] = std::move(kinds);
    Json roles = Json::array();
    for (const RoleSummary& row : summary.roles) {
        roles.push_back({{"role", role_name(row.role)},
                         {"files", row.files},
                         {"absent", row.absent},
                         {"bytes_on_disk", row.bytes_on_disk},
                         {"ops", row.ops},
                         {"bytes_read", row.bytes_read},
                         {"bytes_written", row.bytes_written},
                         {"bytes_cached", row.bytes_cached ? Json(*row.bytes_cached) : Json(nullptr)},
                         {"bytes_fetched", row.bytes_fetched ? Json(*row.bytes_fetched) : Json(nullptr)}});
    }
    out["roles"] = std::move(roles);
    out["devices"] = devices_json(summary, tables);
    if (!summary.task_times.empty()) {
        Json times = Json::array();
        for (const TaskTime& row : summary.task_times) {
            times.push_back(time_json(row));
        }
        out["task_times"] = std::move(times);
    }
    return out;
}

}  // namespace reprise
