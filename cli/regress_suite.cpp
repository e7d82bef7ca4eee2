// SPDX-License-Identifier: MIT
#include "cli/regress_suite.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>

#include "cli/file_system_of.h"
#include "cli/help.h"
#include "cli/power_cut.h"
#include "cli/progress.h"
#include "cli/regress_checks.h"
#include "cli/self_run.h"
#include "cli/units.h"
#include "experiment/sweep.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "replay/prepare/root_marker.h"
#include "replay/run/machine.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRows = "runs.jsonl";
constexpr const char* kJudged = "judged_unix_s";  // of a row that is no run: all before it had their verdict

int64_t unix_now() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

bool gives(const std::vector<std::string>& words, const std::string& option) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return word == option || word.starts_with(option + "="); });
}

}  // namespace

RegressSuite::RegressSuite(Suite suite, RegressOptions options)
    : suite_(std::move(suite)), options_(std::move(options)) {
    for (const SuiteTarget& target : suite_.targets) {
        places_.push_back(place_of(target));
        for (const SuiteJob& job : suite_.jobs) {
            cells_.push_back({&job, &target, target.folder / job.name});
        }
    }
    std::error_code error;
    fs::create_directories(options_.folder, error);
    if (!fs::is_directory(options_.folder)) {
        throw machine_error("cannot make the folder " + escape_line(options_.folder.string()) + ": " + error.message(),
                            "choose another one with -o");
    }
    const bool anew = !options_.fresh && judged_before();
    aside_ = anew ? options_.folder / "runs.before.jsonl" : fs::path();
    file_.emplace(options_.folder / kRows, "suite", conditions(), options_.fresh || anew, aside_);
    rows_ = file_->found();
    check_file_systems();
    find_resumed();
    scratch_ = options_.folder / "run";
}

/// Whether the folder's runs are no new ones for a comparison with a baseline.
bool RegressSuite::judged_before() const {
    if (!options_.baseline) {
        return false;
    }
    const std::vector<Json> rows = RowFile::peek(options_.folder / kRows);
    return std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
        if (row.contains(kJudged)) {
            return true;
        }
        if (!row.contains("record")) {
            return false;
        }
        try {
            RunRecord run = run_record_of(row["record"]);
            run.path.clear();
            return std::find(options_.baseline->begin(), options_.baseline->end(), run) != options_.baseline->end();
        } catch (const Json::exception&) {
            return true;  // of another version
        }
    });
}

/// Runs on a file system that was made anew since, or is mounted in another way, are none of this one.
void RegressSuite::check_file_systems() const {
    for (const SuiteTarget& target : suite_.targets) {
        const std::string now = file_system_of(target.folder);
        for (const Json& row : rows_) {
            if (row.value("target", "") != target.name || row.value("file system", "") == now) {
                continue;
            }
            throw usage_error(escape_line((options_.folder / kRows).string()) +
                                  " has runs on another file system of target " + target.name,
                              "then: " + escape_line(row.value("file system", "unknown")) + "\n  now:  " +
                                  escape_line(now) + "\n  choose another folder with -o, or begin anew with -f");
        }
    }
}

void RegressSuite::find_resumed() {
    resumed_.of = cells_.size() * suite_.runs;
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
        for (size_t run = 0; run < suite_.runs; ++run) {
            if (const Json* const row = find(cell, run)) {
                const int64_t made = row->value("unix_s", int64_t{0});
                resumed_.first_unix_s = resumed_.runs++ == 0 ? made : std::min(resumed_.first_unix_s, made);
            }
        }
    }
}

void RegressSuite::note_judged() {
    if (rows_.empty() || !rows_.back().contains(kJudged)) {
        Json row = {{kJudged, unix_now()}};
        file_->add(row);
        rows_.push_back(std::move(row));
    }
}

