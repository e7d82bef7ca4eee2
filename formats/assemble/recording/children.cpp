// SPDX-License-Identifier: MIT
// Waits for other processes: for their end, or until a signal has stopped them; and stops, until another signal ends
// them.
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "formats/assemble/recording/recording_impl.h"

namespace reprise {
namespace {

uint64_t options_of(const raw_call& record, const Syscall& row) { return record.args[row.nr == SYS_waitid ? 3 : 2]; }

}  // namespace

uint32_t RawAssembly::told_child(const raw_call& record, const Syscall& row) const {
    int64_t pid = record.result;
    if (row.action == CallAction::ask_task) {
        pid = record.result == -ESRCH && record.args[1] == 0 ? static_cast<int32_t>(record.args[0]) : 0;
    }
    if (row.nr == SYS_waitid) {
        const auto values = filler_.values_of(2);
        pid = record.result >= 0 && !values.empty() ? values[0] : 0;
    }
    // Inside a PID namespace it has another number.
    if (const auto outside = filler_.values_of(RAW_WHICH_RESULT); !outside.empty()) {
        pid = outside[0];
    }
    return pid > 0 && pid <= INT32_MAX ? static_cast<uint32_t>(pid) : 0;
}

bool RawAssembly::found_nobody(const raw_call& record, const Syscall& row) const {
    if (record.result != 0) {
        return false;
    }
    if (row.action == CallAction::ask_task) {
        return record.args[1] == 0 && static_cast<int32_t>(record.args[0]) > 0;
    }
    return (options_of(record, row) & WNOHANG) != 0 && told_child(record, row) == 0;
}

const RawOpRef* RawAssembly::ended_child(const raw_call& record, const Syscall& row) const {
    const auto ended = ended_.find(told_child(record, row));
    return ended == ended_.end() ? nullptr : &ended->second;
}

void RawAssembly::prepare_join(const raw_call& record, const Syscall& row, RawCall& raw) const {
    raw.arg = row.arg + (found_nobody(record, row) ? kWaitLooked : 0);
    if (const RawOpRef* child = ended_child(record, row)) {
        raw.kind = OpKind::join;
        raw.peer = child->task;
        raw.result = row.action == CallAction::ask_task ? int64_t{told_child(record, row)} : raw.result;
    } else {
        raw.kind = OpKind::wait;  // no child ended, or none that is recorded
    }
}

void RawAssembly::child_edge(const TaskState& task, const raw_call& record, const Syscall& row, const RawOpRef& self) {
    if (const RawOpRef* ended = ended_child(record, row)) {
        return edges_.add(self, *ended, EdgeKind::lifecycle);
    }
    // That it goes on again, or that a debugger has stopped it, is another matter.
    const auto values = filler_.values_of(2);
    const bool stopped = row.nr == SYS_waitid ? values.size() >= 2 && values[1] == CLD_STOPPED
                                              : (options_of(record, row) & (WUNTRACED | WCONTINUED)) == WUNTRACED;
    const uint32_t pid = told_child(record, row);
    const auto child = tasks_.find(raw_task_key(pid, pid));
    if (!stopped || row.action != CallAction::wait_child || child == tasks_.end() || child->second.ended) {
        return;
    }
    // It tells its parent just before it stops. Where the parent came later, only what was an op by then is certain.
    const Event* sleep = last_sleep(task);
    const int64_t at = sleep != nullptr && sleep->wake > sleep->begin ? sleep->wake : self.begin;
    if (at != self.begin) {
        settle(child->second, at);
    }
    edges_.add(self, {child->second.id, assembler_.op_count(child->second.id), at, at, false, false}, EdgeKind::wake);
}

bool RawAssembly::was_continued(const Event& event) {
    const Syscall* waker = event.waker.task != 0 && !event.waker.deferred ? find_syscall(event.waker_nr) : nullptr;
    return event.nr == kNoCall && event.state == RAW_OFF_SLEEPING && waker != nullptr &&
           (waker->wakes & wake::signal) != 0 && waker->action != CallAction::exit;  // which would be the end
}

}  // namespace reprise
