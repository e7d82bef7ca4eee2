// SPDX-License-Identifier: MIT
// `reprise replay`: replays a log below a root and reports.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/compare.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/limit_options.h"
#include "cli/log_arguments.h"
#include "cli/metrics_option.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/phase_progress.h"
#include "cli/progress.h"
#include "cli/rank_results.h"
#include "cli/ranks.h"
#include "cli/recordings.h"
#include "cli/replay_metrics.h"
#include "cli/run_series.h"
#include "cli/scale_options.h"
#include "cli/show_cache.h"
#include "cli/show_queues.h"
#include "cli/show_replay.h"
#include "cli/show_verdict.h"
#include "cli/show_verify.h"
#include "cli/units.h"
#include "cli/what_if_options.h"
#include "cli/words_check.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "hosts/dealing.h"
#include "hosts/hosts.h"
#include "replay/prepare/cache_regime.h"
#include "replay/prepare/prepare.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/runner.h"
#include "transform/copies.h"
#include "transform/epochs.h"

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
    add_scale_detail_options(add);
    add.add_options()("cache", po::value<std::string>()->value_name("REGIME"),
                      "what is in the page cache at the start, of the data to be read (recorded: what the recording "
                      "found there; by default as the recording: cold if it fetched 90 % from its device, else "
                      "recorded; as-is where the log does not say)")(
        "drop-caches", "empty the caches of the whole machine, names and inodes too; requires root");
    add_limit_options(add);
    add.add_options()("tolerance-results", po::value<std::string>()->default_value("0.1%")->value_name("N|SHARE"),
                      "I/O ops that may have another result than in the recording; more: exit code 1");
    add_verify_option(add);
    add_series_options(add);
    add_filter_options(add);
    add_map_option(add,
                   "place recorded directory OLD at NEW below the root; may be repeated, also as /A=X,/B=Y [default: "
                   "as prepared]");
    add.add_options()("read-only", "exclude every op that modifies files")(
        "allow-loss", "replay a recording with losses")("output,o", po::value<std::string>()->value_name("FILE"),
                                                        "write the op log of the run");
    add_recover_option(add);
    add_metrics_option(add);
    add_json_option(add);
}

VariantOptions variant_options(const WhatIf& what_if, Pace pace) {
    VariantOptions options;
    options.copies = GpuCopies::parse(what_if.gpus);
    if (!what_if.gpu_model.empty()) {
        if (pace != Pace::causal) {
            throw usage_error("--gpu-model requires --pace causal", "");
        }
        options.model = GpuModel::parse(what_if.gpu_model);
    }
    if (!what_if.sync.empty() && what_if.sync != "step") {
        throw usage_error("--sync is '" + escape_line(what_if.sync) + "'", "expected step");
    }
    options.sync_steps = !what_if.sync.empty();
    return options;
}

/// The speed of this machine's processors relative to the recording's.
MachineSpeed machine_speed_of(const po::variables_map& values, const WhatIf& what_if, Pace pace,
                              const Header& recorded) {
    if (is_auto(values, "cpu-speed") && pace == Pace::causal) {
        return machine_speed_here(recorded);
    }
    return {{CpuSpeed::Source::given, what_if.speeds.cpu, 0.0}, {}, {}};
}

ToleratedDifferences tolerated_differences(const po::variables_map& values) {
    constexpr double kMostOps = 1e15;
    const auto& text = values["tolerance-results"].as<std::string>();
    const Tolerance given = Tolerance::parse(text, "--tolerance-results");
    if (given.value > (given.percent ? 100 : kMostOps) || (!given.percent && given.value != std::floor(given.value))) {
        throw usage_error(
            "--tolerance-results is '" + escape_line(text) + "', expected a number of ops, or a share from 0% to 100%",
            "the default is 0.1%");
    }
    return given.percent ? ToleratedDifferences{given.value / 100, {}}
                         : ToleratedDifferences{0, static_cast<uint64_t>(given.value)};
}

CacheRequest cache_request(const po::variables_map& values, EngineKind engine) {
    CacheRequest request;
    request.drop_all = values.count("drop-caches") != 0;
    if (values.count("cache") != 0) {
        request.regime = cache_regime_by_name(values["cache"].as<std::string>());  // one of the choices
    }
    if (!uses_root(engine) && (request.regime || request.drop_all)) {
        throw usage_error(std::string(request.drop_all ? "--drop-caches" : "--cache") + " with --engine " +
                              std::string(engine_name(engine)) + ", which reads no files",
                          "leave out one of them");
    }
    if (request.drop_all && request.regime == CacheRegime::as_is) {
        throw usage_error("--drop-caches contradicts --cache as-is", "leave out one of them");
    }
    if (request.drop_all && !request.regime) {
        request.regime = CacheRegime::cold;
    }
    return request;
}