RegressSuite::Place RegressSuite::place_of(const SuiteTarget& target) {
    struct stat status {};
    if (::stat(target.folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        const std::string why = S_ISDIR(status.st_mode) || status.st_mode == 0 ? reason(errno) : "not a directory";
        throw machine_error("target " + target.name + ": " + escape_line(target.folder.string()) + ": " + why,
                            "mount it first, or name another directory");
    }
    return {status.st_dev, status.st_ino};
}

/// A mount that went away leaves the directory below it, which would then be measured.
void RegressSuite::check_target(size_t target) const {
    const Place now = place_of(suite_.targets[target]);
    if (now.device != places_[target].device || now.inode != places_[target].inode) {
        throw machine_error("target " + suite_.targets[target].name +
                                " has disappeared: " + escape_line(suite_.targets[target].folder.string()) +
                                " is another file system than when the suite began",
                            "mount it again; the same command goes on where it stopped");
    }
}

/// What makes runs comparable. How many there are does not.
std::string RegressSuite::conditions() const {
    const MachineFacts machine = machine_facts({});
    std::string text = "reprise " + std::string(tool_version()) + " on " + machine.host + " " + machine.kernel;
    for (const SuiteJob& job : suite_.jobs) {
        const LogReader log(job.log);
        text += ", " + job.name + " " + log_fingerprint(log);
        for (const auto* const words : {&job.prepare, &job.replay}) {
            for (const std::string& word : *words) {
                text += " " + word;
            }
        }
    }
    for (const SuiteTarget& target : suite_.targets) {
        text += ", " + target.name + " " + fs::absolute(target.folder).string();
    }
    return text + ", seed " + std::to_string(suite_.seed);
}

const RegressSuite::Json* RegressSuite::find(size_t cell, const Json& key) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Json& row) {
        return row.value("job", "") == cells_[cell].job->name && row.value("target", "") == cells_[cell].target->name &&
               row.contains("run") && row["run"] == key;
    });
    return found == rows_.end() ? nullptr : &*found;
}

void RegressSuite::keep(size_t cell, const Json& key, Json row) {
    row["job"] = cells_[cell].job->name;
    row["target"] = cells_[cell].target->name;
    row["run"] = key;
    row["unix_s"] = unix_now();
    row["file system"] = file_system_of(cells_[cell].target->folder);
    file_->add(row);
    rows_.push_back(std::move(row));
}

std::vector<std::string> prepare_words(const SuiteJob& job, const fs::path& root) {
    std::vector<std::string> words = {job.log.string(), "--root", root.string(), "-q"};
    words.insert(words.end(), job.prepare.begin(), job.prepare.end());
    return words;
}

std::vector<std::string> replay_words(const SuiteJob& job, const fs::path& root, const std::vector<std::string>& more) {
    std::vector<std::string> words = {job.log.string(), "--root", root.string(), "-q", "--runs", "1", "--force"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), job.replay.begin(), job.replay.end());
    if (!gives(job.replay, "--tolerance-results")) {
        words.insert(words.end(), {"--tolerance-results", "0"});
    }
    return words;
}

void RegressSuite::prepare(const RegressCell& cell) const {
    Words words = prepare_words(*cell.job, cell.root);
    words.insert(words.begin(), "prepare");
    if (needs_reset(cell.root)) {
        words.emplace_back("--reset");
    }
    const SelfRun prepared = run_self(words, false);
    if (prepared.code == static_cast<int>(ExitCode::usage)) {
        throw usage_error("[job " + cell.job->name + "] prepare: " + prepared.message, "");
    }
    if (prepared.code != 0 && !Interrupts::any()) {
        throw machine_error(cell.name() + ": cannot be prepared: " + prepared.message,
                            "try it: reprise prepare " + escape_line(cell.job->log.string()) + " --root " +
                                escape_line(cell.root.string()));
    }
}

/// What a replay came to; none where it was interrupted.
std::optional<RegressSuite::Json> RegressSuite::replay_once(const RegressCell& cell, const Words& more) const {
    const fs::path json_file = scratch_.string() + ".json", log_file = scratch_.string() + ".oplog",
                   run_log = scratch_.string() + ".1.oplog";
    Words words = {"replay", "-o", log_file.string(), "--json=" + json_file.string()};
    const Words rest = replay_words(*cell.job, cell.root, more);
    words.insert(words.end(), rest.begin(), rest.end());
    fs::remove(json_file);
    const SelfRun ended = run_self(words, false);
    if (Interrupts::any()) {
        return std::nullopt;
    }
    if (ended.code == static_cast<int>(ExitCode::usage)) {
        throw usage_error("[job " + cell.job->name + "] replay: " + ended.message, "");
    }
    Json row;
    const bool made =
        (ended.code == 0 || ended.code == static_cast<int>(ExitCode::check_failed)) && fs::exists(json_file);
    row["refused"] = made ? "" : ended.message.empty() ? "exit code " + std::to_string(ended.code) : ended.message;
    if (made) {
        std::ifstream in(json_file);
        const Json result = Json::parse(in);
        row["not_same_job"] = result.at("not_same_job");
        row["verify"] = result.at("verify");
        row["not_measured"] = result.at("not_measured");
        row["not_faithful"] = result.at("fidelity").at("failures");
        RunRecord record = run_record(LogReader(run_log));
        record.path = cell.name();
        row["record"] = to_json(record);
    }
    fs::remove(json_file);
    return row;
}

