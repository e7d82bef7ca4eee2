// SPDX-License-Identifier: MIT
// What happened around the job: pressure, page cache and block device, as series of bounded length in the log's header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/raw/record.h"

namespace reprise {

class RawContext {
public:
    explicit RawContext(uint64_t origin) : origin_(origin) {}
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
    static constexpr size_t kMostPoints = 600;
    void add(uint64_t time, Series series, uint64_t value);

    uint64_t origin_;
    uint64_t interval_ns_ = 100'000'000;
    std::vector<uint64_t> values_[kSeries];
    uint64_t left_[kSeries] = {};  // bytes below a KiB
    raw_pressure last_{};
    bool any_pressure_ = false;
};

}  // namespace reprise
