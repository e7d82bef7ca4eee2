// SPDX-License-Identifier: MIT
#include "formats/oplog/job_end.h"

#include <cerrno>
#include <vector>

namespace reprise {

std::string failed_end(const LogReader& log) {
    const Tables& tables = log.tables();
    // Of several jobs in a log (ranks), none is the job.
    ProcessId root = 0;
    for (ProcessId id = 1; id < tables.processes.size(); ++id) {
        if (tables.processes[id].parent == 0) {
            if (root != 0) {
                return {};
            }
            root = id;
        }
    }
    std::string how;
    for (TaskId id = 1; id < tables.tasks.size() && how.empty(); ++id) {
        const TaskRow& task = tables.tasks[id];
        if (root == 0 || task.process != root || task.tid != tables.processes[root].pid) {
            continue;
        }
        const std::vector<BlockInfo> blocks = log.blocks_of(id);
        if (blocks.empty()) {
            return {};
        }
        OpBlock block;
        log.decode(blocks.back(), block);
        const size_t last = block.count() - 1;
        const bool ended = block.count() != 0 && static_cast<OpKind>(block.kind[last]) == OpKind::exit;
        if (ended && block.arg[last] != 0) {
            constexpr int64_t kSignalled = 128;
            how = block.result[last] == -EINTR ? "signal " + std::to_string(block.arg[last] - kSignalled)
                                               : "exit code " + std::to_string(block.arg[last]);
        }
    }
    return how;
}

}  // namespace reprise