bool RegressSuite::run() {
    const Interrupts interrupts;
    const bool finished = (!options_.verify || verify_all()) && time_all();
    std::error_code ignored;
    for (const char* const ending : {".json", ".oplog", ".1.oplog", ".1.oplog.partial"}) {
        fs::remove(scratch_.string() + ending, ignored);
    }
    return finished;
}

std::optional<RegressSuite::Json> RegressSuite::verify_once(const RegressCell& cell) const {
    std::optional<Json> row = replay_once(cell, {"--verify", "content"});
    if (!row) {
        return std::nullopt;
    }
    std::vector<CheckedThing> things = checks_of(*row);
    fs::path run_log = scratch_.string() + ".1.oplog";
    if (row->at("refused").get<std::string>().empty()) {
        things.push_back(check_after_remount(cell, run_log));
        CutWork work{fs::absolute(options_.folder) / "cut", suite_.cuts, suite_.seed, {}, {}, {}};
        work.prepare = [this](const RegressCell& there) { prepare(there); };
        work.run = [this](const RegressCell& there) { return replay_once(there, {"--verify", "content"}); };
        work.run_log = [&] { return run_log; };
        things.push_back(check_power_cuts(cell, work));
    }
    if (Interrupts::any()) {
        return std::nullopt;
    }
    row->erase("record");
    row->erase("verify");
    (*row)["checks"] = to_json(things);
    return row;
}

bool RegressSuite::verify_all() {
    Progress progress("verify");
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
        if (find(cell, "verify") != nullptr) {
            continue;
        }
        progress.update(cell, cells_.size(), cells_[cell].name());
        check_target(cell / suite_.jobs.size());
        prepare(cells_[cell]);
        std::optional<Json> row = verify_once(cells_[cell]);
        if (!row) {
            return false;
        }
        places_[cell / suite_.jobs.size()] =
            place_of(*cells_[cell].target);  // mounted anew, it may have another device number
        keep(cell, "verify", std::move(*row));
    }
    return true;
}

bool RegressSuite::time_all() {
    const std::vector<SweepTurn> order = sweep_order(cells_.size(), suite_.runs, suite_.seed);
    std::vector<SweepTurn> turns;
    std::vector<bool> begun(cells_.size());
    for (const SweepTurn& turn : order) {
        if (find(turn.cell, turn.run) == nullptr) {
            begun[turn.cell] = true;
            turns.push_back(turn);
        }
    }
    std::vector<size_t> warm;
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
        warm.insert(warm.end(), begun[cell] ? suite_.warm_up : 0, cell);
    }
    Progress progress("regress");
    size_t done = 0;
    const size_t total = warm.size() + turns.size();
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
        if (begun[cell]) {
            progress.update(done, total, "preparing " + cells_[cell].name());
            check_target(cell / suite_.jobs.size());
            prepare(cells_[cell]);
        }
        if (Interrupts::any()) {
            return false;
        }
    }
    for (const size_t cell : warm) {
        progress.update(done++, total, "warming up " + cells_[cell].name());
        check_target(cell / suite_.jobs.size());
        if (!replay_once(cells_[cell], {})) {
            return false;
        }
    }
    for (const SweepTurn& turn : turns) {
        progress.update(done++, total, cells_[turn.cell].name());
        check_target(turn.cell / suite_.jobs.size());
        std::optional<Json> row = replay_once(cells_[turn.cell], {"--verify", "tree"});
        if (!row) {
            return false;
        }
        keep(turn.cell, turn.run, std::move(*row));
    }
    return true;
}

std::vector<CellResult> RegressSuite::results() const {
    std::vector<CellResult> out;
    for (size_t cell = 0; cell < cells_.size(); ++cell) {
        CellResult one{cells_[cell], {}, {}, {}};
        CheckedThing runs{"runs: results, names, types and sizes", {}, ""}, times{"runs: times", {}, ""};
        for (size_t run = 0; run < suite_.runs; ++run) {
            const Json* const row = find(cell, run);
            if (row == nullptr) {
                continue;
            }
            for (const std::string& failure : failures_of(*row)) {
                runs.failures.push_back("run " + std::to_string(run + 1) + ": " + failure);
            }
            for (const std::string& failure : doubts_of_times(*row, options_.exclude_doubtful)) {
                times.failures.push_back("run " + std::to_string(run + 1) + ": " + failure);
            }
            one.file_system = row->value("file system", "");
            if (row->contains("record")) {
                one.runs.push_back(run_record_of(row->at("record")));
                one.runs.back().path += ", run " + std::to_string(run + 1);
            }
        }
        if (const Json* const verified = find(cell, "verify"); options_.verify && verified != nullptr) {
            one.checks = checks_from(verified->at("checks"));
        }
        one.checks.push_back(std::move(runs));
        one.checks.push_back(std::move(times));
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace reprise::cli