/// The logs of the runs. Error (usage) where one would replace the recording, a file of the root, or, unasked, any
/// file.
void check_outputs(const po::variables_map& values, const fs::path& output) {
    check_log_name(output);
    check_outside_root(output, "-o " + escape_line(output.native()), values);
    const bool overwrite = values.count("force") != 0;
    if (!is_series(values)) {
        return check_log_output(output, overwrite);
    }
    // How many there will be is not known with --until-stable.
    const size_t runs = values.count("until-stable") != 0 ? kMostRuns : series_goal(values).runs;
    for (size_t run = 1; run <= runs; ++run) {
        check_written_too("replay", values, numbered(output, run), "-o " + escape_line(output.native()));
        check_log_output(numbered(output, run), overwrite);
    }
}

/// What has no effect under a pace is a mistake.
void check_paced(const po::variables_map& values, const ReplayOptions& how) {
    check_factors(how.speeds, how.pace == Pace::causal);
    if (how.pace != Pace::afap) {
        return;
    }
    const auto refuse = [](const std::string& option, const char* why) {
        throw usage_error(option + " with --pace afap, which " + why, "leave out one of them");
    };
    if (how.speeds.time_scale != 1.0) {
        refuse("--time-scale", "keeps no recorded time");
    }
    if (!values["delay"].defaulted() && how.delay != DelayPolicy::automatic) {
        refuse("--delay", "computes nothing");
    }
}

/// `there`: the root is there, and what is written is checked, too.
ReplayOptions replay_options(const po::variables_map& values, const LogReader& recording, const WhatIf& what_if,
                             bool there) {
    ReplayOptions how;
    const auto& pace = values["pace"].as<std::string>();
    how.pace = pace == "afap" ? Pace::afap : pace == "causal" ? Pace::causal : Pace::timed;
    how.engine = *engine_by_name(values["engine"].as<std::string>());  // one of the choices
    how.delay = policy_of(values["delay"].as<std::string>());
    how.speeds = what_if.speeds;
    check_paced(values, how);
    how.what_if = what_if_words(what_if, recording);
    check_has_accelerators(recording, what_if);
    how.access = access_of(what_if);
    if (how.access.any() && !uses_root(how.engine)) {
        throw usage_error("--engine " + std::string(engine_name(how.engine)) + " performs nothing that " + how.what_if +
                              " could change",
                          "leave out one of them");
    }
    how.filter = wanted_filter(values, recording, Base::job);
    how.filter_asked = values.count("only") + values.count("not") != 0;
    if (how.filter_asked) {
        how.what_if += (how.what_if.empty() ? "" : " ") + filter_words(values);
    }
    if (values.count("root") != 0) {
        how.root = values["root"].as<std::string>();
    }
    if (values.count("root") != 0 && there) {
        check_read_ahead(how.access, how.root.string());
    }
    how.maps = wanted_maps(values, recording);
    how.read_only = values.count("read-only") != 0;
    how.allow_loss = values.count("allow-loss") != 0;
    how.recover = values.count("recover") != 0;
    add_word(how.what_if, recovered_words(recording));
    how.fingerprint = log_fingerprint(recording);
    how.log_name = recording.path().string();
    how.tolerated = tolerated_differences(values);
    how.cache = cache_request(values, how.engine);
    how.recording = &recording;
    how.verify = wanted_verify(values);
    how.limits = run_limits(values);
    check_limits(how.limits, how.engine, how.cache->regime);
    if (how.limits.any()) {
        how.what_if += (how.what_if.empty() ? "" : " ") + limit_words(how.limits);
    }
    if (values.count("output") != 0 && there) {
        how.output = values["output"].as<std::string>();
        check_outputs(values, how.output);
    }
    return how;
}

int exit_code_of(const ReplayResult& result) {
    // An interrupted run has a valid result but did not finish; one whose log could not be written has one, too.
    if (result.ended != "complete" || !result.output_lost.empty()) {
        return static_cast<int>(ExitCode::machine);
    }
    const bool believed =
        result.not_same_job.empty() && result.fidelity.failures.empty() && not_measured(result).empty();
    return static_cast<int>(believed ? ExitCode::done : ExitCode::check_failed);
}

