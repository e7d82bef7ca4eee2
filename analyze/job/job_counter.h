// SPDX-License-Identifier: MIT
// Counts the ops of a log, block by block, into what a JobAnalysis holds.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyze/job/accesses.h"
#include "analyze/job/analysis.h"
#include "analyze/time_spent.h"

namespace reprise {

class JobCounter {
public:
    /// `log` outlives it. `whole`: the stretch of time that the log covers.
    JobCounter(const LogReader& log, const AnalyzeOptions& options, std::pair<int64_t, int64_t> whole);
    void add(const OpBlock& block);
    void busy(ProcessId process, int64_t device, int64_t begin, int64_t end);
    /// Moves what was counted into `out`, which has its summary. Call once.
    void finish(JobAnalysis& out);

private:
    enum class Way : uint8_t { none, read, write };
    /// What is known of an op besides its columns.
    struct Seen {
        OpKind kind;
        const OpInfo& info;
        TaskId task;
        int64_t begin, end, result;
        FileId file;
        Role role;
        bool storage;  // JobCounter::on_storage()
        bool direct;   // past the page cache
    };
    struct Stream {
        TaskId task = 0;
        bool any = false;
        int64_t page = -1;  // in which the last read ended
        AccessStream order;
    };
    struct Request {
        Way way = Way::none;
        int64_t begin = 0, size = 0;
        FileId file = 0;
        bool known = false;
        bool on_storage = false;     // AsyncRequest::on_storage
        bool direct = false;         // past the page cache
        int64_t end = 0, bytes = 0;  // of a completion that came first
    };
    /// A fine interval: a 200th of a shown one.
    struct Cell {
        float in_flight = 0, busy = 0;           // ns
        float read = 0, written = 0, saved = 0;  // bytes; saved: of checkpoints
        float reads = 0, read_ns = 0;
    };

    void op(const OpBlock& block, size_t i);
    void call(const OpBlock& block, size_t i, const Seen& seen);
    void data(const OpBlock& block, size_t i, const Seen& seen);
    /// Neither in memory nor a device as /dev/null is.
    bool on_storage(FileId file) const;
    void moved(Way way, const Seen& seen, int64_t offset, int64_t asked, int64_t bytes, bool asynchronous);
    void access(Stream& stream, FileId file, TaskId task, int64_t begin, int64_t offset, int64_t bytes);
    void touch(const OpBlock& block, size_t i, const Seen& seen);
    void request(const OpBlock& block, size_t i, const Seen& seen);
    void completed(const Request& request, int64_t end, int64_t bytes, TaskId task);
    void in_flight(int64_t begin, int64_t end);
    void marker(const OpBlock& block, size_t i);
    void time_of(TaskId task, TimePart part, int64_t begin, int64_t end);
    void choose_lanes();
    Stream& stream_of(HandleId handle, TaskId task);
    KindOfRole& kind_of(OpKind kind, Role role);
    FileId file_at(const OpBlock& block, size_t i) const;
    bool is_direct(HandleId handle) const;

    void finish_cells(JobAnalysis& out);
    void finish_files(JobAnalysis& out);
    void finish_lanes(JobAnalysis& out);
    void finish_epochs(JobAnalysis& out, std::vector<Access> accesses);

    const LogReader& log_;
    const Tables& tables_;
    const AnalyzeOptions& options_;
    const OpSelector selector_;
    const bool is_run_;
    JobAnalysis counted_;
    TimeGrid cells_, lanes_grid_;
    std::vector<Cell> of_cell_;
    TimeSpentCounter spent_;
    std::vector<Stream> streams_;                       // by handle, of the task that used it first
    std::unordered_map<uint64_t, Stream> shared_;       // by handle and task, of the others
    std::unordered_map<uint32_t, Stream> map_streams_;  // by mapping
    std::unordered_map<uint32_t, FileId> maps_;
    std::unordered_map<uint32_t, Request> requests_;
    std::vector<UsedFile> files_;
    std::vector<std::unique_ptr<KindOfRole>> kinds_;  // by kind and role
    std::array<AccessOrders, 8> orders_{};            // by role
    std::vector<uint64_t> process_bytes_;
    AccessSample accesses_;
    std::vector<uint32_t> lane_of_task_;
    std::map<std::pair<ProcessId, int64_t>, JobLane> device_lanes_;
    std::map<std::tuple<ProcessId, uint32_t, int64_t>, int64_t> open_epochs_;  // by process, loader, number: begin
    std::map<std::pair<uint32_t, int64_t>, MarkedEpoch> marked_;               // by loader and number
    std::map<StringId, uint32_t> loaders_;                                     // by the text of their marks of epochs
};

}  // namespace reprise
