// SPDX-License-Identifier: MIT
// Names that a task looks for again and again until another task has made the file: `while [ ! -e stop ]`.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct Plan;

struct AwaitedName {
    TaskId task = 0;
    uint64_t looks = 0;  // in vain; 0: nobody looked so
    std::string path;
};

/// How often a job looks, and what it does between two looks, depends on how long both take; a replay looks as often as
/// the recording. A file that the looking task waited for otherwise (a child that it joined) is none of these: its
/// maker was at work already as the task looked the time before. Nor is one that it only slept for: see
/// repeated_looks.h.
class AwaitedNames {
public:
    explicit AwaitedNames(const Plan& plan);

    /// The ops of each task in their order.
    void see(const OpBlock& block, size_t i);
    /// That of most looks, three at least.
    AwaitedName most() const;

private:
    struct Found {
        uint64_t count = 0;
        int64_t last = 0, before = 0;  // when they began, ns
        FileId found = 0;
    };
    struct Maker {
        TaskId task = 0;
        int64_t since = INT64_MAX;  // ns
    };

    const Plan& plan_;
    const Tables& tables_;
    std::unordered_map<uint64_t, Found> looks_;  // by task and path
    std::vector<Maker> makers_;                  // by file that the job made: who used it first
    std::unordered_map<TaskId, int64_t> began_;  // when a task's first op began, ns
};

}  // namespace reprise