/// What several ranks cannot do yet.
void check_ranks(const po::variables_map& values) {
    for (const char* const option : {"until-stable", "verify", "memory", "ratio", "io-limit"}) {
        if (values.count(option) != 0) {
            throw usage_error("--" + std::string(option) + " with several ranks", "leave it out, or start one process");
        }
    }
}

/// As asked for. Ranks beyond the recorded ones perform copies of the job.
WhatIf what_if_for(const po::variables_map& values, const LogReader& recording, const Hosts* hosts) {
    WhatIf what_if = what_if_of(values);
    if (hosts != nullptr) {
        const GpuCopies asked = GpuCopies::parse(what_if.gpus);
        const RecordedRanks recorded = recorded_ranks(recording.header(), recording.tables());
        what_if.gpus =
            std::to_string(copies_for(recorded.count, asked.count, hosts->size())) + (asked.in_step ? "" : ":free");
    }
    return what_if;
}

/// "run.rank3.oplog"
fs::path of_rank(const fs::path& output, uint32_t rank) {
    fs::path name = output;
    return name.replace_extension(".rank" + std::to_string(rank) + output.extension().string());
}

/// A recording, or what a what-if makes of it, ready to be replayed as often as asked.
class Replayed {
public:
    /// `hosts`: the other ranks; none: this process performs all.
    Replayed(const po::variables_map& values, const ChosenLog& log, Hosts* hosts)
        : recording_(log_at_scale(log.path, scale_options(values), values)),
          hosts_(hosts),
          what_if_(what_if_for(values, recording_, hosts)),
          how_(replay_options(values, recording_, what_if_, true)),
          pace_(values["pace"].as<std::string>()),
          tolerated_by_("--tolerance-results " + values["tolerance-results"].as<std::string>()) {
        how_.recordings = log.times;
        warnings_ = log.warnings;
        how_.log_name = name_at_scale(log.path, scale_options(values), values);
        const MachineSpeed machine = machine_speed_of(values, what_if_, how_.pace, recording_.header());
        how_.cpu_speed = machine.cpu;
        how_.speeds.cpu = machine.cpu.ratio;
        how_.speeds.waits = machine.waits;
        doubt_ = machine.doubt;
        if (const VariantOptions asked = variant_options(what_if_, how_.pace); asked.changes_anything()) {
            variant_.emplace(make_variant(recording_, asked));
            how_.copies = asked.copies.count;
        }
        meet_ranks();
        how_.epochs = epochs();
        if (values.count("metrics") != 0 && speaks()) {
            const ReplayMetricsInfo info{fs::path(log.path).filename().string(), pace_,
                                         std::string(engine_name(how_.engine)), how_.pace != Pace::afap};
            metrics_ = std::make_unique<ReplayMetrics>(info, this->log().tables());
            server_ = serve_metrics(values, [metrics = metrics_.get()] { return metrics->text(); });
        }
    }

    const OpFilter& filter() const { return how_.filter; }
    /// Whether this rank is the one that prints.
    bool speaks() const { return hosts_ == nullptr || hosts_->rank() == 0; }
    /// As asked for, or as the ranks imply.
    const std::string& gpus() const { return what_if_.gpus; }
    /// How many hosts the ranks are on.
    size_t hosts() const { return hosts_ == nullptr ? 1 : hosts_->hosts(); }

    /// `output`: the run's log; empty: none.
    SeriesRun once(const fs::path& output) {
        PhaseProgress progress;
        ReplayOptions how = how_;
        how.output = output.empty() || hosts_ == nullptr ? output : of_rank(output, hosts_->rank());
        how.progress = [&](const ReplayProgress& now) {
            if (speaks()) {
                progress(now);
            }
            if (metrics_) {
                metrics_->progress(now);
            }
        };
        if (metrics_) {
            metrics_->begin_run();
            how.live = [&](const LiveFigures& now) { metrics_->live(now); };
        }
        SeriesRun run{{}, std::make_unique<RunFigures>(log().tables())};
        how.observe = [&](const ObservedOp& op) { run.figures->add(op); };
        run.result = replay(log(), how);
        progress.finish();
        if (metrics_) {
            metrics_->end_run();
        }
        complete(run.result);
        if (hosts_ != nullptr) {
            report_ranks(run, output);
        }
        if (!what_if_.gpu_model.empty()) {
            run.figures->without_recorded_accelerators();
        }
        run.figures->finish(run.result, pace_, how.engine, tolerated_by_);
        return run;
    }
    fs::path output() const { return how_.output; }

