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

}  // namespace

void RawContext::add(uint64_t time, Series series, uint64_t value) {
    if (value == 0) {
        return;
    }
    uint64_t at = time > origin_ ? (time - origin_) / interval_ns_ : 0;
    while (at >= kMostPoints) {
        // Twice as coarse.
        if (interval_ns_ > UINT64_MAX / 4) {
            return;
        }
        interval_ns_ *= 2;
        for (auto& values : values_) {
            for (size_t i = 0; i < values.size(); ++i) {
                if (i % 2) {
                    values[i / 2] += values[i];
                } else {
                    values[i / 2] = values[i];
                }
            }
            values.resize((values.size() + 1) / 2);
        }
        at = (time - origin_) / interval_ns_;
    }
    auto& values = values_[series];
    if (values.size() <= at) {
        values.resize(at + 1);
    }
    values[at] += value;
}

void RawContext::see(const raw_pressure& record) {
    const auto grown = [&](Series series, uint64_t now, uint64_t before) {
        if (any_pressure_ && now > before) {
            add(record.head.time, series, now - before);
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
    add(record.head.time, series, left_[series] / 1024);
    left_[series] %= 1024;
}

void RawContext::see(const raw_block& record) {
    const uint64_t time = record.head.time;
    const uint64_t us = time > record.issued ? (time - record.issued) / 1000 : 0;
    const Series kib = record.write ? write_kib : read_kib;
    add(time, record.write ? writes : reads, 1);
    left_[kib] += record.bytes;
    add(time, kib, left_[kib] / 1024);
    left_[kib] %= 1024;
    add(time, record.write ? write_us : read_us, us);
}

std::string RawContext::json() const {
    nlohmann::ordered_json series = nlohmann::ordered_json::object();
    for (size_t i = 0; i < kSeries; ++i) {
        if (!values_[i].empty()) {
            series[kNames[i]] = values_[i];
        }
    }
    if (series.empty()) {
        return {};
    }
    const nlohmann::ordered_json out = {{"interval_ms", interval_ns_ / 1'000'000}, {"series", series}};
    return out.dump();
}

}  // namespace reprise
