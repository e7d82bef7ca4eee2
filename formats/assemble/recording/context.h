// SPDX-License-Identifier: MIT
// What happened around the job: pressure, page cache and block device, as series of bounded length in the log's header.
// Of disks that stand on each other, in each interval those count that moved more, the ones below or the ones on them:
// what a loop device passes on counts once, as does what the page cache of its file serves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/assemble/recording/disk_stacks.h"
#include "formats/raw/record.h"

namespace reprise {

class RawContext {
public:
    explicit RawContext(uint64_t origin, DiskStacks stacks = {}) : origin_(origin), stacks_(std::move(stacks)) {}
    void see(const raw_pressure& record);
    void see(const raw_page_cache& record);
    void see(const raw_block& record);
    /// JSON (formats/FORMAT.md); empty where nothing was seen.
    std::string json() const;

private:
    enum Series : size_t {
        cpu_some,
        cpu_full,
        memory_some,
        memory_full,
        io_some,
        io_full,  // us
        cache_added,
        cache_evicted,  // KiB
        reads,
        read_kib,
        read_us,
        writes,
        write_kib,
        write_us,
        kSeries
    };
    static constexpr size_t kMostPoints = 600, kMostDisks = 1024;
    using Values = std::vector<uint64_t>;
    struct Direction {
        Values requests, bytes, us;
    };
    struct Moved {
        uint64_t requests = 0, bytes = 0, us = 0;
    };
    using Disk = std::array<Direction, 2>;  // reads, writes
    void add(uint64_t time, Values& values, uint64_t value);
    void coarsen();
    Moved moved(const DiskGroup& group, size_t direction, size_t at) const;

    uint64_t origin_;
    DiskStacks stacks_;
    uint64_t interval_ns_ = 100'000'000;
    Values values_[reads];
    std::map<uint32_t, Disk> disks_;
    uint64_t left_[reads] = {};  // bytes below a KiB
    raw_pressure last_{};
    bool any_pressure_ = false;
};

}  // namespace reprise
