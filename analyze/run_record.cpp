// SPDX-License-Identifier: MIT
#include "analyze/run_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analyze/summary.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/op_fields.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

/// Where the time of tasks went, with the file's role and the call.
class Places {
public:
    explicit Places(const LogReader& log) : log_(log) {}

    std::map<std::string, double> count() {
        for (TaskId task = 1; task < log_.tables().tasks.size(); ++task) {
            any_ = false;
            log_.for_each(task, [&](const Op& op, uint64_t) { add(op); });
            if (any_) {
                total_ += static_cast<double>(end_ - begin_);
            }
        }
        double named = 0;
        for (const auto& [place, ns] : places_) {
            named += ns;
        }
        if (total_ > named) {
            places_["rest"] = total_ - named;
        }
        return std::move(places_);
    }

private:
    void add(const Op& op) {
        const int64_t end = end_of(op.begin, std::max<int64_t>(op.duration, 0));
        if (!any_) {
            any_ = true;
            begin_ = end_ = op.begin;
        }
        const std::string place = place_of(op);
        if (end <= end_) {
            return;
        }
        if (!place.empty()) {
            places_[place] += static_cast<double>(end - std::max(op.begin, end_));
        }
        end_ = end;
    }

    std::string place_of(const Op& op) {
        switch (op.kind) {
            case OpKind::compute: return "compute";
            case OpKind::gpu_wait: return "accelerator";
            case OpKind::wait: return op.arg == kWaitWokeOthers ? "" : "other waits";
            case OpKind::idle:
            case OpKind::join:
            case OpKind::send:
            case OpKind::receive: return "other waits";
            default: break;
        }
        if (!info(op.kind).is(Trait::io)) {
            return {};
        }
        const Tables& tables = log_.tables();
        FileId file = tables.file_of(op);
        if (op.kind == OpKind::mmap && op.map != 0) {
            maps_[op.map] = file;
        } else if (file == 0 && op.map != 0) {
            const auto found = maps_.find(op.map);
            file = found != maps_.end() ? found->second : 0;
        }
        if (info(op.kind).is(Trait::memory) && file == 0) {
            return {};
        }
        const Role role = file < tables.files.size() ? tables.files[file].role : Role::unknown;
        if (role == Role::ipc) {
            return {};
        }
        return "storage;" + std::string(role_name(role)) + ";" + std::string(info(op.kind).name);
    }

    const LogReader& log_;
    std::unordered_map<uint32_t, FileId> maps_;
    std::map<std::string, double> places_;
    bool any_ = false;
    int64_t begin_ = 0, end_ = 0;
    double total_ = 0;
};

std::string losses_of(const Tables& tables) {
    std::string text;
    for (const Counter& counter : tables.counters) {
        if (counter.severity == Severity::loss && counter.value != 0) {
            text += (text.empty() ? "" : "; ") + std::to_string(counter.value) + " " + counter.name;
        }
    }
    return text;
}

void add_conditions(const Header& header, RunRecord& run) {
    const auto add = [&](const auto& fact) {
        if (const auto value = read_fact(header, fact)) {
            run.conditions[std::string(fact.key)] = *value;
        }
    };
    add(fact::pace);
    add(fact::engine);
    add(fact::filter);
    add(fact::what_if);
    add(fact::delay);
    if (read_fact(header, fact::read_only)) {
        run.conditions["read_only"] = "yes";
    }
}

std::string shown(const RunRecord& run) { return escape_line(run.path); }

void check_pair(const RunRecord& first, const RunRecord& one) {
    const std::string names = shown(first) + " and " + shown(one);
    if (one.is_run() != first.is_run()) {
        throw usage_error(names + ": one is a run and the other a recording",
                          "a run against its recording: reprise compare A B; else give runs only, or recordings only");
    }
    if (one.recording != first.recording) {
        throw usage_error(names + " are runs of different recordings", "compare runs of the same log");
    }
    if (!one.is_run() && one.command != first.command) {
        throw usage_error(names + " are recordings of different commands", "compare recordings of one job");
    }
    if (2 * std::min(one.ops, first.ops) < std::max(one.ops, first.ops)) {
        throw usage_error(names + " differ too much to be the same job: " + std::to_string(first.ops) + " and " +
                              std::to_string(one.ops) + " ops",
                          "compare recordings of one job, or runs of one log that came to their end");
    }
    for (const auto& [key, value] : first.conditions) {
        const auto found = one.conditions.find(key);
        const std::string other = found != one.conditions.end() ? found->second : "";
        if (other != value) {
            throw usage_error(names + " were run differently: " + key + " '" + escape_line(value) + "' and '" +
                                  escape_line(other) + "'",
                              "compare runs that were made with the same options");
        }
    }
    if (first.conditions.size() != one.conditions.size()) {
        check_pair(one, first);  // names what only the other one has
    }
}

}  // namespace

bool RunRecord::operator==(const RunRecord& other) const { return to_json(*this) == to_json(other); }

std::string RunRecord::doubt() const {
    if (is_run() && ended != "complete") {
        return ended;
    }
    if (!losses.empty()) {
        return "LOSSES: " + losses;
    }
    return trust == "poor" ? "POOR: " + (reason.empty() ? "no reason given" : reason) : "";
}

