// SPDX-License-Identifier: MIT
// What a storage does with so many requests in flight: by io_uring, or by threads where that is not to be had.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "calibrate/storage_folder.h"
#include "calibrate/storage_model.h"

namespace reprise {

/// One kind of requests.
struct InFlightLoad {
    int64_t bytes = 4096;
    int depth = 1;
    int reads = 100;     // of 100; the rest are writes
    int64_t places = 1;  // of so many bytes each, in the file
};

/// Who performs them.
class InFlightQueue {
public:
    virtual ~InFlightQueue() = default;
    /// One of `depth` slots, none of which is asked for again before wait() told it.
    virtual void submit(int slot, bool write, int64_t offset) = 0;
    /// The slot of one that is done. Throws Error where it failed.
    virtual int wait() = 0;
};

struct InFlightTimes {
    int64_t rests_ns = 0;  // from the first request on, not counted
    int64_t lasts_ns = 0;
};

/// Keeps `depth` requests in flight. `now`: of a clock, ns. `check`: called from time to time; may throw, once all are
/// done.
DepthRow keep_in_flight(InFlightQueue& queue, const InFlightLoad& load, const InFlightTimes& times,
                        const std::function<int64_t()>& now, const std::function<void()>& check);

/// Of reads and writes of at most `bytes` each. Null where the kernel makes no ring.
std::unique_ptr<InFlightQueue> uring_queue(const StorageFolder& in, int fd, int depth, int64_t bytes);
/// A thread for each slot.
std::unique_ptr<InFlightQueue> thread_queue(const StorageFolder& in, int fd, int depth, int64_t bytes);
/// Each slot has a file of its own, in the folder; a request writes `bytes` there and syncs.
std::unique_ptr<InFlightQueue> sync_queue(const StorageFolder& in, int depth, int64_t bytes);

/// Fills the rows by depth. `path`: of a file of `file_bytes`, all of it written. `step` tells of each part before it
/// begins. Nothing where the file system refuses O_DIRECT.
void measure_in_flight(const StorageFolder& in, const StorageOptions& options, const std::string& path, StorageModel& m,
                       const std::function<void(const char*)>& step);
inline constexpr int kInFlightSteps = 8;

}  // namespace reprise
