// SPDX-License-Identifier: MIT
// `reprise regress`: a suite of op logs on several targets, checked and judged.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/named_files.h"
#include "cli/outputs.h"
#include "cli/ranks.h"
#include "cli/regress_suite.h"
#include "cli/show_verdict.h"
#include "cli/units.h"
#include "cli/words_check.h"
#include "formats/support/error.h"
#include "replay/prepare/root_marker.h"

namespace reprise::cli::regress_command {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void options(po::options_description& add) {
    add.add_options()("target", po::value<Words>()->composing()->value_name("NAME=DIR"),
                      "where to replay; may be repeated; the others are compared with the first")(
        "runs", po::value<std::string>()->value_name("N"),
        "runs of each job on each target [default: the suite's, or 10]")(
        "verify", "first, check that each target keeps what is written: content, after a remount, after power cuts")(
        "baseline", po::value<std::string>()->value_name("FILE"),
        "compare each job and target with FILE; made where it does not exist")(
        "update-baseline", "replace FILE by what is measured now, if that passes");
    add_regression_options(add);
    add.add_options()("output,o", po::value<std::string>()->value_name("FOLDER"),
                      "keeps each run as soon as it is made [default: SUITE.regress]; the same command goes on there")(
        "force,f", "begin anew; overwrite reports");
    add_json_option(add);
}

/// What makes runs of a job comparable: which log, prepared and replayed how.
Json conditions_of(const SuiteJob& job) {
    return {{"log", log_fingerprint(LogReader(job.log))}, {"prepare", job.prepare}, {"replay", job.replay}};
}

std::string words_of(const Json& words) {
    std::string text;
    for (const Json& word : words) {
        text += (text.empty() ? "" : " ") + printable(word.get<std::string>());
    }
    return text.empty() ? "no options" : text;
}

/// Runs of each job and target, stored for another day.
class Baseline {
public:
    explicit Baseline(fs::path path) : path_(std::move(path)) {
        if (path_.empty()) {
            return;
        }
        check_directory_of(path_);
        std::ifstream in(path_);
        if (!in) {
            return;
        }
        json_ = Json::parse(in, nullptr, false);
        if (!json_.is_object() || !json_.contains("regress_baseline") || !json_.contains("cells")) {
            throw bad_input(path_.string(), "this is not a baseline", "name another file, or remove it");
        }
        there_ = true;
    }
    bool wanted() const { return !path_.empty(); }
    bool there() const { return there_; }

    struct Cell {
        std::vector<RunRecord> runs;
        std::string file_system;
    };
    Cell of(const RegressCell& cell) const {
        return found(
            [&](const Json& one) { return one.at("job") == cell.job->name && one.at("target") == cell.target->name; });
    }
    /// Of all cells, whatever they are called.
    std::vector<RunRecord> runs() const {
        std::vector<RunRecord> runs = found([](const Json&) { return true; }).runs;
        for (RunRecord& run : runs) {
            run.path.clear();
        }
        return runs;
    }

    /// Throws Error (usage) where it has runs of a job of the suite with another log or other options.
    void check(const Suite& suite) const {
        for (const SuiteJob& job : suite.jobs) {
            const Json now = conditions_of(job);
            for (const Json& cell : of_job(job)) {
                check(job, cell.at("conditions"), now);
            }
        }
    }
    /// Whether it says of a job how its runs were made; baselines of before do not.
    bool says_how(const SuiteJob& job) const { return !of_job(job).empty(); }

