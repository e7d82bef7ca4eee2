// SPDX-License-Identifier: MIT
// `replay --verify`: whether a run left the files that it should, and read what it should.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/support/unique_fd.h"
#include "replay/content/verify_plan.h"
#include "replay/prepare/layout.h"
#include "replay/run/check_tree.h"

namespace reprise {

enum class Verify : uint8_t {
    none,
    tree,     // names, types and sizes afterwards
    content,  // also every byte: of what is read, and of all files afterwards
};

struct VerifyReport {
    Verify how = Verify::none;
    uint64_t reads = 0, read_bytes = 0;         // that were checked
    uint64_t unchecked_reads = 0;               // whose files are not known, or raced with writes
    TreeCheck tree;                             // its findings, and those of reads
    std::map<std::string, uint64_t> unchecked;  // files, by reason
};

/// An op as it was in a run.
struct TimedOp {
    TaskId task = 0;
    uint64_t number = 0;  // within the recorded task
    Op op;                // its lists are not there
};
/// Adds an op of a run if a model needs it: touches range by range.
void add_shaping(std::vector<TimedOp>& ops, TaskId task, uint64_t number, const Op& op);
/// By begin, task and number.
void sort_by_time(std::vector<TimedOp>& ops);

/// What `prepare` laid out for a log.
class PreparedFiles {
public:
    PreparedFiles(const Plan& plan, const OpFilter& filter, bool listing_entries);
    void add_to(FileModel& model) const;
    /// Directories of files that are in memory.
    const std::vector<std::string>& ignored() const { return ignored_; }

private:
    Layout layout_;
    std::vector<std::string> ignored_;
};

class Verification {
public:
    /// Before the run. The plan outlives this.
    Verification(const Plan& plan, PreparedFiles prepared, Verify how);
    /// For Plan::verify; null where content is not checked.
    std::shared_ptr<const VerifyPlan> plan() const { return verify_; }
    /// Every op of the run.
    void see(TaskId task, uint64_t number, const Op& op);
    /// After it. `root`: a directory descriptor.
    VerifyReport finish(int root);

private:
    std::vector<VerifyRow> rows() const;
    void check_reads(std::vector<VerifyRow> rows, VerifyReport& report);

    const Plan& plan_;
    PreparedFiles prepared_;
    Verify how_;
    UniqueFd findings_;
    std::shared_ptr<VerifyPlan> verify_;
    std::vector<TimedOp> ops_;
    std::map<uint64_t, Op> read_ops_;  // by VerifyPlan::key(), of reads that something was found in
};

}  // namespace reprise