    /// Restores what an earlier run changed in a prepared root.
    void restore() {
        if (how_.root.empty() || !uses_root(how_.engine) || !any_needs_reset()) {
            return;
        }
        PrepareOptions options;
        options.root = how_.root;
        options.log_name = how_.log_name;
        options.tool = "reprise " + std::string(tool_version());
        options.fingerprint = how_.fingerprint;
        options.reset = true;
        options.copies = std::max(how_.copies, copies_below(how_.root, how_.fingerprint));
        std::optional<LogReader> more;
        if (options.copies > how_.copies) {  // an earlier replay left them
            more.emplace(make_variant(recording_, {{options.copies, true}, {}}));
        }
        std::optional<RootShare> share;
        if (hosts_ != nullptr) {
            share.emplace(hosts_->ranks(), hosts_->root_group());
            options.peers = &*share;
        }
        Preparation preparation(more ? *more : log(), std::move(options));
        preparation.check();
        WriteState state;
        Progress progress("restoring the root");
        preparation.run(state, [&] { progress.update(state.entries.load(), 0); });
        progress.finish();
    }

private:
    /// The others have the same log; which processes are whose, and who shares a root.
    void meet_ranks() {
        if (hosts_ == nullptr) {
            return;
        }
        hosts_->check_log(how_.fingerprint + " " + std::to_string(log().op_count()));
        const RecordedRanks recorded = recorded_ranks(log().header(), log().tables());
        hosts_->set_dealing(recorded);
        if (uses_root(how_.engine)) {
            hosts_->set_root(how_.root);
            check_roots();
        }
        how_.peers = hosts_;
        if (recorded.count > hosts_->size()) {
            warnings_.push_back(std::to_string(recorded.count) + " recorded ranks on " +
                                std::to_string(hosts_->size()) + " started ones: several on each.");
        }
    }

    /// A host that lacks the storage says so before all have planned the run.
    void check_roots() const {
        const std::vector<std::string> all =
            hosts_->ranks().share((is_prepared(how_.root) ? "1" : "0") + how_.root.string());
        const auto first = [&](char state) {
            return std::find_if(all.begin(), all.end(), [state](const std::string& one) { return one[0] == state; });
        };
        const auto prepared = first('1'), missing = first('0');
        if (how_.read_only || prepared == all.end() || missing == all.end()) {
            return;
        }
        const auto name = [&](auto one) { return hosts_->name_of(static_cast<uint32_t>(one - all.begin())); };
        throw machine_error(name(missing) + ": the root " + escape_line(missing->substr(1)) +
                                " is not prepared there, as that of " + name(prepared) + " is",
                            "mount the storage on all hosts, or prepare that of each: start `reprise prepare` as the "
                            "replay was started");
    }

    /// On any rank: they restore together.
    bool any_needs_reset() const {
        const bool here = needs_reset(how_.root);
        if (hosts_ == nullptr) {
            return here;
        }
        const std::vector<std::string> all = hosts_->ranks().share(here ? "1" : "0");
        return std::find(all.begin(), all.end(), "1") != all.end();
    }

    void report_ranks(SeriesRun& run, const fs::path& output) {
        PeerRow row = run.result.peer.value_or(PeerRow{});
        row.ops = run.result.ops;
        row.bytes_read = run.result.bytes_read;
        row.bytes_written = run.result.bytes_written;
        row.elapsed_ns = run.result.elapsed_ns;
        row.waited_ns = run.result.rank_wait_ns;
        row.ended = run.result.ended;
        row.code = exit_code_of(run.result);
        row.why = !run.result.not_same_job.empty()        ? "NOT THE SAME JOB: " + run.result.not_same_job.front()
                  : !run.result.fidelity.failures.empty() ? "NOT FAITHFUL: " + run.result.fidelity.failures.front()
                                                          : std::string();
        const fs::path part = run.result.output;
        merge_ranks(*hosts_, row, log(), uses_root(how_.engine) ? how_.root : fs::path(), run);
        const bool whole = !hosts_->ranks().ending();
        if (!output.empty() && whole) {
            const std::string lost = join_logs(*hosts_, part, output);
            if (hosts_->rank() == 0) {
                run.result.output = lost.empty() ? output : part;
                run.result.output_lost = lost;
            }
        }
    }

