// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/context.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace reprise {
namespace {

constexpr const char* kNames[] = {"cpu_some_us",     "cpu_full_us",    "memory_some_us",  "memory_full_us",
                                  "io_some_us",      "io_full_us",     "cache_added_kib", "cache_evicted_kib",
                                  "block_reads",     "block_read_kib", "block_read_us",   "block_writes",
                                  "block_write_kib", "block_write_us"};

void halve(std::vector<uint64_t>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
        if (i % 2) {
            values[i / 2] += values[i];
        } else {
            values[i / 2] = values[i];
        }
    }
    values.resize((values.size() + 1) / 2);
}

uint64_t at_or_none(const std::vector<uint64_t>& values, size_t i) { return i < values.size() ? values[i] : 0; }

/// values[i] = value, where there is one.
void put(std::vector<uint64_t>& values, size_t i, uint64_t value) {
    if (value != 0) {
        values.resize(i + 1);
        values[i] = value;
    }
}

}  // namespace

void RawContext::coarsen() {
    interval_ns_ *= 2;
    for (Values& values : values_) {
        halve(values);
    }
    for (auto& [number, disk] : disks_) {
        for (Direction& one : disk) {
            halve(one.requests);
            halve(one.bytes);
            halve(one.us);
        }
    }
}

void RawContext::add(uint64_t time, Values& values, uint64_t value) {
    if (value == 0) {
        return;
    }
    uint64_t at = time > origin_ ? (time - origin_) / interval_ns_ : 0;
    while (at >= kMostPoints) {
        if (interval_ns_ > UINT64_MAX / 4) {
            return;
        }
        coarsen();
        at = (time - origin_) / interval_ns_;
    }
    if (values.size() <= at) {
        values.resize(at + 1);
    }
    values[at] += value;
}

void RawContext::see(const raw_pressure& record) {
    const auto grown = [&](Series series, uint64_t now, uint64_t before) {
        if (any_pressure_ && now > before) {
            add(record.head.time, values_[series], now - before);
        }
    };
    grown(cpu_some, record.cpu_some, last_.cpu_some);
    grown(cpu_full, record.cpu_full, last_.cpu_full);
    grown(memory_some, record.memory_some, last_.memory_some);
    grown(memory_full, record.memory_full, last_.memory_full);
    grown(io_some, record.io_some, last_.io_some);
    grown(io_full, record.io_full, last_.io_full);
    last_ = record;
    any_pressure_ = true;
}

void RawContext::see(const raw_page_cache& record) {
    const Series series = record.evicted ? cache_evicted : cache_added;
    left_[series] += record.bytes;
    add(record.head.time, values_[series], left_[series] / 1024);
    left_[series] %= 1024;
}

void RawContext::see(const raw_block& record) {
    const uint64_t time = record.head.time;
    // More disks than machines have: a damaged file.
    const bool known = disks_.size() < kMostDisks || disks_.count(record.device) != 0;
    Direction& disk = disks_[known ? record.device : disks_.begin()->first][record.write ? 1 : 0];
    add(time, disk.requests, 1);
    add(time, disk.bytes, record.bytes);
    add(time, disk.us, time > record.issued ? (time - record.issued) / 1000 : 0);
}

/// Of the disks of a group or of those on them, whichever moved more.
RawContext::Moved RawContext::moved(const DiskGroup& group, size_t direction, size_t at) const {
    Moved below, above;
    const auto sum = [](Moved& to, const Moved& more) {
        to.requests += more.requests;
        to.bytes += more.bytes;
        to.us += more.us;
    };
    for (const uint32_t number : group.disks) {
        if (const auto found = disks_.find(number); found != disks_.end()) {
            const Direction& disk = found->second[direction];
            sum(below, {at_or_none(disk.requests, at), at_or_none(disk.bytes, at), at_or_none(disk.us, at)});
        }
    }
    for (const DiskGroup& one : group.above) {
        sum(above, moved(one, direction, at));
    }
    return above.bytes > below.bytes || below.requests == 0 ? above : below;
}

std::string RawContext::json() const {
    Values all[kSeries];
    std::copy(std::begin(values_), std::end(values_), std::begin(all));
    std::vector<uint32_t> numbers;
    for (const auto& [number, disk] : disks_) {
        numbers.push_back(number);
    }
    const std::vector<DiskGroup> groups = disk_groups(numbers, stacks_);
    for (const size_t direction : {size_t{0}, size_t{1}}) {
        const size_t first = direction == 0 ? reads : writes;
        uint64_t left = 0;  // bytes below a KiB
        for (size_t i = 0; i < kMostPoints; ++i) {
            Moved sum;
            for (const DiskGroup& group : groups) {
                const Moved more = moved(group, direction, i);
                sum = {sum.requests + more.requests, sum.bytes + more.bytes, sum.us + more.us};
            }
            left += sum.bytes;
            put(all[first], i, sum.requests);
            put(all[first + 1], i, left / 1024);
            put(all[first + 2], i, sum.us);
            left %= 1024;
        }
    }
    nlohmann::ordered_json series = nlohmann::ordered_json::object();
    for (size_t i = 0; i < kSeries; ++i) {
        if (!all[i].empty()) {
            series[kNames[i]] = all[i];
        }
    }
    if (series.empty()) {
        return {};
    }
    const nlohmann::ordered_json out = {{"interval_ms", interval_ns_ / 1'000'000}, {"series", series}};
    return out.dump();
}

}  // namespace reprise