    void store(const std::vector<CellResult>& results) const {
        Json cells = Json::array();
        for (const CellResult& one : results) {
            Json runs = Json::array();
            for (const RunRecord& run : one.runs) {
                runs.push_back(to_json(run));
            }
            cells.push_back({{"job", one.cell.job->name},
                             {"target", one.cell.target->name},
                             {"file_system", one.file_system},
                             {"conditions", conditions_of(*one.cell.job)},
                             {"runs", std::move(runs)}});
        }
        write_json(
            path_.string(),
            {{"regress_baseline", 1}, {"tool", "reprise " + std::string(tool_version())}, {"cells", std::move(cells)}});
    }

private:
    /// The cells of a job that say how their runs were made.
    std::vector<Json> of_job(const SuiteJob& job) const {
        std::vector<Json> out;
        if (there_) {
            for (const Json& cell : json_.at("cells")) {
                if (cell.is_object() && cell.value("job", "") == job.name && cell.contains("conditions")) {
                    out.push_back(cell);
                }
            }
        }
        return out;
    }
    void check(const SuiteJob& job, const Json& then, const Json& now) const {
        const std::string anew = "to compare from now on, remove the baseline or name another one, which is then made";
        try {
            if (then.at("log") != now.at("log")) {
                throw usage_error(
                    "job " + job.name + ": the baseline " + printable(path_.string()) + " has runs of another log",
                    "then: " + printable(then.at("log").get<std::string>()) +
                        "\n  now:  " + printable(now.at("log").get<std::string>()) +
                        "\n  give the suite the log of then; or, " + anew);
            }
            for (const char* const what : {"prepare", "replay"}) {
                if (then.at(what) != now.at(what)) {
                    throw usage_error("job " + job.name + ": the baseline " + printable(path_.string()) +
                                          " has runs with other options of " + what,
                                      "then: " + words_of(then.at(what)) + "\n  now:  " + words_of(now.at(what)) +
                                          "\n  give the suite the options of then; or, " + anew);
                }
            }
        } catch (const Json::exception& error) {
            throw bad_input(path_.string(), std::string("damaged: ") + error.what(), "remove it, and make it anew");
        }
    }
    Cell found(const std::function<bool(const Json&)>& wanted) const {
        Cell out;
        try {
            for (const Json& one : json_.at("cells")) {
                if (!wanted(one)) {
                    continue;
                }
                out.file_system = one.value("file_system", "");
                for (const Json& run : one.at("runs")) {
                    out.runs.push_back(run_record_of(run));
                }
            }
        } catch (const Json::exception& error) {
            throw bad_input(path_.string(), std::string("damaged: ") + error.what(), "remove it, and make it anew");
        }
        return out;
    }

