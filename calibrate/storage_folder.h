// SPDX-License-Identifier: MIT
// What the measurements of one storage system share: a folder there, how long each may take, errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/storage_model.h"
#include "formats/support/error.h"

namespace reprise {

inline constexpr size_t kAlign = 4096;  // of buffers and offsets past the page cache, bytes

/// Of bytes that no file system can compress.
struct StorageBuffer {
    explicit StorageBuffer(size_t bytes) : data(static_cast<char*>(std::aligned_alloc(kAlign, bytes))) {
        if (data == nullptr) {
            throw machine_error("no memory for a buffer of " + std::to_string(bytes) + " bytes", "free memory");
        }
        std::mt19937_64 random(bytes);
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            const uint64_t value = random();
            std::memcpy(data + i, &value, 8);
        }
    }
    ~StorageBuffer() { std::free(data); }
    StorageBuffer(const StorageBuffer&) = delete;
    StorageBuffer& operator=(const StorageBuffer&) = delete;
    char* data;
};

class StorageFolder {
public:
    StorageFolder(const StorageOptions& options, std::string folder) : options_(options), folder_(std::move(folder)) {}

    const std::string& folder() const { return folder_; }
    const StorageOptions& options() const { return options_; }
    /// The file that large accesses are made to; the write rate's measurement makes it.
    std::string data() const { return folder_ + "/data"; }
    /// Throws Error where the measurement is to stop.
    void check() const {
        if (options_.stop != nullptr && options_.stop->load()) {
            throw machine_error("the measurement was interrupted", "run it again");
        }
    }
    [[noreturn]] void failed(const char* what) const {
        throw machine_error(escape_line(folder_) + ": " + what + ": " + std::strerror(errno),
                            "free space there, or name another directory");
    }

    /// Times of up to `most` calls, for as long as a measurement may take.
    template <class Body>
    std::vector<int64_t> timed(Body body, size_t most) const {
        std::vector<int64_t> times;
        const int64_t begin = monotonic_ns();
        while (times.size() < most && (times.size() < 5 || monotonic_ns() - begin < options_.each_ns)) {
            const int64_t before = monotonic_ns();
            body();
            times.push_back(monotonic_ns() - before);
            if (times.size() % 64 == 0) {
                check();
            }
        }
        return times;
    }

protected:
    const StorageOptions& options_;
    const std::string folder_;
};

/// Names: made, opened, looked at, closed, removed; first opens.
void measure_names(const StorageFolder& in, StorageModel& m);
/// Bytes a second that a sync writes back. The copy into memory before it counts only where it was held up: by a file
/// system that writes through, or by a device that began meanwhile.
double measure_write_rate(const StorageFolder& in);
/// Requests a second that write dirty pages back which lie apart: of four times as many less those of once, as a sync
/// costs something itself and a limit lets some through at once.
double measure_scattered_writes(const StorageFolder& in);
/// Past the page cache, one call after the other; empty where the file system refuses them.
std::vector<SizedLatency> measure_direct_writes(const StorageFolder& in);
/// ns of a sync after a write of 4 KiB.
int64_t measure_sync(const StorageFolder& in, bool longer);
/// Writes of some sizes, one after the other to the end of a file, as logs and checkpoints are written.
void measure_small_writes(const StorageFolder& in, StorageModel& m);

}  // namespace reprise
