// SPDX-License-Identifier: MIT
// A storage system in a few numbers: latency of calls, bandwidth, parallelism. Measured here, read by
// `reprise predict`.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace reprise {

/// Median time of one call that moves so many bytes, nothing else going on.
struct SizedLatency {
    int64_t bytes = 0, ns = 0;
};

/// So many requests of one size at random places in flight all the time, past the page cache.
struct DepthRow {
    int64_t bytes = 0;
    int depth = 1;
    int64_t ns = 0;        // median, from submission to completion
    int64_t mean_ns = 0;   // of all but those that stood still for long, as a limit has them do
    double per_s = 0;      // requests, with the time in which all stood still
    bool limited = false;  // a limit decided how long they took: `reads_per_s`, or that of bytes

    bool operator==(const DepthRow&) const = default;
};

/// A request that took so many times the median, and so long (ns), stood still.
inline constexpr int64_t kStill = 20, kLeastStill = 5'000'000;

/// Whether half of the requests stood still, beside a row of the same size and less depth: more in flight take longer
/// only as they wait for each other.
inline bool stood_still(const DepthRow& row, const DepthRow& before) {
    const double depth = static_cast<double>(row.depth) / before.depth;
    return row.bytes == before.bytes && row.ns >= kLeastStill &&
           static_cast<double>(row.ns) > kStill * depth * static_cast<double>(before.ns);
}

/// What all clients of a storage system share, where a model of one client is asked about many. 0: not known; then
/// what the one client could do is taken for what all can do together.
struct SharedStorage {
    double read_bytes_per_s = 0, reads_per_s = 0;
    double write_bytes_per_s = 0;
    double names_per_s = 0;              // open, stat, create, remove ...; 0: no limit
    double client_read_bytes_per_s = 0;  // each client; 0: what was measured
    double client_reads_per_s = 0;

    bool given() const { return read_bytes_per_s > 0 || reads_per_s > 0; }
};

struct StorageModel {
    static constexpr int kVersion = 2;                         // 1: without the rows by depth
    static constexpr int64_t kReadAhead = int64_t{128} << 10;  // Linux's own default
    static constexpr int64_t kDirtyExpire = 30'000'000'000;    // and of this
    std::string directory, file_system, device, host;          // may be empty
    int64_t measured_unix_s = 0;
    int64_t open_ns = 0, stat_ns = 0;    // of a file whose name is cached
    int64_t open_cold_ns = 0;            // of a file whose name is not cached; 0: not known
    int64_t close_ns = 0;                // of a file that was read
    int64_t ioctl_ns = 0;                // whether a file is a terminal
    int64_t fstat_ns = 0;                // of a file of which something was just fetched
    int64_t make_ns = 0, remove_ns = 0;  // a file, its name
    int64_t change_ns = 0;               // of a file's mode or times; 0: not known
    int64_t list_ns = 0;                 // a listing call that returns no names; 0: not known
    int64_t list_name_ns = 0;            // each name that one returns
    int64_t list_cold_ns = 0;            // how much longer the first one of a directory takes that is not cached
    int64_t call_ns = 0;                 // a call that does nothing
    int64_t fsync_ns = 0;                // of a file with 4 KiB to write
    int64_t fsync_longer_ns = 0;         // of a file that is 4 KiB longer; 0: an older model
    std::vector<SizedLatency> read;      // from the storage, ascending by bytes; at least one
    int64_t write_part_ns = 0;           // how much longer a write takes that begins within a page and goes beyond it
    std::vector<SizedLatency> write;     // into the page cache, or through it where the file system has none for writes
    std::vector<SizedLatency> direct_write;  // past the page cache (O_DIRECT), to the storage; empty: not known
    double read_bytes_per_s = 0;             // all readers together, at most
    int parallelism = 1;                     // reads that the storage serves at once
    double reads_per_s = 0;                  // requests of all readers together, at most; 0: no limit known
    int64_t read_burst_ns = 0;               // after a pause both limits may be exceeded by what passes in that time
    int64_t read_step_ns = 0;                // and let that much through at once, each time after that long; 0: evenly
    double write_bytes_per_s = 0;            // to the storage
    double writes_per_s = 0;                 // requests that write back what is dirty, at most; 0: no limit known
    int64_t dirty_background_bytes = 0;      // dirty data from which the kernel writes by itself; 0: not known
    int64_t dirty_bytes = 0;                 // and at which it holds up writers; 0: not known
    int64_t dirty_expire_ns = kDirtyExpire;  // how long data stays dirty, if nothing else has it written
    double cached_bytes_per_s = 0;           // a read or a write of the page cache, each thread
    // By bytes, then by depth, both ascending; empty: not known. Syncs: each after a write of `bytes` to a file of its
    // own. Mixed: kMixedReads of 100 are reads.
    std::vector<DepthRow> read_depth, write_depth, sync_depth, mixed_depth;
    static constexpr int kMixedReads = 70;
    int64_t read_ahead_bytes = kReadAhead;  // largest window that the kernel reads ahead there
    int64_t request_bytes = kReadAhead;     // largest that it asks for at once (max_sectors_kb)
    SharedStorage shared;                   // not measured: given by who knows the system
    /// A request is done by who makes it, before that goes on: memory, also a compressed one, without a queue.
    bool inline_reads = false;
    double disturbed = 0;  // share of the measurements during which others used the device
    bool cold = true;      // reads were served by the storage, not by memory

    /// Of one read of `bytes`, by the nearest measured sizes.
    int64_t read_ns(int64_t bytes) const;
    /// The same of one write; 0 where none was measured.
    int64_t write_ns(int64_t bytes) const;
    /// The same of one past the page cache.
    int64_t direct_write_ns(int64_t bytes) const;
};

struct StorageOptions {
    int64_t file_bytes = int64_t{256} << 20;  // room needed, twice
    int64_t each_ns = 400'000'000;            // time for each of about twenty measurements; half of it by depth
    std::function<void(const char* step, int done, int total)> progress;  // may be empty
    const std::atomic<bool>* stop = nullptr;                              // ends it early: an Error (machine)
};

/// Measures in a new folder below `directory`, and removes it. Throws Error (machine) where the folder cannot be used,
/// is full, or `stop` was set.
StorageModel measure_storage(const std::filesystem::path& directory, const StorageOptions& options = {});

/// As JSON, in model.json. Reading throws Error (bad_input) that names the file and the field, also one that is
/// unknown.
std::string to_json(const StorageModel& model);
StorageModel read_storage_model(const std::filesystem::path& path);

}  // namespace reprise