RunRecord run_record(const LogReader& log) {
    const Header& header = log.header();
    RunRecord out;
    out.path = log.path().string();
    out.command = header.command;
    out.host = header.host;
    out.kernel = header.kernel;
    out.clock = header.clock;
    out.ended = read_fact(header, fact::ended).value_or("");
    out.recording = read_fact(header, fact::recording_fingerprint).value_or("");
    out.trust = read_fact(header, fact::trust).value_or("");
    out.reason = read_fact(header, fact::trust_reason).value_or("");
    out.losses = losses_of(log.tables());
    out.cache = read_fact(header, fact::cache_regime).value_or("");
    add_conditions(header, out);
    Summary summary = summarize(log);
    if (const auto begin = read_fact(header, fact::run_begin); begin && *begin < summary.begin) {
        summary.begin = *begin;
    }
    out.ops = summary.ops;
    out.elapsed_s = summary.elapsed_s();
    out.bytes = static_cast<double>(summary.bytes() + summary.storage_bytes_touched);
    out.au = summary.au();
    const auto device = read_fact(header, fact::device_read);
    const uint64_t read = summary.storage_bytes_read + summary.storage_bytes_touched;
    constexpr double kLeastRead = 0.01;  // of all bytes; less decides nothing
    if (device && static_cast<double>(read) > kLeastRead * out.bytes && read_fact(header, fact::engine) != "null") {
        out.device_share = static_cast<double>(*device) / static_cast<double>(read);
    }
    for (const KindSummary& kind : summary.kinds) {
        if (info(kind.kind).is(Trait::io)) {
            out.kinds[std::string(info(kind.kind).name)] = {kind.ops, kind.time, static_cast<double>(kind.latency.p50),
                                                            static_cast<double>(kind.latency.p99)};
        }
    }
    const RequestFigures& requests = summary.requests.all;
    out.requests = {requests.requests, requests.latency.sum(), static_cast<double>(requests.latency.percentile(0.5)),
                    static_cast<double>(requests.latency.percentile(0.99))};
    out.places = Places(log).count();
    return out;
}

Json to_json(const RunRecord& run) {
    const auto kind_json = [](const RunRecord::Kind& kind) {
        return Json{{"ops", kind.ops}, {"time_ns", kind.time}, {"p50_ns", kind.p50}, {"p99_ns", kind.p99}};
    };
    Json kinds = Json::object();
    for (const auto& [name, kind] : run.kinds) {
        kinds[name] = kind_json(kind);
    }
    return {{"path", run.path},
            {"recording", run.recording},
            {"command", run.command},
            {"conditions", run.conditions},
            {"host", run.host},
            {"kernel", run.kernel},
            {"clock", run.clock},
            {"ended", run.ended},
            {"trust", run.trust},
            {"trust_reason", run.reason},
            {"losses", run.losses},
            {"ops", run.ops},
            {"elapsed_s", run.elapsed_s},
            {"bytes", run.bytes},
            {"au", run.au ? Json(*run.au) : Json(nullptr)},
            {"cache", run.cache},
            {"device_share", run.device_share ? Json(*run.device_share) : Json(nullptr)},
            {"kinds", std::move(kinds)},
            {"requests", kind_json(run.requests)},
            {"spent_ns", run.places}};
}

RunRecord run_record_of(const Json& json) {
    RunRecord out;
    json.at("path").get_to(out.path);
    json.at("recording").get_to(out.recording);
    json.at("command").get_to(out.command);
    json.at("conditions").get_to(out.conditions);
    json.at("host").get_to(out.host);
    json.at("kernel").get_to(out.kernel);
    json.at("clock").get_to(out.clock);
    json.at("ended").get_to(out.ended);
    json.at("trust").get_to(out.trust);
    json.at("trust_reason").get_to(out.reason);
    json.at("losses").get_to(out.losses);
    json.at("ops").get_to(out.ops);
    json.at("elapsed_s").get_to(out.elapsed_s);
    json.at("bytes").get_to(out.bytes);
    if (!json.at("au").is_null()) {
        out.au = json.at("au").get<double>();
    }
    // Records of before have none of these two.
    out.cache = json.value("cache", "");
    if (json.contains("device_share") && !json.at("device_share").is_null()) {
        out.device_share = json.at("device_share").get<double>();
    }
    const auto kind_of = [](const Json& kind) {
        return RunRecord::Kind{kind.at("ops").get<uint64_t>(), kind.at("time_ns").get<double>(),
                               kind.at("p50_ns").get<double>(), kind.at("p99_ns").get<double>()};
    };
    for (const auto& [name, kind] : json.at("kinds").items()) {
        out.kinds[name] = kind_of(kind);
    }
    if (json.contains("requests")) {  // records of before have none
        out.requests = kind_of(json.at("requests"));
    }
    json.at("spent_ns").get_to(out.places);
    return out;
}

void check_same_job(const std::vector<RunRecord>& runs) {
    for (const RunRecord& one : runs) {
        check_pair(runs.front(), one);
    }
}

}  // namespace reprise
