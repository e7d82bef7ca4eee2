// SPDX-License-Identifier: MIT
// Accelerators that the job simulates: a span of the mark `accelerator` becomes work of a device and the host's wait
// for it, instead of what the thread did in the span (sleep or spin).
#include <algorithm>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/header_facts.h"

namespace reprise {

bool RawAssembly::is_accelerator_mark(std::string_view name) const { return name == "accelerator" && !facts_.has_gpu; }

RawAssembly::StandIn RawAssembly::stand_in_of(const TaskState& task) {
    // Ranks of a job run in parallel: each process has a device, each of its threads a stream.
    auto& threads = stand_ins_.try_emplace(task.pid, static_cast<int64_t>(stand_ins_.size())).first->second;
    const auto stream = threads.streams.try_emplace(task.id, static_cast<int64_t>(threads.streams.size())).first;
    return {threads.device, stream->second};
}

void RawAssembly::begin_accelerator(TaskState& task, int64_t from) {
    if (task.accelerator_from) {
        count(Count::accelerator_spans_unended);
    } else {
        task.accelerator_from = from, task.accelerator_late = 0;
    }
    write_fact(writer_.header(), fact::accelerator_source, "marks");
}

void RawAssembly::end_accelerator(TaskState& task) {
    if (!task.accelerator_from) {
        count(Count::accelerator_spans_unbegun);
    }
    task.accelerator_from.reset();
}

void RawAssembly::work_until(TaskState& task, int64_t until) {
    if (!task.accelerator_from) {
        return;
    }
    // The device is done on time even if the waiting thread gets no processor at once.
    const int64_t busy = until - *task.accelerator_from - task.accelerator_late;
    task.accelerator_late = 0;
    if (busy <= 0) {
        return;
    }
    const StandIn device = stand_in_of(task);
    Op op;
    op.kind = OpKind::gpu_submit;
    op.begin = *task.accelerator_from;
    op.size = busy;
    op.arg = device.device;
    op.flags = device.stream;
    op.text = writer_.intern("accelerator");
    *task.accelerator_from = until;
    put(task, op);
    op.kind = OpKind::gpu_wait;
    op.duration = op.size;
    op.size = 0;
    op.text = 0;
    put(task, op);
}

bool RawAssembly::passes_time(const TaskState& task, const raw_call& record, const Syscall& row) {
    if (!task.accelerator_from) {
        return false;
    }
    if (row.action == CallAction::futex) {
        return !LockWords::wakes(record.args[1]);
    }
    return row.action == CallAction::wait;
}

}  // namespace reprise
