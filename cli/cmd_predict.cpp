// SPDX-License-Identifier: MIT
// `reprise predict`: how long a log would take on a modelled storage system.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include "analyze/accelerator.h"
#include "calibrate/clock.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/show_replay.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/what_if_options.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "replay/plan/cpu_speed.h"
#include "replay/predict/predict.h"
#include "replay/run/runner.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

void options(po::options_description& add) {
    add.add_options()("storage", po::value<std::string>()->value_name("FILE"),
                      "storage model, written by reprise calibrate --storage")(
        "cache", po::value<std::string>()->default_value("cold")->value_name("HOW"),
        "cold: each part of a file is fetched once; warm: everything is in the page cache")(
        "cpus", po::value<int>()->default_value(0, "as recorded")->value_name("N"),
        "CPUs that computing threads share");
    add_what_if_options(add, false);
    add_filter_options(add);
    add.add_options()("allow-loss", "accept a log with losses")(
        "output,o", po::value<std::string>()->value_name("FILE"), "write the op log of the predicted run");
    add_json_option(add);
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

Json result_json(const Prediction& p, const std::optional<AcceleratorUse>& summary, const WhatIf& what_if,
                 double took) {
    const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(nullptr); };
    Json json;
    json["elapsed_s"] = seconds(p.elapsed_ns);
    json["recorded_s"] = seconds(p.recorded_ns);
    json["ops"] = p.ops;
    json["bytes"] = p.bytes_read + p.bytes_written;
    json["bytes_read"] = p.bytes_read;
    json["bytes_written"] = p.bytes_written;
    json["au"] = summary ? number(summary->au()) : Json(nullptr);
    json["au_mlperf"] = summary ? number(summary->au_mlperf()) : Json(nullptr);
    json["stall_s"] = summary ? Json(seconds(summary->stall())) : Json(nullptr);
    json["storage_reads"] = p.storage_reads;
    json["storage_bytes"] = p.storage_bytes;
    json["storage_s"] = seconds(p.storage_ns);
    json["computing_s"] = seconds(p.computing_ns);
    json["computing_after_waits_s"] = seconds(p.after_waits_ns);
    json["run_queue_s"] = seconds(p.run_queue_ns);
    json["cpus"] = p.cpus == 0 ? Json(nullptr) : Json(p.cpus);
    json["edges_given_up"] = p.broken.size();
    put_what_if(json, what_if, false);
    json["took_s"] = took;
    return json;
}

void print(const Prediction& p, const std::optional<AcceleratorUse>& summary, const StorageModel& model, double took) {
    std::ostream& out = std::cout;
    out << "predicted " << format_duration(p.elapsed_ns) << " (recorded " << format_duration(p.recorded_ns) << ") for "
        << counted(p.ops, "op") << ", " << format_bytes(p.bytes_read) << " read, " << format_bytes(p.bytes_written)
        << " written; computed in " << format_duration(std::llround(took * 1e9)) << "\n";
    out << "storage: " << counted(p.storage_reads, "read") << ", " << format_bytes(p.storage_bytes)
        << "; tasks blocked " << format_duration(p.storage_ns) << " on them\n";
    out << "compute " << format_duration(p.computing_ns);
    print_after_waits(out, p.after_waits_ns);
    if (p.cpus != 0) {
        out << ", run-queue delay " << format_duration(p.run_queue_ns) << " on "
            << counted(static_cast<uint64_t>(p.cpus), "CPU");
    }
    out << "\n";
    if (summary) {
        out << "accelerators busy " << format_duration(summary->busy()) << ", AU "
            << format_share(summary->au().value_or(0.0)) << " (MLPerf, without the first step: "
            << (summary->au_mlperf() ? format_share(*summary->au_mlperf()) : "-") << "), stall "
            << format_duration(summary->stall()) << "\n";
    }
    if (!quiet()) {
        for (const BrokenEdge& edge : p.broken) {
            out << "note: dependency cycle; dropped edge: " << to_string(edge) << "\n";
        }
    }
    for (const Counter& counter : p.counters) {
        if (!is_shown(counter)) {
            continue;
        }
        out << severity_name(counter.severity) << ": " << counter.name << " " << format_count(counter.value) << " ("
            << counter.meaning << ")\n";
    }
    if (!model.cold && !quiet()) {
        out << "note: the storage model was measured in memory; its reads are page cache reads\n";
    }
}

int run(const po::variables_map& values) {
    if (values.count("storage") == 0) {
        throw usage_error("--storage is required", "measure one: reprise calibrate --storage DIR -o model.json");
    }
    const LogReader log(values["log"].as<std::string>());
    check_losses(log, values.count("allow-loss") != 0);
    PredictOptions how;
    how.storage = read_storage_model(values["storage"].as<std::string>());
    how.warm = values["cache"].as<std::string>() == "warm";
    how.cpus = values["cpus"].as<int>();
    if (how.cpus < 0) {
        throw usage_error("--cpus must be a number above 0", "omit it for the recording's");
    }
    const WhatIf what_if = what_if_of(values);
    how.speeds = what_if.speeds;
    check_factors(how.speeds, true);
    if (is_auto(values, "cpu-speed")) {
        const WaitCost there = recorded_wait_cost(log.header());
        how.speeds.waits = {there, there};
    }
    how.filter = wanted_filter(values, log, Base::job);
    if (values.count("output") != 0) {
        how.output = values["output"].as<std::string>();
        std::error_code ignored;
        if (fs::equivalent(how.output, log.path(), ignored)) {
            throw usage_error("the output is the recording itself", "choose another file with -o");
        }
    }
    AcceleratorObserver observer(log.tables());
    how.observe = [&](TaskId task, const Op& op) { observer.add(task, op); };
    const int64_t begin = monotonic_ns();
    const Prediction result = predict(log, how);
    std::optional<AcceleratorUse> use;
    if (result.accelerators) {
        use = observer.finish();
    }
    const double took = seconds(monotonic_ns() - begin);
    if (json_wanted(values)) {
        put_json(values, result_json(result, use, what_if, took));
    }
    if (!json_alone(values)) {
        print(result, use, how.storage, took);
    }
    return 0;
}

const Registration registration{{
    .name = "predict",
    .group = Group::replay,
    .summary = "predict how long a log would take on a modelled storage system",
    .help = "Runs the plan of `reprise replay --pace causal` in virtual time against a storage model: no file is "
            "touched, and hours are simulated in milliseconds. Calls that move data or change names take the time the "
            "model gives, "
            "or that of a page cache copy once the data was fetched; computing threads share CPUs; accelerators are "
            "queues. Everything else takes its recorded time.\n\nThe model is deliberately simple. Compare it with a "
            "replay before relying on it for storage unlike the one it was measured on.",
    .examples = {{"reprise predict job.oplog --storage model.json", "elapsed time, AU and stall there"},
                 {"reprise predict job.oplog --storage model.json --gpu-speed 4",
                  "with accelerators four times as fast"}},
    .options = options,
    .positionals = {{"log", "LOG"}},
    .choices = {{"cache", {"cold", "warm"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli
