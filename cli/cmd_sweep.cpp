// SPDX-License-Identifier: MIT
// `reprise sweep`: a log replayed over a grid of circumstances.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/named_files.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/self_run.h"
#include "cli/show_sweep.h"
#include "cli/sweep_axes.h"
#include "cli/sweep_cache.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/words_check.h"
#include "experiment/sweep.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "formats/support/escape.h"
#include "formats/support/unique_fd.h"
#include "replay/prepare/root_lock.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/machine.h"

namespace reprise::cli::sweep_command {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr const char* kRows = "runs.jsonl";
constexpr std::array<std::string_view, 5> kFiles = {kRows, "run.json", "cells.csv", "sweep.svg", "sweep.png"};
constexpr uint64_t kMostRuns = 100'000;
void options(po::options_description& add) {
    add.add_options()("root", po::value<std::string>()->value_name("DIR"),
                      "replay root; prepared first where it is not")(
        "ratio", po::value<std::string>()->value_name("LIST"), "data to memory, e.g. 0.5,1,2,4")(
        "memory", po::value<std::string>()->value_name("LIST"), "memory limits, e.g. 1G,2G,4G")(
        "gpu-speed", po::value<std::string>()->value_name("LIST"), "how much faster the accelerators are, e.g. 1,2")(
        "io-limit", po::value<Words>()->value_name("LIMITS")->composing(),
        "as in replay, e.g. read=50M; give it several times to compare")("no-ballast",
                                                                         "do not stand in for the job's own memory")(
        "runs", po::value<std::string>()->default_value("3")->value_name("N"), "runs of each cell")(
        "beside", po::value<Words>()->value_name("NAME=FILE")->composing(),
        "show what was measured or predicted elsewhere, a CSV file with the columns of cells.csv")(
        "seed", po::value<std::string>()->default_value("1")->value_name("N"), "of the order of the runs")(
        "tolerance-results", po::value<std::string>()->value_name("N|SHARE"), "as in replay");
    add_sweep_cache_option(add);
    add_filter_options(add);
    add.add_options()(
        "output,o", po::value<std::string>()->value_name("FOLDER"),
        "runs so far, table, CSV and pictures [default: LOG.sweep]; a sweep that was stopped goes on there")(
        "force,f", "begin anew");
    add_json_option(add);
}

/// What every run has in common.
Words common_words(const po::variables_map& values) {
    Words words;
    for (const char* const option : {"only", "not"}) {
        if (values.count(option) != 0) {
            for (const std::string& each : values[option].as<Words>()) {
                words.insert(words.end(), {std::string("--") + option, each});
            }
        }
    }
    if (values.count("no-ballast") != 0) {
        words.emplace_back("--no-ballast");
    }
    if (values.count("tolerance-results") != 0) {
        words.insert(words.end(), {"--tolerance-results", values["tolerance-results"].as<std::string>()});
    }
    return words;
}

std::optional<double> number_at(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

SweepRun run_of(const fs::path& file) {
    std::ifstream in(file);
    const Json json = Json::parse(in);
    SweepRun run;
    const Json& verdict = json.at("verdict");
    run.trust = verdict.at("trust").get<std::string>();
    run.reason = verdict.at("trust_reason").get<std::string>();
    run.elapsed_s = json.at("elapsed_s").get<double>();
    run.au = number_at(json, "au");
    if (run.elapsed_s > 0) {
        run.bytes_per_s = number_at(json, "bytes_read").value_or(0) / run.elapsed_s;
    }
    if (const auto reads = verdict.at("here").find("reads"); reads != verdict.at("here").end()) {
        if (const auto p99 = number_at(*reads, "p99_ns")) {
            run.read_p99_s = *p99 / 1e9;
        }
    }
    run.device_bytes = number_at(json, "device_read_bytes");
    run.device_share = number_at(verdict, "device_share");
    if (const auto memory = json.find("memory"); memory != json.end()) {
        run.limit_bytes = number_at(*memory, "limit_bytes");
    }
    return run;
}

class Sweep {
public:
    explicit Sweep(const po::variables_map& values)
        : log_(values["log"].as<std::string>()),
          root_(values.count("root") != 0 ? values["root"].as<std::string>() : std::string()),
          folder_(values.count("output") != 0 ? fs::path(values["output"].as<std::string>())
                                              : fs::path(log_ + ".sweep")),
          axes_(axes_of(values)),
          cells_(sweep_cells(axes_)),
          common_(common_words(values)),
          runs_(static_cast<size_t>(whole_number(values, "runs", 1, int64_t{kMostRuns}))),
          seed_(static_cast<uint64_t>(whole_number(values, "seed", 0, INT64_MAX))) {
        if (root_.empty()) {
            throw usage_error("sweep needs --root", "name the directory to replay in; it is prepared where it is not");
        }
        if (runs_ * cells_.size() > kMostRuns) {
            throw usage_error(std::to_string(cells_.size()) + " cells of " + std::to_string(runs_) + " runs",
                              "use --runs from 1, and at most 100000 runs in all");
        }
        check_folder_too("sweep", values, folder_, kFiles);
        const LogReader log{fs::path(log_)};
        cache_ = sweep_cache(values, log, wanted_filter(values, log, Base::job),
                             values.count("ratio") + values.count("memory") != 0);
        if (!cache_.option.empty()) {
            common_.insert(common_.end(), {"--cache", cache_.option});
        }
        check_words();
        conditions_ = "reprise " + std::string(tool_version()) + " on " + machine_facts({}).host + ", log " +
                      log_fingerprint(log) + ", root " + fs::absolute(root_).string() + ", seed " +
                      std::to_string(seed_);
        for (const SweepAxis& axis : axes_) {
            conditions_ += ", " + axis.option;
            for (const std::string& value : axis.values) {
                conditions_ += " " + value;
            }
        }
        for (const std::string& word : common_) {
            conditions_ += " " + word;
        }
        for (const std::string& given : values.count("beside") != 0 ? values["beside"].as<Words>() : Words{}) {
            beside_.push_back(read_beside(given, axes_.front().option, sweep_columns(), axis_names()));
        }
        std::error_code error;
        made_folder_ = fs::create_directories(folder_, error);
        if (!fs::is_directory(folder_)) {
            throw machine_error("cannot make the folder " + escape_line(folder_.string()) + ": " + error.message(),
                                "choose another one with -o");
        }
        rows_.emplace(folder_ / kRows, conditions_, values.count("force") != 0);
    }

    /// False where it was interrupted.
    bool run() {
        const Interrupts interrupts;
        const std::vector<SweepTurn> order = sweep_order(cells_.size(), runs_, seed_);
        const auto left = static_cast<size_t>(
            std::count_if(order.begin(), order.end(), [&](const SweepTurn& turn) { return !rows_->find(turn); }));
        if (left == 0) {
            return true;
        }
        try {
            prepare();
        } catch (const Error&) {
            if (made_folder_) {
                fs::remove(folder_ / kRows);  // nothing was measured
                std::error_code ignored;
                fs::remove(folder_, ignored);
            }
            throw;
        }
        Progress progress("sweep");
        size_t done = 0;
        for (const SweepTurn& turn : order) {
            if (rows_->find(turn) != nullptr) {
                continue;
            }
            progress.update(done, left, "now " + words_of(cells_[turn.cell]));
            std::optional<SweepRun> run = run_cell(cells_[turn.cell]);
            if (Interrupts::any()) {
                return false;
            }
            rows_->add(turn, std::move(*run));
            progress.update(++done, left);
        }
        return true;
    }

    SweepResult result() const {
        SweepResult result{log_, root_, axes_, cells_, {}, runs_, beside_};
        result.cache = cache_.sentence;
        result.runs.resize(cells_.size());
        for (size_t cell = 0; cell < cells_.size(); ++cell) {
            for (size_t run = 0; run < runs_; ++run) {
                if (const SweepRun* const found = rows_->find({cell, run})) {
                    result.runs[cell].push_back(found);
                }
            }
        }
        return result;
    }
    const fs::path& folder() const { return folder_; }

private:
    Words options_of(const SweepCell& cell) const {
        Words words;
        for (size_t axis = 0; axis < axes_.size(); ++axis) {
            words.insert(words.end(), {"--" + axes_[axis].option, axes_[axis].values[cell[axis]]});
        }
        return words;
    }
    std::string words_of(const SweepCell& cell) const {
        std::string text;
        for (const std::string& word : options_of(cell)) {
            text += (text.empty() ? "" : " ") + word;
        }
        return text;
    }

    /// Each value once, with the first ones of the other axes.
    void check_words() const {
        // The root may be still to be made: what is above it is there.
        fs::path there = fs::absolute(root_);
        std::error_code error;
        while (!fs::is_directory(there, error) && there.has_relative_path()) {
            there = there.parent_path();
        }
        for (size_t axis = 0; axis < axes_.size(); ++axis) {
            for (size_t value = axis == 0 ? 0 : 1; value < axes_[axis].values.size(); ++value) {
                SweepCell cell(axes_.size(), 0);
                cell[axis] = value;
                Words words = {log_, "--root", there.string()};
                for (const Words& more : {options_of(cell), common_}) {
                    words.insert(words.end(), more.begin(), more.end());
                }
                check_replay_words(words);
            }
        }
    }

    /// The last run of a sweep that was killed may still be ending. Another reprise is told by the step that finds it.
    void wait_for(int root) const {
        for (int tries = 0; tries < 50; ++tries) {
            try {
                RootLock::take(root, root_, RootLock::Kind::exclusive);
                return;
            } catch (const Error&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
        }
    }

    void prepare() const {
        Words words = {"prepare", log_, "--root", root_, "-q"};
        const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (root.valid()) {
            wait_for(root.get());
        }
        if (needs_reset(root_)) {
            words.emplace_back("--reset");
        }
        const SelfRun prepared = run_self(words, true);
        if (prepared.code != 0) {
            throw machine_error("the root cannot be prepared (exit code " + std::to_string(prepared.code) + ")",
                                "try it: reprise prepare " + shell_word(log_) + " --root " + shell_word(root_));
        }
    }

    std::optional<SweepRun> run_cell(const SweepCell& cell) const {
        const fs::path file = folder_ / "run.json";
        fs::remove(file);
        // A series of one: it restores what earlier runs changed.
        Words words = {"replay", log_, "--root", root_, "-q", "--runs", "1", "--json=" + file.string(), "--force"};
        for (const Words& more : {options_of(cell), common_}) {
            words.insert(words.end(), more.begin(), more.end());
        }
        const SelfRun ended = run_self(words, false);
        SweepRun run;
        if (ended.code == static_cast<int>(ExitCode::usage)) {
            throw usage_error(ended.message, "");
        }
        if ((ended.code != 0 && ended.code != static_cast<int>(ExitCode::check_failed)) || !fs::exists(file)) {
            run.refused = ended.message.empty() ? "exit code " + std::to_string(ended.code) : ended.message;
        } else {
            run = run_of(file);
        }
        fs::remove(file);
        return run;
    }

    std::string log_, root_;
    fs::path folder_;
    std::vector<SweepAxis> axes_;
    std::vector<SweepCell> cells_;
    Words common_;
    SweepCache cache_;
    size_t runs_;
    uint64_t seed_;
    std::string conditions_;
    std::vector<SweepBeside> beside_;
    std::optional<SweepRows> rows_;
    bool made_folder_ = false;
};

int run(const po::variables_map& values) {
    refuse_ranks("sweep");
    Sweep sweep(values);
    const bool finished = sweep.run();
    const SweepResult result = sweep.result();
    const SweepFiles files = write_sweep(result, sweep.folder());
    if (!json_alone(values)) {
        print_sweep(std::cout, result, files);
    }
    if (json_wanted(values)) {
        put_json(values, sweep_json(result));
    }
    if (!finished) {
        std::cerr << "reprise: interrupted; the same command goes on where it stopped\n";
        return static_cast<int>(ExitCode::machine);
    }
    return static_cast<int>(sweep_believed(result) ? ExitCode::done : ExitCode::check_failed);
}

const Registration registration{{
    .name = "sweep",
    .group = Group::replay,
    .summary = "replay a log over a grid: memory, accelerator speed, I/O limits",
    .help =
        "Every combination of the values is a cell, and each cell is run several times, in a shuffled order, so that "
        "what changes in the course of the sweep does not look like an effect. The root is prepared where it is not, "
        "and restored before each run, which begins with the same in memory as the others.\n\nEnds with a table; "
        "FOLDER gets cells.csv, sweep.svg and sweep.png, and "
        "keeps each run as soon as it is made: interrupted or killed, the same command goes on.\n\nFigures are "
        "medians over the runs that may be trusted, with their range, from six runs on with a 95 % interval. Exit "
        "code 1: a cell has no such run, or its device served another share of the bytes than that of cells with the "
        "same memory.",
    .examples = {{"reprise sweep job.oplog --root /mnt/new --ratio 0.5,1,2,4", "how the job behaves with less memory"},
                 {"reprise sweep job.oplog --root /mnt/new --ratio 1,4 --gpu-speed 1,2 --runs 7",
                  "and with faster accelerators"},
                 {"reprise sweep job.oplog --root /mnt/new --ratio 1,2 --beside real=real.csv",
                  "beside what the job itself took"},
                 {"reprise sweep job.oplog --root /mnt/new --io-limit read=50M --io-limit read=200M",
                  "on slower storage"}},
    .options = options,
    .positionals = {{"log", "LOG", 1, 1}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::sweep_command
