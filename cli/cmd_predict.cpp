// SPDX-License-Identifier: MIT
// `reprise predict`: how long a log would take on a modelled storage system.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/accelerator.h"
#include "analyze/verdict.h"
#include "calibrate/clock.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/limit_options.h"
#include "cli/log_arguments.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/predict_cluster.h"
#include "cli/predict_memory.h"
#include "cli/predict_service.h"
#include "cli/predict_sweep.h"
#include "cli/show_interval.h"
#include "cli/show_open_loop.h"
#include "cli/show_replay.h"
#include "cli/show_verdict.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/what_if_options.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "replay/plan/cpu_speed.h"
#include "replay/predict/predict.h"
#include "replay/predict/virtual_pages.h"
#include "replay/prepare/cache_plan.h"
#include "replay/run/runner.h"
#include "transform/epochs.h"

namespace reprise::cli::predict_command {
namespace {

namespace fs = std::filesystem;

void options(po::options_description& add) {
    add.add_options()("storage", po::value<std::string>()->value_name("FILE"),
                      "storage model, written by reprise calibrate --storage");
    add_service_option(add);
    add.add_options()("cache", po::value<std::string>()->default_value("cold")->value_name("HOW"),
                      "cold: each part of a file is fetched once; warm: everything is in the page cache")(
        "cpus", po::value<std::string>()->value_name("N"), "CPUs that computing threads share [default: as recorded]");
    add_memory_options(add);
    add_sweep_option(add);
    add_cluster_options(add);
    add_what_if_options(add, false);
    add_filter_options(add);
    add.add_options()("allow-loss", "accept a log with losses")(
        "output,o", po::value<std::string>()->value_name("FILE"), "write the op log of the predicted run");
    add_recover_option(add);
    add_json_option(add);
}

/// 95 % interval of the accelerators' utilisation.
std::optional<std::pair<double, double>> au_range(const Prediction& p, const AcceleratorUse& use) {
    if (!p.interval || !use.au()) {
        return std::nullopt;
    }
    const double busy = *use.au() * static_cast<double>(p.elapsed_ns);
    return au_interval(std::llround(busy), {p.interval->low_ns, p.interval->high_ns});
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Pages that the recording does not know of.
RecordedCache put_hidden(const LogReader& log, const Predictor& predictor, PredictOptions& how) {
    const RecordedCache recorded = plan_cache(predictor.plan(), log).recorded;
    how.hidden_bytes = recorded.hides_touches() ? recorded.touched_in_memory : 0;
    how.known_bytes = recorded.read_bytes;
    how.around = {recorded.around_bytes, recorded.read_bytes + recorded.around_bytes, recorded.fault_reach, {}};
    if (recorded.touched_bytes != 0) {
        how.mapped_times = 1 + static_cast<double>(recorded.around_bytes) / static_cast<double>(recorded.touched_bytes);
    }
    return recorded;
}

/// What was in memory when recorded, and is not in the prediction, or the other way round; 0: little, or not known.
uint64_t cached_otherwise(const RecordedCache& recorded, const PredictOptions& how) {
    constexpr uint64_t kPart = 10, kLittle = 1 << 20;
    const uint64_t fetched = std::min(recorded.fetched_bytes.value_or(0), recorded.read_bytes);
    const uint64_t other = how.warm ? fetched : recorded.read_bytes - fetched;
    return recorded.pages_known && other >= std::max(recorded.read_bytes / kPart, kLittle) ? other : 0;
}

Json result_json(const Prediction& p, const std::optional<AcceleratorUse>& summary, const StorageModel& model,
                 const WhatIf& what_if, double took) {
    const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(nullptr); };
    Json json;
    json["elapsed_s"] = seconds(p.elapsed_ns);
    json["recorded_s"] = seconds(p.recorded_ns);
    json["recorded_is_computed"] = p.computed;
    json["storage_model_cold"] = p.calls == CallTimes::model ? Json(model.cold) : Json(nullptr);
    json["async_depth"] = p.async_depth;
    json["left_out_data_bytes"] = p.doubts.left_out_bytes;
    const std::string poor = poor_reason(p, model), fair = fair_reason(p, model);
    const std::string little = says_little(p);
    json["not_measured"] = little.empty() ? Json(nullptr) : Json(little);
    const std::string nothing = nothing_left(p.doubts);
    json["not_same_job"] = nothing.empty() ? Json::array() : Json::array({nothing});
    json["lost_events"] = p.doubts.part.lost_events;
    json["trust"] = !poor.empty() ? "poor" : fair.empty() ? "good" : "fair";
    json["trust_reason"] = poor.empty() ? fair : poor;
    json["ops"] = p.ops;
    json["bytes"] = p.bytes_read + p.bytes_written;
    json["bytes_read"] = p.bytes_read;
    json["bytes_written"] = p.bytes_written;
    json["au"] = summary ? number(summary->au()) : Json(nullptr);
    json["au_mlperf"] = summary ? number(summary->au_mlperf()) : Json(nullptr);
    json["stall_s"] = summary ? Json(seconds(summary->stall())) : Json(nullptr);
    json["storage_reads"] = p.storage_reads;
    json["scattered_reads"] = p.scattered_reads;
    json["storage_bytes"] = p.storage_bytes;
    json["storage_s"] = seconds(p.storage_ns);
    json["journal_s"] = seconds(p.journal_ns);
    json["touched_pages"] = p.touched_pages;
    json["computing_s"] = seconds(p.computing_ns);
    json["computing_after_waits_s"] = seconds(p.after_waits_ns);
    json["run_queue_s"] = seconds(p.run_queue_ns);
    json["cpus"] = p.cpus == 0 ? Json(nullptr) : Json(p.cpus);
    json["edges_given_up"] = p.broken.size();
    put_what_if(json, what_if, false);
    json["not_modelled"] = Json::object();
    for (const auto& [what, n] : p.not_modelled) {
        std::string key = what + "s";
        std::replace(key.begin(), key.end(), ' ', '_');
        json["not_modelled"][key] = n;
    }
    json["open_loops"] = open_loops_json(p.open_loops);
    json["critical_path"] = path_json(p.path);
    json["elapsed_interval_s"] =
        p.interval ? Json{seconds(p.interval->low_ns), seconds(p.interval->high_ns)} : Json(nullptr);
    const std::string none = why_no_interval(p, model);
    json["no_interval"] = none.empty() ? Json(nullptr) : Json(none);
    json["interval_parts"] = p.interval ? interval_json(*p.interval) : Json(nullptr);
    const auto range = summary ? au_range(p, *summary) : std::nullopt;
    json["au_interval"] = range ? Json{range->first, range->second} : Json(nullptr);
    json["took_s"] = took;
    return json;
}

void print(const Prediction& p, const std::optional<AcceleratorUse>& summary, const StorageModel& model, double took) {
    std::ostream& out = std::cout;
    out << "predicted " << format_duration(p.elapsed_ns);
    if (p.interval) {
        out << " (95 %: " << format_duration(p.interval->low_ns) << " to " << format_duration(p.interval->high_ns)
            << ")";
    } else if (const std::string why = why_no_interval(p, model); !why.empty()) {
        out << " (no interval: " << why << ")";
    }
    out << (p.computed ? ", in the generated log " : ", recorded ") << format_duration(p.recorded_ns) << ", for "
        << counted(p.ops, "op") << ", " << format_bytes(p.bytes_read) << " read, " << format_bytes(p.bytes_written)
        << " written";
    if (p.touched_pages != 0) {
        out << ", " << format_bytes(p.touched_pages * static_cast<uint64_t>(kPageBytes)) << " touched";
    }
    out << "; simulated in " << format_duration(std::llround(took * 1e9)) << "\n";
    if (const std::string poor = poor_reason(p, model); !poor.empty()) {
        out << "trust POOR: " << poor << "\n";
    } else if (const std::string fair = fair_reason(p, model); !fair.empty()) {
        out << "trust FAIR: " << fair << "\n";
    } else {
        out << "trust GOOD: nothing in the log or the model speaks against it\n";
    }
    if (p.calls == CallTimes::model) {
        out << "storage: " << counted(p.storage_reads, "read") << ", " << format_bytes(p.storage_bytes)
            << "; tasks blocked " << format_duration(p.storage_ns) << " on them\n";
    }
    for (const std::string& line : open_loop_lines(p.open_loops)) {
        out << "arrivals: " << line << "\n";
    }
    out << "compute " << format_duration(p.computing_ns);
    print_after_waits(out, p.after_waits_ns);
    if (p.cpus != 0) {
        out << ", run-queue delay " << format_duration(p.run_queue_ns) << " on "
            << counted(static_cast<uint64_t>(p.cpus), "CPU");
    }
    out << "\n";
    if (verbosity() > 0) {
        print_interval(out, p.path, p.interval);
    }
    if (summary) {
        out << "accelerators busy " << format_duration(summary->busy()) << ", AU "
            << format_share(summary->au().value_or(0.0));
        if (const auto range = au_range(p, *summary)) {
            out << " (95 %: " << format_share(range->first) << " to " << format_share(range->second) << ")";
        }
        out << " (MLPerf, without the first step: "
            << (summary->au_mlperf() ? format_share(*summary->au_mlperf()) : "-") << "), stall "
            << format_duration(summary->stall()) << "\n";
    }
    for (size_t i = 0; i < p.not_modelled.size(); ++i) {
        const auto& [what, n] = p.not_modelled[i];
        out << (i == 0 ? "not modelled: " : ", ") << counted(n, what) << (i + 1 == p.not_modelled.size() ? "\n" : "");
    }
    if (!quiet()) {
        for (const BrokenEdge& edge : p.broken) {
            out << "note: dependency cycle; dropped edge: " << to_string(edge) << "\n";
        }
        if (const std::string looked = looked_for_results(p.doubts); !looked.empty()) {
            out << "note: " << looked << "\n";
        }
    }
    for (const Counter& counter : p.counters) {
        if (!is_shown(counter)) {
            continue;
        }
        out << severity_name(counter.severity) << ": " << counter.name << " " << format_count(counter.value) << " ("
            << counter.meaning << ")\n";
    }
}

PredictOptions predict_options(const po::variables_map& values, const LogReader& log, const WhatIf& what_if) {
    PredictOptions how;
    how.warm = values["cache"].as<std::string>() == "warm";
    if (values.count("cpus") != 0) {
        constexpr int64_t kMostCpus = 8192;
        how.cpus = static_cast<int>(whole_number(values, "cpus", 1, kMostCpus));
    }
    how.speeds = what_if.speeds;
    how.what_if = what_if_words(what_if, log);
    if (const std::string words = limit_words(run_limits(values)); !words.empty()) {
        if (how.warm) {
            throw usage_error("--cache warm with a memory limit: what would be in memory is not known",
                              "leave out one of them");
        }
        how.what_if += (how.what_if.empty() ? "" : " ") + words;
    }
    add_word(how.what_if, recovered_words(log));
    check_has_accelerators(log, what_if);
    check_factors(how.speeds, true);
    how.access = access_of(what_if);
    if (is_auto(values, "cpu-speed")) {
        const WaitCost there = recorded_wait_cost(log.header());
        how.speeds.waits = {there, there};
    }
    how.filter = wanted_filter(values, log, Base::job);
    if (const std::string only = filter_words(values); !only.empty()) {
        how.filter_asked = true;
        how.what_if += (how.what_if.empty() ? "" : " ") + only;
    }
    if (values.count("output") != 0 && values.count("sweep") == 0 && !cluster_given(values)) {
        how.output = values["output"].as<std::string>();
        check_log_output(how.output, values.count("force") != 0);
    }
    if (service_given(values)) {
        return how;
    }
    how.storage = read_storage_model(values["storage"].as<std::string>());
    if (how.access.read_ahead != 0) {
        how.storage.read_ahead_bytes = how.access.read_ahead;
    }
    return how;
}

// --- sweep

struct Job {
    const LogReader& log;
    const Predictor& predictor;
    MemoryOfJob memory;
};

SweepRun predicted_run(const Job& job, PredictOptions how) {
    AcceleratorObserver observer(job.log.tables());
    how.observe = [&](TaskId task, const Op& op) { observer.add(task, op); };
    const Prediction p = job.predictor.run(how);
    SweepRun run;
    const std::string poor = poor_reason(p, how.storage);
    run.reason = poor.empty() ? fair_reason(p, how.storage) : poor;
    run.trust = !poor.empty() ? "poor" : run.reason.empty() ? "good" : "fair";
    run.elapsed_s = seconds(p.elapsed_ns);
    run.au = p.accelerators ? observer.finish().au() : std::nullopt;
    if (p.elapsed_ns > 0) {
        run.bytes_per_s = static_cast<double>(p.bytes_read) / run.elapsed_s;
    }
    if (p.reads.count() != 0) {
        run.read_p99_s = seconds(p.reads.percentile(0.99));
    }
    run.device_bytes = static_cast<double>(p.storage_bytes);
    if (const uint64_t asked = p.bytes_read + p.touched_pages * static_cast<uint64_t>(kPageBytes); asked != 0) {
        run.device_share = *run.device_bytes / static_cast<double>(asked);
    }
    if (how.memory) {
        run.limit_bytes = static_cast<double>(how.memory->bytes);
    }
    return run;
}

void check_axes(const std::vector<SweepAxis>& axes, const po::variables_map& values, const LogReader& log) {
    for (const SweepAxis& axis : axes) {
        if (axis.option == "gpu-speed") {
            WhatIf faster;
            faster.speeds.gpu = 2;
            check_has_accelerators(log, faster);
        }
        if ((axis.option == "ratio" || axis.option == "memory") &&
            (values.count("ratio") != 0 || values.count("memory") != 0)) {
            throw usage_error("--sweep " + axis.option + " and a memory limit besides", "leave out one of them");
        }
        if ((axis.option == "ratio" || axis.option == "memory") && values["cache"].as<std::string>() == "warm") {
            throw usage_error("--cache warm with a memory limit: what would be in memory is not known",
                              "leave out one of them");
        }
    }
}

/// None: nothing is written.
fs::path sweep_folder(const po::variables_map& values) {
    if (values.count("output") == 0) {
        return {};
    }
    fs::path folder = values["output"].as<std::string>();
    constexpr std::array<std::string_view, 3> kFiles = {"cells.csv", "sweep.svg", "sweep.png"};
    if (fs::exists(folder / "runs.jsonl")) {
        throw usage_error(escape_line(folder.string()) + " has the runs of a sweep", "choose another folder with -o");
    }
    make_folder_of("predict", values, folder, kFiles);
    return folder;
}

int run_sweep(const po::variables_map& values, Job job, const PredictOptions& base) {
    const std::vector<SweepAxis> axes = predicted_axes(values["sweep"].as<std::vector<std::string>>());
    check_axes(axes, values, job.log);
    const fs::path folder = sweep_folder(values);
    const RunLimits limits = run_limits(values);
    const auto is_memory = [](const SweepAxis& axis) { return axis.option == "ratio" || axis.option == "memory"; };
    if (limits.memory_limited() || std::any_of(axes.begin(), axes.end(), is_memory)) {
        job.memory = memory_of(job.predictor, job.log);
    }
    PredictedSweep sweep(values["log"].as<std::string>(), values["storage"].as<std::string>(), axes);
    sweep.run([&](const SweepCell& cell) {
        const PredictedCell changed = predicted_cell(axes, cell, base.storage);
        PredictOptions how = base;
        how.storage = changed.storage;
        how.speeds.gpu = changed.gpu.value_or(base.speeds.gpu);
        RunLimits of_cell = limits;
        of_cell.ratio = changed.ratio ? changed.ratio : limits.ratio;
        of_cell.memory = changed.memory ? changed.memory : limits.memory;
        how.memory = predicted_limit(of_cell, page_cache_policy(values), job.memory);
        return predicted_run(job, std::move(how));
    });
    const SweepResult result = sweep.result();
    const SweepFiles files = folder.empty() ? SweepFiles() : write_sweep(result, folder);
    if (!json_alone(values)) {
        if (!base.what_if.empty()) {
            std::cout << what_if_sentence(base.what_if) << "\n";
        }
        print_sweep(std::cout, result, files);
    }
    if (json_wanted(values)) {
        put_json(values, sweep_json(result));
    }
    return static_cast<int>(sweep_believed(result) ? ExitCode::done : ExitCode::check_failed);
}

int run(const po::variables_map& values) {
    if (values.count("storage") == 0 && !service_given(values)) {
        throw usage_error("--storage is required", "measure one: reprise calibrate --storage DIR -o model.json");
    }
    if (cluster_given(values)) {
        check_cluster_options(values);
    }
    const LogReader log = open_log(values["log"].as<std::string>(), values);
    check_losses(log, values.count("allow-loss") != 0, values.count("recover") != 0);
    const WhatIf what_if = what_if_of(values);
    const RunLimits limits = run_limits(values);
    std::optional<Service> service;
    if (service_given(values)) {
        service = service_of(values, log);
    }
    require_ops(log);
    PredictOptions how = predict_options(values, log, what_if);
    if (service) {
        service->put(how);
    }
    const Predictor predictor(log, how.filter, how.access);
    const RecordedCache recorded = put_hidden(log, predictor, how);
    if (cluster_given(values)) {
        return run_cluster(values, log, predictor, how);
    }
    if (values.count("sweep") != 0) {
        return run_sweep(values, {log, predictor, {}}, how);
    }
    MemoryOfJob memory;
    if (limits.memory_limited()) {
        memory = memory_of(predictor, log);
        how.memory = predicted_limit(limits, page_cache_policy(values), memory);
        how.epochs = find_epochs(log);
    }
    AcceleratorObserver observer(log.tables());
    how.observe = [&](TaskId task, const Op& op) { observer.add(task, op); };
    const int64_t begin = monotonic_ns();
    const Prediction result = predictor.run(how);
    std::optional<AcceleratorUse> use;
    if (result.accelerators) {
        use = observer.finish();
    }
    const double took = seconds(monotonic_ns() - begin);
    if (json_wanted(values)) {
        Json json = result_json(result, use, how.storage, what_if, took);
        json["service"] = service ? Json(service->from) : Json(nullptr);
        json["not_in_service"] = Json::object();
        for (const auto& [kind, n] : result.not_in_service) {
            json["not_in_service"][kind] = n;
        }
        json["touches_hidden"] = result.hidden_bytes != 0;
        json["cache"] = how.warm ? "warm" : "cold";
        json["cached_otherwise_bytes"] = cached_otherwise(recorded, how);
        json["output_lost"] = result.output_lost.empty() ? Json(nullptr) : Json(printable(result.output_lost));
        json["memory"] = how.memory ? predicted_memory_json(*how.memory, memory) : Json(nullptr);
        json["by_epoch"] = predicted_epochs_json(result);
        put_json(values, json);
    }
    if (!json_alone(values)) {
        if (!result.output_lost.empty()) {
            std::cout << log_lost_sentence(result.output_lost) << "\n";
        }
        if (!how.what_if.empty()) {
            std::cout << what_if_sentence(how.what_if) << "\n";
        }
        if (const std::string why = nothing_left(result.doubts); !why.empty()) {
            std::cout << "NOT THE SAME JOB: " << why << ".\n";
        }
        if (const std::string why = result.doubts.part.why(); !why.empty()) {
            std::cout << "A PART OF IT: " << why << ".\n";
        }
        if (const std::string why = says_little(result); !why.empty()) {
            std::cout << "NOT MEASURED: " << why << ".\n";
        }
        print(result, use, how.storage, took);
        if (const uint64_t other = cached_otherwise(recorded, how); other != 0 && !service) {
            std::cout << "cache: " << (how.warm ? "warm" : "cold") << "; of the " << format_bytes(recorded.read_bytes)
                      << " that are read, " << format_bytes(other) << (how.warm ? " were not" : " were")
                      << " in memory when recorded (see --cache)\n";
        }
        if (service) {
            std::cout << "service times: " << service_line(*service, result) << "\n";
        }
        if (how.memory) {
            std::cout << "memory: " << predicted_memory_line(*how.memory, memory) << "\n";
        }
        if (const std::string epochs = predicted_epochs_line(result); !epochs.empty()) {
            std::cout << "epochs: " << epochs << "\n";
        }
    }
    if (!result.output_lost.empty()) {
        return static_cast<int>(ExitCode::machine);
    }
    const bool believed = says_little(result).empty() && nothing_left(result.doubts).empty();
    return static_cast<int>(believed ? ExitCode::done : ExitCode::check_failed);
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
            "replay before relying on it for storage unlike the one it was measured on. Exit code 1: the time says "
            "little about "
            "the storage, for the reason in the first line (NOT MEASURED), or the filter leaves nothing of the job. "
            "Exit code 4: the predicted run's log (-o) could not be written.",
    .examples = {{"reprise predict job.oplog --storage model.json", "elapsed time, AU and stall there"},
                 {"reprise predict made.oplog --service job.oplog", "a generated job with a recording's service times"},
                 {"reprise predict job.oplog --storage model.json --gpu-speed 4",
                  "with accelerators four times as fast"},
                 {"reprise predict job.oplog --storage model.json --ratio 4", "with memory for a quarter of the data"},
                 {"reprise predict job.oplog --storage model.json --sweep read=10M..1G --sweep ratio=1,4",
                  "how fast the device has to be"},
                 {"reprise predict job.oplog --storage model.json --gpus 10000 --hosts 1250 --network net.json",
                  "ten thousand accelerators that share the storage"},
                 {"reprise predict job.oplog --storage model.json --gpus 8 --hosts 1 --sweep gpus=1..10000 -o curve",
                  "AU and throughput over accelerators, eight on each host"}},
    .options = options,
    .positionals = {{"log", "LOG"}},
    .choices = {{"cache", {"cold", "warm"}}, {"page-cache", {"lru", "two-lists"}}, {"scatter", {"none", "recorded"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::predict_command
