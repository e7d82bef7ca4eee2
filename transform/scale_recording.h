// SPDX-License-Identifier: MIT
// What of a recording walks its data set: which files hold samples, every access to one, in which epoch it was, and who
// depends on whom. What scaling decides is decided from this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// How a file of the data set grows.
enum class SampleClass : uint8_t {
    fixed,    // does not depend on the set
    sample,   // one sample (or a few): a larger set has more of them
    records,  // samples in one file: a larger set makes it longer
    index,    // read once at start: as long as the set is large
};
std::string_view sample_class_name(SampleClass kind);

/// `PATTERN=CLASS` of the command line: a path with all below it, or a glob.
struct SampleOverride {
    std::string pattern;
    SampleClass kind = SampleClass::fixed;
    /// Throws Error (usage).
    static SampleOverride parse(std::string_view text);
};

/// One access to a sample: a file opened, read and closed, or one read of a record.
struct SampleUnit {
    TaskId task = 0;
    uint32_t first = 0, last = 0;  // ops of the task
    int64_t begin = 0;             // ns
    FileId file = 0;
    int64_t offset = 0;  // records: where
    int64_t bytes = 0;   // that it read; 0: it only looked at the file
    uint32_t epoch = 0;  // how often the sample was read before
    bool again = false;  // uses of pages that were mapped, as samples tell
};

/// Another op of the same recording that must be done before.
struct InEdge {
    uint32_t op = 0;
    TaskId task = 0;
    uint32_t source = 0;
    EdgeKind kind = EdgeKind::marker;
};

/// The ops of one task that use something.
struct TaskUse {
    TaskId task = 0;
    uint32_t first = 0, last = 0;
};

/// Something with an identity that ops make and use: an open instance, a mapping, a request, a made file, a task.
struct ScaleObject {
    TaskId task = 0;  // that made it, or used it first; 0: nobody
    uint32_t op = 0;
    int64_t begin = 0;
    bool made = false;      // by that op, not only used
    uint64_t likeness = 0;  // objects that may stand in for each other have the same
    std::vector<TaskUse> uses;
    std::vector<std::pair<TaskId, uint32_t>> ends;  // ops that end it, or what a process has of it
};

struct RecordedTask {
    std::vector<int64_t> begin;   // ns, of each op
    std::vector<uint8_t> kind;    // OpKind, and 128 + class for waits
    std::vector<InEdge> edges;    // in the order of the ops
    std::vector<InEdge> order;    // likewise: made before it is used, used before it is ended
    std::vector<uint32_t> units;  // in the order of their first ops
    int64_t end = 0;
};

class ScaleRecording {
public:
    /// Reads the log twice. Memory: about ten bytes per op.
    ScaleRecording(const LogReader& log, const std::vector<SampleOverride>& overrides);

    const LogReader& log() const { return log_; }
    SampleClass class_of(FileId file) const { return file < classes_.size() ? classes_[file] : SampleClass::fixed; }
    bool mapped(FileId file) const { return file < facts_.size() && facts_[file].maps != 0; }
    /// Records that are read one after the other, not in random order.
    bool in_order(FileId file) const {
        const uint64_t all = file < facts_.size() ? facts_[file].reads + facts_[file].touches : 0;
        return all > 0 && (all - facts_[file].forward) * 8 < all;
    }
    /// Records that are read by page faults.
    bool touched(FileId file) const {
        return class_of(file) == SampleClass::records && facts_[file].touches > facts_[file].reads;
    }
    const std::vector<RecordedTask>& tasks() const { return tasks_; }
    const std::vector<SampleUnit>& units() const { return units_; }  // by time
    /// Reads of samples in each epoch; looks (without reads) are not among them.
    const std::vector<uint64_t>& epochs() const { return epochs_; }
    /// Reads of an epoch before half of the epoch before was over: of what is read more than once in one.
    uint64_t early(size_t epoch) const { return early_[epoch]; }
    double late_share() const { return late_share_; }  // of reads before the epoch before was over
    uint64_t files_read() const { return files_read_; }

