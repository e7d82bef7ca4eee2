// SPDX-License-Identifier: MIT
// Memory besides files that the processes of a job held over time. Kept in the log as derived data (formats/FORMAT.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"

namespace reprise {

/// From `time_ns` of the log on, bytes. What several processes share counts for each in its part.
struct HeldMemory {
    int64_t time_ns = 0;  // whole milliseconds
    uint64_t anonymous = 0, shared = 0;

    bool operator==(const HeldMemory&) const = default;
};

/// Of each process, when it changed; in order of time.
using HeldMemories = std::map<ProcessId, std::vector<HeldMemory>>;

Derived encode_held_memory(const HeldMemories& held);
/// Throws Corrupt. `processes`: rows of the process table, with row 0.
HeldMemories decode_held_memory(ByteView bytes, size_t processes);

/// None where the log does not say. Throws Error (bad_input) where it holds something that cannot be that.
std::optional<HeldMemories> held_memory(const LogReader& log);

/// Of all processes together: anonymous and shared.
struct HeldTotal {
    int64_t time_ns = 0;
    uint64_t bytes = 0;

    bool operator==(const HeldTotal&) const = default;
};
/// In order of time, one for each time at which one of them changed.
std::vector<HeldTotal> total_held(const HeldMemories& held);
/// The largest; 0 of none.
uint64_t most_held(const std::vector<HeldTotal>& total);
/// At that time of the log; 0 before the first.
uint64_t held_at(const std::vector<HeldTotal>& total, int64_t time_ns);

/// For logs made from others with the same processes.
void copy_held_memory(const LogReader& from, LogWriter& to);

}  // namespace reprise