    fs::path path_;
    Json json_;
    bool there_ = false;
};

/// The results as cases, each with what it is compared with.
std::vector<RegressionCase> cases_of(const std::vector<CellResult>& results, const Baseline& baseline,
                                     const Thresholds& thresholds, bool exclude) {
    std::vector<RegressionCase> out;
    for (const CellResult& one : results) {
        RegressionCase& made = out.emplace_back();
        made.name = one.cell.name();
        made.checks = one.checks;
        RegressionSides sides{"", one.cell.target->name, {}, one.runs};
        std::string differs;  // what is compared
        if (baseline.there()) {
            sides.name_a = "baseline";
            const Baseline::Cell then = baseline.of(one.cell);
            sides.a = then.runs;
            if (then.file_system != one.file_system && !then.file_system.empty()) {
                differs = "The file system differs: baseline " + printable(then.file_system) + "; " + sides.name_b +
                          " " + printable(one.file_system) + ".";
            }
        } else if (!baseline.wanted()) {
            const auto first = std::find_if(results.begin(), results.end(),
                                            [&](const CellResult& other) { return other.cell.job == one.cell.job; });
            if (first->cell.target != one.cell.target) {
                sides.name_a = first->cell.target->name;
                sides.a = first->runs;
            }
        }
        if (!sides.name_a.empty() && (sides.a.empty() || sides.b.empty())) {
            made.checks.push_back({"times", {"no runs of " + (sides.a.empty() ? sides.name_a : sides.name_b)}, ""});
        } else if (!sides.name_a.empty()) {
            made.comparisons.push_back(regression_of(sides, thresholds, exclude));
            made.comparisons.back().name = sides.name_b + " against " + sides.name_a;
            if (!differs.empty()) {
                made.comparisons.back().notes.push_back(std::move(differs));
            }
            if (baseline.there() && !baseline.says_how(*one.cell.job)) {
                made.comparisons.back().notes.emplace_back(
                    "The baseline does not say with which options its runs were made (--cache among them): make it "
                    "anew.");
            }
        }
    }
    return out;
}

bool passed(const RegressionCase& one) {
    return std::all_of(one.checks.begin(), one.checks.end(),
                       [](const CheckedThing& thing) { return thing.failures.empty(); }) &&
           std::all_of(one.comparisons.begin(), one.comparisons.end(),
                       [](const Regression& each) { return each.passed(); });
}

/// Whether there are too few runs for a verdict.
bool few(const RegressionCase& one) {
    return std::any_of(one.comparisons.begin(), one.comparisons.end(),
                       [](const Regression& each) { return each.finding() == Finding::few; });
}

std::string word_of(const CheckedThing& thing) {
    return !thing.failures.empty() ? "FAILED" : !thing.skipped.empty() ? "not checked" : "ok";
}

Table overview(const std::vector<CellResult>& results, const std::vector<RegressionCase>& cases) {
    Table table({{"job", "job"},
                 {"target", "target"},
                 {"runs", "runs", true},
                 {"elapsed", "elapsed_ns", true},
                 {"95 %", "", true},
                 {"checks", "checks"},
                 {"compared", "compared"}});
    for (size_t i = 0; i < results.size(); ++i) {
        std::vector<double> seconds;
        for (const RunRecord& run : results[i].runs) {
            seconds.push_back(run.elapsed_s * 1e9);
        }
        const Estimate elapsed = seconds.empty() ? Estimate{} : bootstrap_median(seconds);
        const bool fine = std::all_of(cases[i].checks.begin(), cases[i].checks.end(),
                                      [](const CheckedThing& thing) { return thing.failures.empty(); });
        const std::string compared =
            cases[i].comparisons.empty() ? "-" : std::string(finding_name(cases[i].comparisons.front().finding()));
        table.row({results[i].cell.job->name, results[i].cell.target->name, count_cell(seconds.size()),
                   seconds.empty() ? Cell("-", nullptr) : Cell(metric_value("elapsed", elapsed.median), elapsed.median),
                   seconds.size() < 2
                       ? "-"
                       : metric_value("elapsed", elapsed.low) + " to " + metric_value("elapsed", elapsed.high),
                   fine ? "ok" : "FAILED", compared});
    }
    return table;
}

void print_case(const RegressionCase& one) {
    constexpr size_t kShown = 5;
    std::cout << '\n' << one.name << '\n';
    for (const CheckedThing& thing : one.checks) {
        const std::string& more = thing.skipped.empty() ? thing.note : thing.skipped;
        std::cout << "  " << thing.name << ": " << word_of(thing) << (more.empty() ? "" : " (" + more + ")") << '\n';
        for (size_t i = 0; i < thing.failures.size() && (i < kShown || verbosity() > 0); ++i) {
            std::cout << "    " << printable(thing.failures[i]) << '\n';
        }
        if (thing.failures.size() > kShown && verbosity() <= 0) {
            std::cout << "    and " << thing.failures.size() - kShown << " more (-v)\n";
        }
    }
    for (const Regression& regression : one.comparisons) {
        std::cout << regression.name << '\n';
        print_regression(std::cout, regression);
    }
}

Json json_of(const std::vector<CellResult>& results, const std::vector<RegressionCase>& cases, bool finished,
             const ResumedRuns& resumed) {
    Json rows = Json::array();
    for (size_t i = 0; i < results.size(); ++i) {
        Json checks = Json::array(), comparisons = Json::array(), runs = Json::array();
        for (const CheckedThing& thing : cases[i].checks) {
            checks.push_back({{"check", thing.name},
                              {"result", word_of(thing)},
                              {"failures", thing.failures},
                              {"skipped", thing.skipped},
                              {"note", thing.note}});
        }
        for (const Regression& regression : cases[i].comparisons) {
            comparisons.push_back(regression_json(regression));
        }
        for (const RunRecord& run : results[i].runs) {
            runs.push_back(to_json(run));
        }
        rows.push_back({{"job", results[i].cell.job->name},
                        {"target", results[i].cell.target->name},
                        {"passed", passed(cases[i])},
                        {"checks", std::move(checks)},
                        {"comparisons", std::move(comparisons)},
                        {"runs", std::move(runs)}});
    }
    const bool all = std::all_of(cases.begin(), cases.end(), passed);
    Json before = resumed.runs == 0
                      ? Json()
                      : Json{{"runs", resumed.runs}, {"of", resumed.of}, {"first_unix_s", resumed.first_unix_s}};
    return {{"passed", all && finished},
            {"finished", finished},
            {"resumed", std::move(before)},
            {"cases", std::move(rows)}};
}

/// Which runs are not of this call; empty: all are.
std::string resumed_sentence(const ResumedRuns& resumed, const fs::path& folder) {
    if (resumed.runs == 0) {
        return {};
    }
    constexpr int64_t kSecond = 1'000'000'000;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t age = std::chrono::duration_cast<std::chrono::seconds>(now).count() - resumed.first_unix_s;
    return (resumed.runs == resumed.of ? "no new run: all " : std::to_string(resumed.runs) + " of ") +
           counted(resumed.of, "run") + " were made by an earlier call, " +
           format_duration(std::max<int64_t>(age, 0) * kSecond) + " ago (" + printable(folder.string()) +
           "); -f makes all anew";
}

/// How many of the metrics compared could not have shown a change; empty: none.
std::string too_noisy(const std::vector<RegressionCase>& cases) {
    size_t all = 0, noisy = 0;
    for (const RegressionCase& one : cases) {
        for (const Regression& comparison : one.comparisons) {
            for (const MetricFinding& metric : comparison.metrics) {
                ++all;
                noisy += metric.finding == Finding::noisy ? 1 : 0;
            }
        }
    }
    return noisy == 0 ? ""
                      : "; too noisy to tell: " + (noisy == all ? "all " : std::to_string(noisy) + " of ") +
                            counted(all, "metric");
}

void print_all(const std::vector<CellResult>& results, const std::vector<RegressionCase>& cases,
               const std::string& resumed) {
    const auto failed = static_cast<size_t>(
        std::count_if(cases.begin(), cases.end(), [](const RegressionCase& one) { return !passed(one); }));
    std::cout << (failed != 0 ? "FAILED: " + std::to_string(failed) + " of " + counted(cases.size(), "case")
                              : "passed: " + counted(cases.size(), "case"))
              << too_noisy(cases) << "\n"
              << resumed << (resumed.empty() ? "\n" : "\n\n");
    overview(results, cases).print(std::cout, 2);
    for (const RegressionCase& one : cases) {
        print_case(one);
    }
}

Suite suite_of(const po::variables_map& values) {
    const fs::path file = values["suite"].as<std::string>();
    Suite suite = read_suite(file);
    for (const std::string& text : values.count("target") != 0 ? values["target"].as<Words>() : Words{}) {
        add_target(suite, text);
    }
    if (values.count("runs") != 0) {
        constexpr int64_t kMostRuns = 10'000;
        suite.runs = static_cast<size_t>(whole_number(values, "runs", 1, kMostRuns));
    }
    check_suite(suite, file);
    for (const SuiteJob& job : suite.jobs) {
        check_read_too("regress", values, job.log);
    }
    return suite;
}

/// Before anything is made: a mistake found later leaves roots and a folder behind.
void check_words_of(const Suite& suite) {
    for (const SuiteJob& job : suite.jobs) {
        for (const auto* const words : {&job.prepare, &job.replay}) {
            const bool prepares = words == &job.prepare;
            Words all = prepares ? prepare_words(job, suite.targets.front().folder)
                                 : replay_words(job, suite.targets.front().folder, {"--verify", "tree"});
            if (!prepares) {
                all.insert(all.end(), {"-o", "run.oplog", "--json=run.json"});  // as the runs have; nothing is written
            }
            try {
                prepares ? check_prepare_words(all) : check_replay_words(all);
            } catch (const Error& error) {
                if (error.code() != ExitCode::usage) {
                    throw;
                }
                throw usage_error("[job " + job.name + "] " + (prepares ? "prepare: " : "replay: ") + error.what(), "");
            }
        }
    }
}

int run(const po::variables_map& values) {
    refuse_ranks("regress");
    const Thresholds thresholds = wanted_thresholds(values);
    check_report_files(values);
    const Baseline baseline(values.count("baseline") != 0 ? values["baseline"].as<std::string>() : std::string());
    const bool update = values.count("update-baseline") != 0;
    if (update && !baseline.wanted()) {
        throw usage_error("--update-baseline names no baseline", "use --baseline FILE, too");
    }
    RegressOptions how;
    how.suite_file = values["suite"].as<std::string>();
    how.folder = values.count("output") != 0 ? fs::path(values["output"].as<std::string>())
                                             : fs::path(how.suite_file.string() + ".regress");
    check_folder_too("regress", values, how.folder, kRegressFiles);
    how.verify = values.count("verify") != 0;
    how.fresh = values.count("force") != 0;
    how.exclude_doubtful = values.count("exclude-doubtful") != 0;
    if (baseline.there()) {
        how.baseline = baseline.runs();
    }
    Suite wanted = suite_of(values);
    baseline.check(wanted);
    check_words_of(wanted);
    RegressSuite suite(std::move(wanted), how);
    if (!suite.aside().empty() && !quiet()) {
        std::cerr << "note: the runs of the last call were judged: they are now in "
                  << printable(suite.aside().string()) << ", and new ones are made\n";
    }
    const bool finished = suite.run();
    const std::vector<CellResult> results = suite.results();
    if (!finished) {
        std::cerr << "reprise: interrupted; the same command goes on where it stopped\n";
        return static_cast<int>(ExitCode::machine);
    }
    const std::vector<RegressionCase> cases = cases_of(results, baseline, thresholds, how.exclude_doubtful);
    const bool all = std::all_of(cases.begin(), cases.end(), passed);
    if (json_wanted(values)) {
        put_json(values, json_of(results, cases, finished, suite.resumed()));
    }
    write_reports(values, "reprise regress " + how.suite_file.filename().string(), cases);
    if (!json_alone(values)) {
        print_all(results, cases, resumed_sentence(suite.resumed(), how.folder));
        if (!baseline.wanted() && suite.suite().targets.size() == 1) {
            std::cout << "\nnote: one target and no --baseline: nothing to compare with\n";
        }
    }
    if (baseline.wanted() && (!baseline.there() || update)) {
        if (all) {
            baseline.store(results);
        }
        if (!quiet() && !json_alone(values)) {
            std::cout << (all ? "\nthe baseline was stored\n"
                              : "\nthe baseline was NOT stored: what was measured does not pass\n");
        }
    }
    if (std::none_of(cases.begin(), cases.end(), few)) {
        suite.note_judged();  // else more runs may be added to them
    }
    return static_cast<int>(all ? ExitCode::done : ExitCode::check_failed);
}

const Registration registration{{
    .name = "regress",
    .group = Group::judge,
    .summary = "replay a suite of logs on several targets; did anything get worse?",
    .help =
        "A suite names op logs; each is replayed on each target, several times, warmed up, in a shuffled order, with "
        "the "
        "root DIR/JOB restored before each run. Checked after each run: results of calls, names, types and sizes of "
        "files, and whether its times may be believed. With --verify also every byte, before the measured runs.\n\nThe "
        "targets are compared with the first "
        "one, "
        "or, with --baseline, each with its own runs of another day or kernel, as by `compare --against`; runs that "
        "were judged before are not taken for new ones.\n\n"
        "    [suite]\n    runs = 10\n    warm-up = 1\n    [job resnet]\n    log = resnet.oplog\n    replay = --cache "
        "cold\n"
        "    [target ext4]\n    remount = umount /mnt/a && mount /dev/sdb1 /mnt/a\n\n"
        "Interrupted or killed, the same command goes on. Exit code 1: a check failed, or something got worse, or "
        "no metric can tell (too few runs, or too noisy ones).",
    .examples = {{"reprise regress suite.ini --target ext4=/mnt/a --target xfs=/mnt/b --runs 10", "XFS beside ext4"},
                 {"reprise regress suite.ini --target new=/mnt/a --baseline base.json",
                  "this kernel beside the last one"},
                 {"reprise regress suite.ini --target x=/mnt/a --verify --junit regress.xml",
                  "in CI, content checked, too"}},
    .options = options,
    .positionals = {{.name = "suite", .label = "SUITE"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::regress_command
