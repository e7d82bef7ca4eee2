// SPDX-License-Identifier: MIT
#include "analyze/verdict.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyze/compare.h"
#include "formats/oplog/header_facts.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kCold = 0.9, kWarm = 0.1;

// What says that two logs are not of the same job; times and failed calls do not.
constexpr std::string_view kJobChecks[] = {"ops", "bytes", "results", "order", "arguments"};

bool is_same_job(const Comparison& comparison) {
    return std::all_of(comparison.checks.begin(), comparison.checks.end(), [](const Check& check) {
        return check.ok || std::find(std::begin(kJobChecks), std::end(kJobChecks), check.name) == std::end(kJobChecks);
    });
}

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string_view temperature_name(Temperature regime) {
    switch (regime) {
        case Temperature::unknown: return "unknown";
        case Temperature::cold: return "cold";
        case Temperature::warm: return "warm";
        case Temperature::mixed: return "mixed";
        case Temperature::metadata: return "metadata";
        case Temperature::no_data: return "no data";
    }
    return "unknown";
}

std::optional<double> Verdict::device_share() const {
    const uint64_t read = here.storage_bytes_read + here.bytes_touched;
    if (!device_read || read == 0 || no_storage) {
        return std::nullopt;
    }
    return static_cast<double>(*device_read) / static_cast<double>(read);
}

Temperature Verdict::temperature() const {
    const std::optional<double> share = device_share();
    if (!share) {
        return Temperature::unknown;
    }
    if (no_data) {
        return Temperature::no_data;
    }
    if (*share > kWarm && device_data && *device_data < *device_read / 2) {
        return Temperature::metadata;
    }
    return *share >= kCold ? Temperature::cold : *share <= kWarm ? Temperature::warm : Temperature::mixed;
}

std::optional<std::pair<double, double>> au_interval(int64_t busy_ns, const std::pair<int64_t, int64_t>& elapsed_ns) {
    if (elapsed_ns.first <= 0) {
        return std::nullopt;
    }
    const auto over = [&](int64_t ns) { return std::min(static_cast<double>(busy_ns) / static_cast<double>(ns), 1.0); };
    return std::pair(over(elapsed_ns.second), over(elapsed_ns.first));
}

std::optional<std::pair<double, double>> Verdict::au_interval() const {
    if (!interval || !here.au) {
        return std::nullopt;
    }
    return reprise::au_interval(std::llround(*here.au * static_cast<double>(here.elapsed)), *interval);
}

Verdict verdict_of(const Comparison& comparison, const Header& run) {
    Verdict out;
    out.same_job = is_same_job(comparison);
    out.ended = comparison.ended;
    out.what_if = comparison.what_if;
    out.pace = read_fact(run, fact::pace).value_or(std::string());
    out.no_storage = read_fact(run, fact::engine) == "null";
    out.ops.differ = comparison.results + comparison.missing + comparison.moved + comparison.arguments;
    out.ops.alike = comparison.matched - comparison.results - comparison.not_performed;
    out.ops.extra = comparison.extra;
    out.ops.left_out = comparison.not_performed + comparison.a.left_out_io_ops;
    if (comparison.a.left_out_io_ops != 0) {
        out.ops.left_out_by.emplace_back("filter", comparison.a.left_out_io_ops);
    }
    if (comparison.not_performed != 0) {
        out.ops.left_out_by.emplace_back("not performed", comparison.not_performed);
    }
    out.recorded = job_figures(comparison.a);
    out.here = job_figures(comparison.b);
    const auto bytes = [&](const auto& fact) -> std::optional<uint64_t> {
        const std::optional<int64_t> value = read_fact(run, fact);
        return value ? std::optional<uint64_t>(static_cast<uint64_t>(*value)) : std::nullopt;
    };
    out.device_read = bytes(fact::device_read);
    out.device_written = bytes(fact::device_written);
    out.device_data = bytes(fact::device_data);
    out.no_data = read_fact(run, fact::no_data).value_or(false);
    const std::optional<int64_t> low = read_fact(run, fact::elapsed_low), high = read_fact(run, fact::elapsed_high);
    if (low && high) {
        out.interval.emplace(*low, *high);
    }
    out.trust = read_fact(run, fact::trust).value_or(std::string());
    out.trust_reason = read_fact(run, fact::trust_reason).value_or(std::string());
    return out;
}

Json to_json(const Verdict& verdict) {
    Json by = Json::object();
    for (const auto& [reason, ops] : verdict.ops.left_out_by) {
        by[reason] = ops;
    }
    return {{"same_job", verdict.same_job && verdict.part.empty()},
            {"part", or_null(verdict.part)},
            {"lost_events", verdict.lost_events},
            {"what_if", or_null(verdict.what_if)},
            {"tolerated", verdict.tolerated()},
            {"io_ops",
             {{"recorded", verdict.ops.recorded()},
              {"alike", verdict.ops.alike},
              {"differ", verdict.ops.differ},
              {"left_out", verdict.ops.left_out},
              {"left_out_by", by},
              {"extra", verdict.ops.extra}}},
            {"cache", temperature_name(verdict.temperature())},
            {"device_share", or_null(verdict.device_share())},
            {"device_read_bytes", or_null(verdict.device_read)},
            {"device_data_bytes", or_null(verdict.device_data)},
            {"device_write_bytes", or_null(verdict.device_written)},
            {"elapsed_interval_s", verdict.interval ? Json{static_cast<double>(verdict.interval->first) / 1e9,
                                                           static_cast<double>(verdict.interval->second) / 1e9}
                                                    : Json(nullptr)},
            {"au_interval",
             verdict.au_interval() ? Json{verdict.au_interval()->first, verdict.au_interval()->second} : Json(nullptr)},
            {"here", to_json(verdict.here)},
            {"recorded", to_json(verdict.recorded)},
            {"trust", or_null(verdict.trust)},
            {"trust_reason", or_null(verdict.trust_reason)}};
}

}  // namespace reprise
