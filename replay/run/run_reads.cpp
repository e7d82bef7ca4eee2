// SPDX-License-Identifier: MIT
#include "replay/run/run_reads.h"

#include <algorithm>
#include <string>

#include "calibrate/own_groups.h"

namespace reprise {

std::optional<uint64_t> RunReads::look(SharedRun& run) {
    constexpr size_t kMost = 100;  // processes: more take too long to ask
    if (group_ != nullptr && disk_) {
        if (const std::optional<uint64_t> bytes = group_->read_bytes(*disk_)) {
            read_ = std::max(read_, *bytes);
            return read_;
        }
    }
    if (plan_.processes.size() > kMost) {
        return std::nullopt;
    }
    uint64_t sum = 0;
    // Parents first: a child that is reaped meanwhile is missing for once, and never there twice.
    for (ProcessId process = 1; process < plan_.processes.size(); ++process) {
        const ProcessSlot& slot = run.process(process);
        const pid_t pid = slot.pid.load();
        if (pid <= 0) {
            continue;
        }
        if (slot.state.load() != ProcessState::ended) {
            sum += number_in("/proc/" + std::to_string(pid) + "/io", "read_bytes:").value_or(0);
        } else if (plan_.processes[process].spawner == 0 || !slot.reaped.load()) {
            sum += static_cast<uint64_t>(std::max<int64_t>(slot.device_read_bytes.load(), 0));
        }
    }
    read_ = std::max(read_, sum);  // one that has ended is missing until it is reaped
    return read_;
}

}  // namespace reprise
