// SPDX-License-Identifier: MIT
#include "formats/oplog/job_end.h"

#include <algorithm>
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
    const auto first = std::find_if(tables.tasks.begin(), tables.tasks.end(), [&](const TaskRow& task) {
        return root != 0 && task.process == root && task.tid == tables.processes[root].pid;
    });
    if (first == tables.tasks.end()) {
        return {};
    }
    const std::vector<BlockInfo> blocks = log.blocks_of(static_cast<TaskId>(first - tables.tasks.begin()));
    if (blocks.empty()) {
        return {};
    }
    OpBlock block;
    log.decode(blocks.back(), block);
    if (block.count() == 0) {
        return {};
    }
    const Op last = block.row(block.count() - 1);
    if (last.kind != OpKind::exit || last.arg == 0) {
        return {};
    }
    constexpr int64_t kSignalled = 128;
    return last.result == -EINTR ? "signal " + std::to_string(last.arg - kSignalled)
                                 : "exit code " + std::to_string(last.arg);
}

}  // namespace reprise