    /// Where they are no epochs that could be told apart, and of huge logs that nobody asked about, none.
    std::vector<LogEpoch> epochs() const {
        constexpr uint64_t kMostOps = 5'000'000;
        const bool wanted = how_.limits.any() || verbosity() > 0 || log().op_count() <= kMostOps;
        return uses_root(how_.engine) && wanted ? find_epochs(log()) : std::vector<LogEpoch>{};
    }

    const LogReader& log() const { return variant_ ? *variant_ : recording_; }

    /// What the run itself does not know.
    void complete(ReplayResult& result) const {
        if (!doubt_.empty()) {
            result.notes.push_back(doubt_);
        }
        result.notes.insert(result.notes.begin(), warnings_.begin(), warnings_.end());
        if (variant_) {
            // What the copies share, and what the model drew.
            const std::vector<Counter>& known = recording_.tables().counters;
            std::copy_if(variant_->tables().counters.begin(), variant_->tables().counters.end(),
                         std::back_inserter(result.counters), [&](const Counter& counter) {
                             return std::find(known.begin(), known.end(), counter) == known.end();
                         });
        }
        if (how_.copies > 1 && result.accelerators == 0) {
            result.notes.push_back("The log shows no accelerator, so no step of the " + std::to_string(how_.copies) +
                                   " copies waits for the others' (--gpus).");
        }
        for (std::string& doubt : queue_doubts(result.queues)) {
            result.notes.push_back(std::move(doubt));
        }
        if (result.cache) {
            for (std::string& note : cache_notes(*result.cache, result.machine)) {
                result.notes.push_back(std::move(note));
            }
        }
    }

    LogReader recording_;
    Hosts* const hosts_;  // none: this process performs all
    WhatIf what_if_;
    ReplayOptions how_;
    std::string pace_, tolerated_by_, doubt_;
    std::vector<std::string> warnings_;  // of the recordings
    std::optional<LogReader> variant_;
    std::unique_ptr<ReplayMetrics> metrics_;
    std::unique_ptr<MetricsServer> server_;  // uses all above
};

/// The exit code of all ranks together.
int worst_of(const PeersReport& ranks) {
    int worst = 0;
    for (const PeerRow& row : ranks.rows) {
        worst = std::max(worst, row.code);
    }
    return worst;
}

int run_series(const po::variables_map& values, const SeriesGoal& goal, Replayed& job) {
    RunSeries series(goal);
    std::string lost;  // why a run has no log
    series.run([&](size_t number) {
        job.restore();
        SeriesRun run = job.once(job.output().empty() ? fs::path() : numbered(job.output(), number));
        lost = lost.empty() ? run.result.output_lost : lost;
        return run;
    });
    const SeriesRun& middle = series.median_run();
    middle.figures->put_interval(middle.result.interval);
    if (!job.speaks()) {
        return 0;
    }
    if (!json_alone(values)) {
        if (!lost.empty()) {
            for (const std::string& line : wrapped("", log_lost_sentence(lost))) {
                std::cout << line << '\n';
            }
        }
        series.print(std::cout);
        print_result(middle.result, *middle.figures);
        print_ranks(std::cout, middle.ranks, job.hosts());
    }
    if (json_wanted(values)) {
        Json json = result_json(middle.result, *middle.figures, values, job.filter());
        json["series"] = series.json();
        if (!middle.ranks.rows.empty()) {
            json["ranks"] = ranks_json(middle.ranks);
            json["gpus"] = job.gpus();
        }
        if (!lost.empty()) {
            json["output_lost"] = printable(lost);
        }
        put_json(values, json);
    }
    if (!series.finished() || !lost.empty()) {
        return static_cast<int>(ExitCode::machine);
    }
    const int code = static_cast<int>(series.believed() ? ExitCode::done : ExitCode::check_failed);
    return std::max(code, worst_of(middle.ranks));
}

/// What this process took around the run's elapsed time: reading the log, planning and making processes before it;
/// collecting after it.
struct TimeAround {
    int64_t before_ns = 0, after_ns = 0;
};
const auto process_begin = std::chrono::system_clock::now();

TimeAround time_around(const ReplayResult& result) {
    const auto unix_ns = [](std::chrono::system_clock::time_point time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    };
    const int64_t end = result.start_unix_ns + result.elapsed_ns;
    return {std::max<int64_t>(result.start_unix_ns - unix_ns(process_begin), 0),
            std::max<int64_t>(unix_ns(std::chrono::system_clock::now()) - end, 0)};
}

