// SPDX-License-Identifier: MIT
// Where the epochs of a log begin: passes over its data set, as far as they are known.
#pragma once

#include <cstdint>
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

}  // namespace reprise
