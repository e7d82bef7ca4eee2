// SPDX-License-Identifier: MIT
// What of a log says how its job trains: the calls on its data set and checkpoints, computing, accelerators, marks, and
// who waited for whom. All else is only time that passed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// What an op is to the job.
enum class OpPart : uint8_t {
    other,  // calls that say nothing of the job: several in a row are one
    waits,  // for others: no work of its task
    computes,
    data,    // on the data set
    saves,   // on checkpoints
    device,  // gpu_submit, gpu_wait
    mark,
};

struct TraceOp {
    int64_t begin = 0, duration = 0;  // ns
    int64_t offset = 0;
    int64_t size = 0;    // asked for; gpu_submit: busy ns
    int64_t result = 0;  // marks and devices: arg
    uint64_t op = 0;     // number within the task
    FileId file = 0;
    uint32_t object = 0;  // handle, mapping, or the mark's text
    OpKind kind = OpKind::compute;
    OpPart part = OpPart::other;
    uint8_t phase = 0;  // MarkerPhase

    int64_t end() const { return begin + duration; }
};

struct TraceEdge {
    uint64_t op = 0;  // that waits
    TaskId source = 0;
    uint64_t source_op = 0;
    EdgeKind kind = EdgeKind::message;
    HandleId channel = 0;  // of an op that receives: whence
    int64_t size = 0;      // ... and how much it asked for, bytes
};

struct TraceTask {
    ProcessId process = 0;
    TaskId parent = 0;  // that started it
    std::vector<TraceOp> ops;
    std::vector<TraceEdge> edges;
    std::vector<HandleId> sends;  // into these, in the order of their numbers
    uint64_t reads = 0;           // ops that read the data set
    bool idle = true;             // did nothing but end

    /// The first op whose number is `op` or more.
    size_t at(uint64_t op) const;
};

struct JobTrace {
    /// Reads the log three times. Memory: about 80 bytes for each op that says something. Throws Error (bad_input)
    /// where the log has too many of them.
    explicit JobTrace(const LogReader& log);

    const Tables& tables;
    std::vector<TraceTask> tasks;       // by TaskId; row 0 unused
    std::vector<uint8_t> is_data;       // by FileId
    std::vector<FileId> data;           // in the order of their names, numbers by their value
    std::string ending;                 // of their names, with its dot
    std::vector<std::string> left_out;  // what else was read of data sets: "12 files *.csv, 3.00 MiB"
    uint64_t epochs = 0;                // by how often samples are read; 0: not known
    int64_t read_bytes = 0;             // of the data set: read, or pages touched
    bool maps = false;                  // it is read by page faults
    bool every_touch = false;           // and the log has those too that were no first ones
    uint64_t arrivals = 0;              // requests of open loops
    int64_t other_bytes = 0;            // read of files that are no program's, nor data, nor checkpoints

    uint32_t place_of(FileId file) const { return file < places_.size() ? places_[file] : 0; }

private:
    void choose_data(const LogReader& log);
    void read(const LogReader& log);
    void join_loaders();
    std::vector<uint32_t> places_;  // in `data`, by FileId
};

}  // namespace reprise
