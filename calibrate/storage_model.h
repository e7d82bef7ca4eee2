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

struct StorageModel {
    static constexpr int kVersion = 1;
    std::string directory, file_system, device, host;  // may be empty
    int64_t measured_unix_s = 0;
    int64_t open_ns = 0, stat_ns = 0;    // of a file whose name is cached
    int64_t make_ns = 0, remove_ns = 0;  // a file, its name
    int64_t call_ns = 0;                 // a call that does nothing
    int64_t fsync_ns = 0;                // of a file with 4 KiB to write
    std::vector<SizedLatency> read;      // from the storage, ascending by bytes; at least one
    double read_bytes_per_s = 0;         // all readers together, at most
    int parallelism = 1;                 // reads that the storage serves at once
    double write_bytes_per_s = 0;        // to the storage
    double cached_bytes_per_s = 0;       // a read or a write of the page cache, each thread
    bool cold = true;                    // reads were served by the storage, not by memory

    /// Of one read of `bytes`, by the nearest measured sizes.
    int64_t read_ns(int64_t bytes) const;
};

struct StorageOptions {
    int64_t file_bytes = int64_t{256} << 20;                              // room needed, twice
    int64_t each_ns = 400'000'000;                                        // time for each of about twenty measurements
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
