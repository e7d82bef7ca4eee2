// SPDX-License-Identifier: MIT
// The epochs of a log: passes over its data set, as far as they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// One pass over the data set.
struct LogEpoch {
    struct Access {
        TaskId task = 0;
        uint64_t op = 0;  // number within the task
        bool operator==(const Access&) const = default;
    };
    uint64_t accesses = 0;      // to samples
    std::vector<Access> first;  // of each task that reads samples in it, one: the epoch begins with the earliest
};

/// Numbers the reads of samples by how often each sample was read before. Reads come in the order of time.
class EpochNumbers {
public:
    /// `samples`: how many there are.
    explicit EpochNumbers(size_t samples) : few_(samples / 50) {}
    /// The epoch of a read of that sample.
    uint32_t read(uint64_t sample) { return count(seen_[sample]++); }
    /// The same where the epoch is known.
    uint32_t count(uint32_t epoch);
    /// Reads of each epoch. Epochs of a few are none: those belong to the last one. Call once, after all reads; then
    /// last() is the greatest number that counts.
    std::vector<uint64_t> finish();
    uint32_t last() const { return last_; }
    /// Share of the reads that came once a later epoch had begun: many, where these are no passes over the set.
    double late_share() const { return reads_ == 0 ? 0 : static_cast<double>(late_) / static_cast<double>(reads_); }

    /// More than that is no pass over the set: loaders fetch a little of the next epoch early.
    static constexpr double kMostLate = 0.1;

private:
    uint64_t few_;
    std::unordered_map<uint64_t, uint32_t> seen_;
    std::vector<uint64_t> epochs_;
    uint64_t reads_ = 0, late_ = 0;
    uint32_t latest_ = 0, last_ = 0;
};

}  // namespace reprise