    // By id; row 0 unused.
    const std::vector<ScaleObject>& handles() const { return handles_; }
    /// Of an open instance that several processes use (inherited, or sent over a socket), what each of them has: one
    /// may be done with it before another is. Rows from 1.
    const std::vector<ScaleObject>& held() const { return held_; }
    HandleId handle_of_held(uint32_t row) const { return held_handles_[row]; }
    /// 0: no other process uses the instance.
    uint32_t held_by(HandleId handle, ProcessId process) const {
        const auto found = held_rows_.find(uint64_t{handle} << 32 | process);
        return found == held_rows_.end() ? 0 : found->second;
    }
    const std::unordered_map<uint32_t, ScaleObject>& maps() const { return maps_; }
    const std::unordered_map<uint32_t, ScaleObject>& requests() const { return requests_; }
    const std::vector<ScaleObject>& files() const { return made_files_; }
    const std::vector<ScaleObject>& task_objects() const { return task_objects_; }
    FileId file_of_map(uint32_t map) const;
    static constexpr uint32_t kNoUnit = UINT32_MAX;
    /// The access to a sample that an open instance was for.
    uint32_t unit_of_handle(HandleId handle) const;
    uint32_t map_limit() const { return map_limit_; }
    uint32_t request_limit() const { return request_limit_; }

    static uint8_t key_of(const OpBlock& block, size_t i);

private:
    struct FileFacts {
        uint64_t reads = 0, bytes = 0, maps = 0, touches = 0, again = 0, opens = 0, forward = 0;
        bool written = false;
    };
    void first_pass();
    void classify(const std::vector<SampleOverride>& overrides);
    void second_pass();
    void see(const OpBlock& block, size_t i, TaskId task, uint32_t op);
    void see_unit(const OpBlock& block, size_t i, TaskId task, uint32_t op);
    void see_objects(const OpBlock& block, size_t i, TaskId task, uint32_t op);
    ScaleObject& hold(HandleId handle, TaskId task, uint32_t op, int64_t begin);
    void add_order();
    void add_order(const ScaleObject& object, bool made, bool ends, bool name);
    void keep_shared();
    void use(ScaleObject& object, TaskId task, uint32_t op, int64_t begin, bool makes);
    void sort_units();
    std::vector<uint32_t> epochs_by_process() const;
    struct PageUse {
        uint32_t unit, page, before;  // how often the page was used before
    };
    bool find_passes(const std::vector<uint32_t>& by_process);
    bool set_passes(const std::vector<PageUse>& uses, size_t pages);
    void number_epochs();
    void count_early();
    void find_indexes(uint64_t reads);
    FileId file_at(const OpBlock& block, size_t i) const;

    const LogReader& log_;
    const Tables& tables_;
    std::vector<FileFacts> facts_;
    std::vector<uint32_t> reads_of_handle_;
    std::vector<int64_t> next_of_handle_;
    std::vector<SampleClass> classes_;
    std::vector<uint8_t> given_;  // by file: its class is asked for
    std::vector<RecordedTask> tasks_;
    std::vector<SampleUnit> units_;
    std::vector<uint64_t> epochs_, early_;
    std::vector<ScaleObject> handles_, made_files_, task_objects_;
    std::unordered_map<uint32_t, ScaleObject> maps_, requests_;
    std::vector<ScaleObject> held_ = std::vector<ScaleObject>(1);
    std::vector<HandleId> held_handles_ = std::vector<HandleId>(1);
    std::unordered_map<uint64_t, uint32_t> held_rows_;  // by instance and process
    std::unordered_map<uint32_t, FileId> map_files_;
    std::unordered_map<HandleId, uint32_t> unit_of_handle_;
    std::vector<uint32_t> last_unit_;  // by task
    double late_share_ = 0;
    uint64_t files_read_ = 0;
    uint32_t map_limit_ = 1, request_limit_ = 1;
};

}  // namespace reprise
