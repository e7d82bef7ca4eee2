// SPDX-License-Identifier: MIT
// `reprise replay`: replays a log below a root and reports.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/accelerator.h"
#include "analyze/compare.h"
#include "cli/command.h"
#include "cli/log_arguments.h"
#include "cli/progress.h"
#include "cli/show_queues.h"
#include "cli/show_replay.h"
#include "cli/units.h"
#include "cli/what_if_options.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/runner.h"
#include "transform/copies.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words engine_names() {
    Words names;
    for (const EngineInfo& engine : kEngines) {
        names.emplace_back(engine.name);
    }
    return names;
}

std::string engine_help() {
    std::string help;
    for (const EngineInfo& engine : kEngines) {
        help += (help.empty() ? "" : "; ") + std::string(engine.name) + ": " + std::string(engine.help);
    }
    return help;
}

void options(po::options_description& add) {
    add.add_options()("root", po::value<std::string>()->value_name("DIR"), "replay root")(
        "pace", po::value<std::string>()->default_value("causal")->value_name("PACE"),
        "causal: issue an op when its dependencies are done and its think time has passed; timed: at its recorded "
        "time; afap: as fast as possible, in order")(
        "engine", po::value<std::string>()->default_value(std::string(kEngines.front().name))->value_name("ENGINE"),
        engine_help().c_str())(
        "delay", po::value<std::string>()->default_value("auto")->value_name("HOW"),
        "compute: spin occupies the CPU as the recorded thread did, work also uses memory, sleep leaves the CPU idle; "
        "auto: spin if this machine has enough CPUs");
    add_what_if_options(add, true);
    add.add_options()("tolerance-results", po::value<std::string>()->default_value("0.1%")->value_name("N|SHARE"),
                      "I/O ops that may have another result than in the recording; more: exit code 1");
    add_filter_options(add);
    add_map_option(add, "place recorded directory OLD at NEW below the root [default: as prepared]");
    add.add_options()("read-only", "exclude every op that modifies files")(
        "allow-loss", "replay a recording with losses")("output,o", po::value<std::string>()->value_name("FILE"),
                                                        "write the op log of the run")(
        "json", po::value<std::string>()->value_name("FILE"), "also write the result as JSON");
}

/// One progress line per phase.
class PhaseProgress {
public:
    void operator()(const ReplayProgress& now) {
        if (!line_ || now.phase != phase_) {
            finish();
            phase_ = now.phase;
            const char* const label = phase_ == ReplayProgress::Phase::planning  ? "planning"
                                      : phase_ == ReplayProgress::Phase::running ? "replaying"
                                                                                 : "writing the result";
            line_ = std::make_unique<Progress>(label);
        }
        std::string text;
        if (line_->active() && now.lag_ns > 1'000'000) {
            text = "lag " + format_duration(now.lag_ns);
        }
        if (!now.waiting.empty()) {
            text = now.waiting;
        }
        line_->update(now.done, now.total, text);
    }
    void finish() {
        if (line_) {
            line_->finish();
            line_.reset();
        }
    }

private:
    ReplayProgress::Phase phase_ = ReplayProgress::Phase::planning;
    std::unique_ptr<Progress> line_;
};

VariantOptions variant_options(const WhatIf& what_if, Pace pace) {
    VariantOptions options;
    options.copies = GpuCopies::parse(what_if.gpus);
    if (!what_if.gpu_model.empty()) {
        if (pace != Pace::causal) {
            throw usage_error("--gpu-model requires --pace causal", "");
        }
        options.model = GpuModel::parse(what_if.gpu_model);
    }
    return options;
}

/// The speed of this machine's processors relative to the recording's.
CpuSpeed cpu_speed_of(const po::variables_map& values, const WhatIf& what_if, Pace pace, const Header& recorded) {
    if (!is_auto(values, "cpu-speed")) {
        return {CpuSpeed::Source::given, what_if.speeds.cpu, 0.0};
    }
    return pace == Pace::causal ? cpu_speed_here(recorded) : CpuSpeed{};
}

ToleratedDifferences tolerated_differences(const po::variables_map& values) {
    const Tolerance given = Tolerance::parse(values["tolerance-results"].as<std::string>(), "--tolerance-results");
    return given.percent ? ToleratedDifferences{given.value / 100, {}}
                         : ToleratedDifferences{0, static_cast<uint64_t>(given.value)};
}

