// SPDX-License-Identifier: MIT
// How many asynchronous requests a recording had in flight at a time. The replay makes them one by one, so more than
// one means that it is not the same load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "formats/oplog/oplog.h"

namespace reprise {

class AsyncDepth {
public:
    /// Op `i` of a block, which the filter keeps. Task after task, each in order.
    void see(const OpBlock& block, size_t i);
    /// The most requests that one task had in flight at a time; 0: it has none.
    uint32_t greatest() const;

private:
    struct Request {
        TaskId task = 0;              // that made it
        int64_t begin = 0, end = -1;  // ns; no end: nobody took its result
        bool follows = false;         // waits for the one before it by IOSQE_IO_LINK
    };
    /// Of the rest nothing is kept: so many show what the job does.
    static constexpr size_t kMost = size_t{1} << 20;
    std::unordered_map<uint32_t, Request> requests_;
    TaskId last_task_ = 0;
    bool linked_ = false;  // the next request of the task waits for the last one
};

/// Why a run or a prediction of such a recording is not to be trusted.
std::string made_one_by_one(uint32_t depth);

}  // namespace reprise
