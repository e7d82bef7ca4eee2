// SPDX-License-Identifier: MIT
// What is in a log, as numbers: the one summary that info, replay and compare show.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "analyze/accelerator.h"
#include "analyze/time_spent.h"
#include "formats/oplog/in_flight.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/support/histogram.h"

namespace reprise {

/// Durations of calls in ns; percentiles at most 0.8 % high, min and max exact.
struct Latency {
    uint64_t count = 0;
    int64_t min = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
    double mean = 0;
};

/// Of a histogram of ns.
Latency latency_of(const Histogram& histogram);
/// Of all kinds with a trait together; `latencies` by OpKind.
Latency latency_of_all(Trait trait, std::span<const Histogram> latencies);
/// Bytes of the pages that a touch touched: `size`, or every second number of `list` where there is one.
uint64_t touched_bytes(int64_t size, std::span<const int64_t> list);

struct KindSummary {
    OpKind kind = OpKind::compute;
    uint64_t ops = 0;
    uint64_t errors = 0;  // results below 0
    uint64_t bytes = 0;   // of file data moved
    double time = 0;      // ns in all calls together
    Latency latency;
};

struct RoleSummary {
    Role role = Role::unknown;
    uint64_t files = 0;          // that exist or came to exist
    uint64_t absent = 0;         // only ever looked for in vain
    uint64_t bytes_on_disk = 0;  // sizes as the log knows them
    uint64_t ops = 0;
    uint64_t bytes_read = 0, bytes_written = 0;
    /// In the page cache when their files were first opened, and brought there by the recording, as often as it was.
    /// None: not recorded.
    std::optional<uint64_t> bytes_cached, bytes_fetched;
};

/// Where the time of a task went, ns. Waiting is blocked time that is not inside a call of input or output.
struct TaskTime {
    TaskId task = 0;
    int64_t begin = 0, end = 0;  // first begin and last end of its ops
    int64_t io = 0;              // inside calls that the replay performs
    int64_t compute = 0;
    std::array<int64_t, 8> waited{};  // with a known cause: by EdgeKind, the strongest where there are several
    int64_t unexplained = 0;          // waited, cause unknown
    int64_t slept = 0;                // in sleeps it asked for
    int64_t locks = 0;                // waits for locks, which are no causes
    int64_t idle = 0;

    int64_t span() const { return end - begin; }
    int64_t explained() const;
    /// Everything blocked but idle time.
    int64_t blocked() const { return explained() + unexplained + slept + locks; }
    /// Run-queue time, and time between ops that no op covers.
    int64_t rest() const;
};

struct Summary : AcceleratorUse {
    uint64_t ops = 0;
    uint64_t left_out_ops = 0, left_out_bytes = 0;  // by the filter
    uint64_t left_out_io_ops = 0;                   // of them, with trait io
    uint64_t errors = 0;
    uint64_t io_ops = 0;  // with trait io
    uint64_t tasks = 0, tasks_with_ops = 0, processes = 0, files = 0, handles = 0;
    uint64_t bytes_read = 0, bytes_written = 0;
    uint64_t bytes_touched = 0;  // of mapped files, through page faults
    /// What may have come from the device: bytes_read and bytes_touched of files that are not in /dev/shm.
    uint64_t storage_bytes_read = 0, storage_bytes_touched = 0;
    uint64_t edges = 0, inferred_edges = 0;
    std::array<uint64_t, 8> edges_by_kind{};  // by EdgeKind
    Latency reads, writes;                    // of calls that move file data
    InFlight requests;                        // asynchronous ones
    TimeSpent time;
    int64_t begin = 0, end = 0;      // ns: first begin and last end
    std::vector<KindSummary> kinds;  // of those with ops, in the order of the op table
    std::vector<RoleSummary> roles;  // of those with files, in the order of Role
    /// Of tasks with ops, by id; empty where the log holds no time but that of calls.
    std::vector<TaskTime> task_times;
    uint64_t file_bytes = 0;  // of the log itself

    int64_t elapsed() const { return end - begin; }
    double elapsed_s() const { return static_cast<double>(elapsed()) / 1e9; }
    uint64_t bytes() const { return bytes_read + bytes_written; }
    double bytes_per_second() const { return elapsed() > 0 ? static_cast<double>(bytes()) / elapsed_s() : 0; }
    double ops_per_second() const { return elapsed() > 0 ? static_cast<double>(ops) / elapsed_s() : 0; }
    double log_bytes_per_op() const {
        return ops + left_out_ops ? static_cast<double>(file_bytes) / static_cast<double>(ops + left_out_ops) : 0;
    }
    const KindSummary* kind(OpKind kind) const;
};

/// One pass over the log in the order of the file, and one in the order of time over the tasks that use accelerators.
/// Memory does not grow with the number of ops, but for some bytes for each asynchronous request (InFlightCounter).
/// `progress` gets the number of ops done so far, `busy` what accelerators
/// did.
Summary summarize(const LogReader& log, const OpFilter& filter = OpFilter::all(),
                  const std::function<void(uint64_t)>& progress = {}, const SeeBusy& busy = {});

/// Times in ns (keys end in _ns), shares in 0..1, sizes in bytes. `tables` is that of the summarised log.
nlohmann::ordered_json to_json(const Summary& summary, const Tables& tables);
nlohmann::ordered_json to_json(const Latency& latency);
/// Null without requests.
nlohmann::ordered_json to_json(const InFlight& requests);
/// One object per device: busy, stall, AU, steps, epochs.
nlohmann::ordered_json devices_json(const AcceleratorUse& use, const Tables& tables);

}  // namespace reprise