int run(const po::variables_map& values) {
    const LogReader recording(values["log"].as<std::string>());
    ReplayOptions how;
    const auto& pace = values["pace"].as<std::string>();
    how.pace = pace == "afap" ? Pace::afap : pace == "causal" ? Pace::causal : Pace::timed;
    how.engine = *engine_by_name(values["engine"].as<std::string>());  // one of the choices
    const WhatIf what_if = what_if_of(values);
    how.cpu_speed = cpu_speed_of(values, what_if, how.pace, recording.header());
    how.speeds = what_if.speeds;
    how.speeds.cpu = how.cpu_speed.ratio;
    if (how.pace == Pace::causal && how.cpu_speed.source != CpuSpeed::Source::given) {
        how.speeds.waits = wait_costs_here(recording.header());
    }
    how.delay = policy_of(values["delay"].as<std::string>());
    how.filter = wanted_filter(values, recording, Base::job);
    if (values.count("root") != 0) {
        how.root = values["root"].as<std::string>();
    }
    how.maps = wanted_maps(values, recording);
    how.read_only = values.count("read-only") != 0;
    how.allow_loss = values.count("allow-loss") != 0;
    how.fingerprint = log_fingerprint(recording);
    how.log_name = values["log"].as<std::string>();
    how.tolerated = tolerated_differences(values);
    if (values.count("output") != 0) {
        how.output = values["output"].as<std::string>();
        std::error_code ignored;
        if (fs::equivalent(how.output, recording.path(), ignored)) {
            throw usage_error("the output is the recording itself", "choose another file with -o");
        }
    }
    PhaseProgress progress;
    how.progress = [&](const ReplayProgress& now) { progress(now); };
    std::optional<LogReader> variant;
    if (const VariantOptions asked = variant_options(what_if, how.pace); asked.changes_anything()) {
        variant.emplace(make_variant(recording, asked));
    }
    const LogReader& log = variant ? *variant : recording;
    AcceleratorObserver observer(log.tables());
    how.observe = [&](TaskId task, const Op& op) { observer.add(task, op); };
    ReplayResult result = replay(log, how);
    if (variant) {
        // What the copies share, and what the model drew.
        const std::vector<Counter>& known = recording.tables().counters;
        std::copy_if(
            variant->tables().counters.begin(), variant->tables().counters.end(), std::back_inserter(result.counters),
            [&](const Counter& counter) { return std::find(known.begin(), known.end(), counter) == known.end(); });
    }
    progress.finish();
    for (std::string& doubt : queue_doubts(result.queues)) {
        result.notes.push_back(std::move(doubt));
    }
    std::optional<Accelerators> summary;  // none where time means nothing to them
    if (result.accelerators != 0 && result.timed) {
        summary.emplace(observer.finish(), log.tables());
    }
    print_result(result, summary);
    if (values.count("json") != 0) {
        write_json(values["json"].as<std::string>(), result_json(result, summary, values, how.filter));
    }
    // An interrupted run has a valid result but did not finish.
    if (result.ended != "complete") {
        return static_cast<int>(ExitCode::machine);
    }
    const bool believed = result.not_same_job.empty() && result.fidelity.failures.empty();
    return static_cast<int>(believed ? ExitCode::done : ExitCode::check_failed);
}

const Registration registration{{
    .name = "replay",
    .group = Group::replay,
    .summary = "replay a log's I/O below a directory and report",
    .help =
        "Each recorded process and thread is replayed by a real one, which issues the recorded calls with the same "
        "offsets, sizes and flags. Order across threads is preserved where the recording shows a cause for it. Program "
        "and system files are excluded and counted; --only and --not select by role (dataset, checkpoint, log, cache, "
        "ipc, "
        "program, system) or path.\n\nNothing outside --root is touched; the kernel enforces it. A log that modifies "
        "files requires a root made by `reprise prepare`, or --read-only.\n\nCtrl-C ends the run with a valid result "
        "that says so; a second Ctrl-C kills it. Exit code 4: the run did not finish. Exit code 1: do not trust the "
        "result, for the reason in its first lines: it did not do what the recorded job did (another result of too "
        "many "
        "ops, see --tolerance-results), or this machine could not keep the recording's timing.",
    .examples = {{"reprise replay job.oplog --root /mnt/new", "how long the job would take there"},
                 {"reprise replay job.oplog --root /mnt/new --pace timed", "the recorded load, at the recorded times"},
                 {"reprise replay job.oplog --root /mnt/new --gpus 8 --gpu-model 'normal(162ms,5ms)'",
                  "eight ranks with a different accelerator"},
                 {"reprise replay job.oplog --root /mnt/new --pace afap -o run.oplog",
                  "as fast as possible, saving the run's log"},
                 {"reprise replay job.oplog --engine null --pace afap", "how fast the replayer itself is"}},
    .options = options,
    .positionals = {{"log", "LOG"}},
    .choices = {{"pace", {"causal", "timed", "afap"}},
                {"engine", engine_names()},
                {"delay", {"auto", "sleep", "spin", "work"}}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli
