// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/held_memory.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int64_t kMs = 1'000'000;

int64_t whole_ms(int64_t time) { return std::max<int64_t>(time, 0) / kMs * kMs; }

}  // namespace

void RawHeldMemory::see(const raw_memory& record, int64_t time) {
    std::vector<HeldMemory>& points = by_pid_[record.head.pid];
    const int64_t at = points.empty() ? whole_ms(time) : std::max(whole_ms(time), points.back().time_ns);
    points.push_back({at, record.anonymous, record.shared});
}

void RawHeldMemory::ended(uint32_t pid, int64_t time) {
    const auto found = by_pid_.find(pid);
    if (found != by_pid_.end()) {
        found->second.push_back({std::max(whole_ms(time), found->second.back().time_ns), 0, 0});
    }
}

HeldMemories RawHeldMemory::of(const Tables& tables) const {
    HeldMemories held;
    for (ProcessId process = 1; process < tables.processes.size(); ++process) {
        const auto found = by_pid_.find(static_cast<uint32_t>(tables.processes[process].pid));
        if (found != by_pid_.end()) {
            held[process] = found->second;
        }
    }
    // A number that was used again: the last one has it all.
    std::map<int32_t, ProcessId> last;
    for (const auto& [process, points] : held) {
        last[tables.processes[process].pid] = process;
    }
    std::erase_if(held, [&](const auto& entry) { return last[tables.processes[entry.first].pid] != entry.first; });
    return held;
}

}  // namespace reprise
