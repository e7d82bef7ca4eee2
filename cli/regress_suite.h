// SPDX-License-Identifier: MIT
// The runs of `regress`: jobs x targets, warmed up, interleaved, restored in between, kept one by one.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/run_record.h"
#include "cli/command.h"
#include "cli/show_regression.h"
#include "experiment/row_file.h"
#include "experiment/suite.h"

namespace reprise::cli {

/// A job on a target.
struct RegressCell {
    const SuiteJob* job = nullptr;
    const SuiteTarget* target = nullptr;
    std::filesystem::path root;
    std::string name() const { return job->name + " on " + target->name; }
};

/// What is known of a cell.
struct CellResult {
    RegressCell cell;
    std::vector<RunRecord> runs;
    std::vector<CheckedThing> checks;
    std::string file_system;  // that the runs were made on
};

/// Runs that an earlier call of the command left.
struct ResumedRuns {
    size_t runs = 0, of = 0;
    int64_t first_unix_s = 0;  // when the first of them was made
};

struct RegressOptions {
    std::filesystem::path suite_file, folder;
    bool verify = false, fresh = false;
    bool exclude_doubtful = false;  // runs that did not keep the recording's times are left out, and fail nothing
    /// Of a baseline that the runs are to be compared with: neither these nor runs that were judged before are new.
    std::optional<std::vector<RunRecord>> baseline = {};
};

/// What a suite writes into RegressOptions::folder.
inline constexpr std::array<std::string_view, 5> kRegressFiles = {"runs.jsonl", "runs.before.jsonl", "run.json",
                                                                  "run.oplog", "run.1.oplog"};

/// What `prepare` and `replay` are started with, without their names and what they write.
std::vector<std::string> prepare_words(const SuiteJob& job, const std::filesystem::path& root);
std::vector<std::string> replay_words(const SuiteJob& job, const std::filesystem::path& root,
                                      const std::vector<std::string>& more);

class RegressSuite {
public:
    /// Throws Error where a target is not there, or the folder holds runs of another suite or on another file system.
    RegressSuite(Suite suite, RegressOptions options);
    RegressSuite(const RegressSuite&) = delete;
    RegressSuite& operator=(const RegressSuite&) = delete;

    /// False where it was interrupted. Throws Error where a target disappears or refuses to be prepared.
    bool run();
    std::vector<CellResult> results() const;
    /// Asked before run().
    const ResumedRuns& resumed() const { return resumed_; }
    /// Where the runs are that were judged before; empty: there were none to be put aside.
    const std::filesystem::path& aside() const { return aside_; }
    /// These runs had their verdict: where there is a baseline, a later call makes new ones.
    void note_judged();
    const Suite& suite() const { return suite_; }

private:
    using Json = RowFile::Json;
    using Words = std::vector<std::string>;

    struct Place {
        uint64_t device = 0, inode = 0;
    };
    static Place place_of(const SuiteTarget& target);
    bool judged_before() const;
    void check_file_systems() const;
    void find_resumed();
    void check_target(size_t target) const;
    std::string conditions() const;
    const Json* find(size_t cell, const Json& key) const;
    void keep(size_t cell, const Json& key, Json row);
    void prepare(const RegressCell& cell) const;
    std::optional<Json> replay_once(const RegressCell& cell, const Words& more) const;
    std::optional<Json> verify_once(const RegressCell& cell) const;
    bool verify_all();
    bool time_all();

    Suite suite_;
    RegressOptions options_;
    std::vector<RegressCell> cells_;
    std::vector<Place> places_;  // of targets
    std::optional<RowFile> file_;
    std::vector<Json> rows_;
    std::filesystem::path scratch_, aside_;
    ResumedRuns resumed_;
};

}  // namespace reprise::cli