int replay_as(const po::variables_map& values, Hosts* hosts) {
    ChosenLog chosen = chosen_log(values);
    Hosts::Received received;
    if (hosts != nullptr) {
        check_ranks(values);
        chosen.path = hosts->fetch_log(chosen.path, received);
    }
    Replayed job(values, chosen, hosts);
    if (is_series(values)) {
        return run_series(values, series_goal(values), job);
    }
    const SeriesRun run = job.once(job.output());
    if (!job.speaks()) {
        return 0;
    }
    const TimeAround around = time_around(run.result);
    if (!json_alone(values)) {
        print_result(run.result, *run.figures);
        print_ranks(std::cout, run.ranks, job.hosts());
        if (verbosity() > 0) {
            std::cout << "the replay took " << format_duration(around.before_ns) << " before its first op was due and "
                      << format_duration(around.after_ns) << " after its last one\n";
        }
    }
    if (json_wanted(values)) {
        Json json = result_json(run.result, *run.figures, values, job.filter());
        json["before_s"] = static_cast<double>(around.before_ns) / 1e9;
        json["after_s"] = static_cast<double>(around.after_ns) / 1e9;
        if (!run.ranks.rows.empty()) {
            json["ranks"] = ranks_json(run.ranks);
            json["gpus"] = job.gpus();
        }
        put_json(values, json);
    }
    return std::max(exit_code_of(run.result), worst_of(run.ranks));
}

int run(const po::variables_map& values) {
    return with_ranks([&](Hosts* hosts) { return replay_as(values, hosts); });
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
        "program, system) or path.\n\nEnds with at most ten lines: the same job or not, time and cache, bytes, reads, "
        "where the "
        "time went, and how far the times may be trusted. -v prints the details.\n\nNothing outside --root is touched; "
        "the kernel enforces it. A log that modifies "
        "files requires a root made by `reprise prepare`, or --read-only.\n\nCtrl-C ends the run with a valid result "
        "that says so; a second Ctrl-C kills it. Exit code 4: the run did not finish, or its log (-o) could not be "
        "written. Exit code 1: do not trust the "
        "result, for the reason in its first lines: it did not do what the recorded job did (another result of too "
        "many "
        "ops, see --tolerance-results), this machine could not keep the recording's timing, or the time says little "
        "about "
        "the storage (NOT MEASURED).",
    .examples = {{"reprise replay job.oplog --root /mnt/new", "how long the job would take there"},
                 {"reprise replay job.oplog --root /mnt/new --pace timed", "the recorded load, at the recorded times"},
                 {"reprise replay job.oplog --root /mnt/new --cache recorded", "with what was in memory then"},
                 {"reprise replay job.oplog --root /mnt/new --gpus 8 --gpu-model 'normal(162ms,5ms)'",
                  "eight ranks with a different accelerator"},
                 {"reprise replay job.oplog --root /mnt/new --direct", "with reads past the page cache"},
                 {"reprise replay job.oplog --root /mnt/new --runs 7", "seven runs: median, interval, disturbed ones"},
                 {"reprise replay job.oplog --root /mnt/new --verify content",
                  "does the storage keep what is written?"},
                 {"reprise replay job.oplog --root /mnt/new --ratio 4",
                  "with memory for a quarter of the data, page cache and the job's own together"},
                 {"reprise replay job.oplog --root /mnt/new --runs 7 --metrics :9400",
                  "the same, watched by Prometheus"},
                 {"reprise replay job.oplog --root /mnt/new --pace afap -o run.oplog",
                  "as fast as possible, saving the run's log"},
                 {"reprise replay job.oplog --engine null --pace afap", "how fast the replayer itself is"}},
    .options = options,
    .positionals = {{"log", "LOG", 1, -1}},
    .choices = {{"pace", {"causal", "timed", "afap"}},
                {"engine", engine_names()},
                {"cache", {"cold", "warm", "recorded", "as-is"}},
                {"delay", {"auto", "sleep", "spin", "work"}},
                {"verify", {"tree", "content"}}},
    .run = run,
}};

}  // namespace

void check_replay_words(const std::vector<std::string>& words) {
    const int level = verbosity();
    const po::variables_map values = parse(*find_command("replay"), words);
    set_verbosity(level);  // the words' own is another process's
    const LogReader recording(values["log"].as<std::vector<std::string>>().front(),
                              ReadOptions{.recover = values.count("recover") != 0});
    scale_options(values);
    const WhatIf what_if = what_if_of(values);
    const ReplayOptions how = replay_options(values, recording, what_if, false);
    variant_options(what_if, how.pace);
    if (is_series(values)) {
        series_goal(values);
    }
}

}  // namespace reprise::cli
