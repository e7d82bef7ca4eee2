// SPDX-License-Identifier: MIT
// What ended a task's waits: the wake of its last sleep, a signal, a lock that was given back.
#include <algorithm>
#include <utility>

#include "formats/assemble/recording/recording_impl.h"

namespace reprise {
namespace {

constexpr uint32_t kType = 0170000, kSocket = 0140000, kCharacters = 0020000, kFifo = 0010000;  // S_IFMT...
constexpr int64_t kLongHeld = 200'000;  // ns: shorter waits for the interpreter lock make no difference

}  // namespace

const RawAssembly::Event* RawAssembly::last_sleep(const TaskState& task) {
    const auto event = std::find_if(task.events.rbegin(), task.events.rend(), [](const Event& each) {
        return each.kind == Event::Kind::off && each.state != RAW_OFF_RUNNABLE;
    });
    return event == task.events.rend() ? nullptr : &*event;
}

// What was left to the kernel reaches sleeps for a message, but none for a device, which are not interruptible.
bool RawAssembly::may_be_woken(const Event& event, uint16_t nr) {
    const bool interruptible = event.state == RAW_OFF_SLEEPING;
    return event.waker.task && can_wake(event.waker_nr, nr, interruptible) && (!event.waker.deferred || interruptible);
}

// A call waits for what ended its last sleep.
void RawAssembly::wake_edge(const TaskState& task, const RawOpRef& target, uint16_t nr) {
    if (const Event* event = last_sleep(task); event && may_be_woken(*event, nr)) {
        edges_.woken(target, event->waker);
    }
}

// Who sent the signal that ended a call: whatever that task was doing just then made it.
std::optional<RawWaker> RawAssembly::signaller(const TaskState& task) {
    const Event* event = last_sleep(task);
    if (!event || !event->waker.task || event->waker.deferred) {
        return std::nullopt;
    }
    RawWaker waker = event->waker;
    const Syscall* row = find_syscall(event->waker_nr);
    if (row && row->action == CallAction::exit) {
        waker.kind = EdgeKind::lifecycle;
    }
    return waker;
}

std::pair<const RawAssembly::Event*, const RawAssembly::TaskState*> RawAssembly::holder_of(
    const TaskState& task) const {
    const Event* sleep = last_sleep(task);
    if (!sleep || !sleep->waker.task || sleep->waker.deferred) {
        return {nullptr, nullptr};
    }
    const auto holder = tasks_.find(sleep->waker.task);
    return {sleep, holder == tasks_.end() ? nullptr : &holder->second};
}

// From when the waker had the lock, where it waited for it itself, else from the begin of the sleep: the lock was held
// then, by whomever.
bool RawAssembly::held_in_calls(const TaskState& task) const {
    const auto [sleep, holder] = holder_of(task);
    if (holder == nullptr) {
        return false;
    }
    const int64_t from = std::max(sleep->begin, holder->locked_from);
    return sleep->wake > from && holder->file_calls.within(from, sleep->wake) * 2 >= sleep->wake - from;
}

void RawAssembly::gave_interpreter(TaskState& task, const raw_call& record) {
    task.interpreter.gave_before = std::exchange(task.interpreter.gave, at(record.enter));
}

void RawAssembly::waited_for_interpreter(TaskState& task, const raw_call& record) {
    Interpreter& lock = task.interpreter;
    lock.held_by_blocked = false;
    if (record.result == kTimedOut) {
        lock.asked = std::min(lock.asked, at(record.enter));
        return;
    }
    lock.held_by_blocked = record.result == 0 && held_while_blocked(task);
    lock.got = at(record.head.time);
    lock.asked = INT64_MAX;
}

// Python gives its lock back before it blocks, but C code may not: then all others wait as long as its calls or page
// faults take, which is a cause, unlike a wait for a thread that computes. Who gave it back since the wait began may
// have blocked without it.
bool RawAssembly::held_while_blocked(const TaskState& task) const {
    const auto [sleep, holder] = holder_of(task);
    if (holder == nullptr) {
        return false;
    }
    const Interpreter& lock = holder->interpreter;
    const int64_t gave = lock.gave >= sleep->waker.enter ? lock.gave_before : lock.gave;
    const int64_t from = std::max(std::min(sleep->begin, task.interpreter.asked), lock.got);
    return gave <= from && sleep->wake - from >= kLongHeld &&
           holder->long_calls.within(from, sleep->wake) * 2 >= sleep->wake - from;
}

// Who sleeps again after a signal sleeps until the time it had in mind, whenever the signal comes: of a sleep that goes
// on, the parts keep their times.
void RawAssembly::after_cut_sleep(TaskState& task, const Syscall& row, bool makes_op) {
    const bool sleeps_on = row.action == CallAction::wait && row.arg == kWaitSleep;
    if (!task.cut_sleep || !(makes_op || sleeps_on)) {
        return;
    }
    if (!sleeps_on) {
        edges_.woken(task.cut_sleep->op, task.cut_sleep->waker);
    }
    task.cut_sleep.reset();
}

// Whether the kernel delivers what the call does, after it or in a soft interrupt: on sockets and terminals.
bool RawAssembly::is_delivered(const Syscall& row) const {
    if (row.action == CallAction::exec || row.action == CallAction::close_range) {
        return true;  // of those they close
    }
    return std::any_of(filler_.parts().begin(), filler_.parts().end(), [](const raw_part* part) {
        const bool file = part->type == RAW_PART_FD;
        const uint32_t type = file ? static_cast<const raw_fd*>(raw_part_data(*part))->mode & kType : 0;
        return type == kSocket || type == kCharacters;
    });
}

// The open of a FIFO lasts until somebody opens its other end. Locks in the kernel make other opens wait, which are no
// causes.
bool RawAssembly::opens_fifo() const {
    const raw_fd* made = filler_.fd_of(RAW_WHICH_RESULT);
    return made != nullptr && (made->mode & kType) == kFifo;
}

bool RawAssembly::may_have_woken(const Syscall& row) const { return row.wakes != 0; }

// The parent sleeps until its child has another program or ends.
void RawAssembly::wait_for_vforked(TaskState& task, int64_t from) {
    const Event* event = last_sleep(task);
    Op op;
    op.kind = OpKind::wait;
    op.arg = kWaitChild;
    op.begin = from;
    op.duration = std::max<int64_t>(event->end - from, 0);
    const RawOpRef self{task.id, put(task, op), from, op.end(), true, true};
    if (event->waker.task) {
        RawWaker waker = event->waker;
        waker.kind = EdgeKind::lifecycle;
        edges_.woken(self, waker);
    }
}

// Such calls are not made by a replay and keep their time, so that the time they waited is told apart: for the lock of
// a range, which changes hands as recorded, like that of flock, for a terminal, and for the other end of a FIFO.
int64_t RawAssembly::wait_apart(TaskState& task, const raw_call& record, const Syscall& row, int64_t begin) {
    constexpr uint64_t kSetLockWait = 7, kSetOwnLockWait = 38;  // F_SETLKW, F_OFD_SETLKW
    const uint64_t command = record.args[1];
    const Event* event = last_sleep(task);
    if (!event || event->state != RAW_OFF_SLEEPING) {
        return begin;
    }
    const raw_fd* fd = filler_.fd_of(0);
    const bool locks = row.action == CallAction::fcntl && (command == kSetLockWait || command == kSetOwnLockWait);
    const bool terminal = row.action == CallAction::op && fd && (fd->mode & kType) == kCharacters;
    const bool fifo = row.makes_op && row.kind == OpKind::open && opens_fifo();
    if (!locks && !fifo && !(terminal && may_be_woken(*event, row.nr))) {
        return begin;
    }
    const int64_t until = event->end;
    work_until(task, begin);
    Op op;
    op.kind = OpKind::wait;
    op.begin = std::max(begin, task.cursor);
    op.duration = std::max<int64_t>(until - op.begin, 0);
    const RawOpRef self{task.id, put(task, op), op.begin, until, true, true};
    const Syscall* waker = find_syscall(event->waker_nr);
    if (!fifo) {
        wake_edge(task, self, row.nr);
    } else if (event->waker.task && waker && (waker->wakes & wake::fifo) != 0) {
        edges_.woken(self, event->waker);
    }
    return until;
}

bool RawAssembly::takes_message(const raw_call& record) {
    return record.result >= 0 && (record.nr == SYS_mq_timedreceive || record.nr == SYS_msgrcv);
}

// Messages have priorities and types, so that the n-th that was received need not be the n-th that was sent. But by
// then n had been sent, and for those it waits.
bool RawAssembly::queue_edge(const raw_call& record, const RawOpRef& self) {
    constexpr uint64_t kPosix = uint64_t{1} << 63,
                       kSystemV = uint64_t{3} << 62;  // no numbers of the assembler's channels
    const bool posix = record.nr == SYS_mq_timedsend || record.nr == SYS_mq_timedreceive;
    const bool receives = takes_message(record);
    if (record.result < 0 || !(posix || receives || record.nr == SYS_msgsnd)) {
        return false;
    }
    const raw_fd* fd = posix ? filler_.fd_of(0) : nullptr;
    if (posix && fd == nullptr) {
        return false;
    }
    const uint64_t queue = posix ? kPosix | fd->inode : kSystemV | static_cast<uint32_t>(record.args[0]);
    auto& [sent, received] = queues_[queue];
    int64_t& so_far = receives ? received : sent;
    const CallEffect::Moved moved{queue, so_far, so_far + 1, true};
    ++so_far;
    if (receives) {
        return edges_.received(moved, self);
    }
    edges_.sent(moved, self);
    return false;
}

}  // namespace reprise
