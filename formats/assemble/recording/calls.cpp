// SPDX-License-Identifier: MIT
// Calls of a raw recording become ops and edges.
#include <algorithm>
#include <cstring>
#include <optional>

#include "formats/assemble/file_table.h"
#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/open_flags.h"
#include "formats/oplog/range_lock.h"

namespace reprise {
namespace {

constexpr int64_t kInterrupted = -4;  // EINTR
constexpr int64_t kRestart = -516;    // ERESTART_RESTARTBLOCK
constexpr int64_t kVfork = 0x4000;    // CLONE_VFORK
constexpr int64_t kMapAnonymous = 0x20, kMapPopulate = 0x8000;
constexpr uint64_t kPage = 4096;
constexpr int64_t kLongCall = 20'000;        // ns
constexpr size_t kLongestMarker = 4095;      // docs/markers.md
constexpr int64_t kDontNeed = 4, kFree = 8;  // MADV_*

bool is_wait_action(CallAction action) {
    return action == CallAction::wait || action == CallAction::futex || action == CallAction::wake ||
           action == CallAction::wait_child || action == CallAction::ask_task;
}

bool is_memory_call(OpKind kind) {
    return kind == OpKind::munmap || kind == OpKind::madvise || kind == OpKind::mprotect || kind == OpKind::mremap ||
           kind == OpKind::msync;
}

// fcntl commands whose argument is a pointer.
bool argument_is_address(int64_t command) {
    return (command >= 5 && command <= 7) || (command >= 12 && command <= 16 && command != 13) ||
           (command >= 36 && command <= 38) || (command >= 1035 && command <= 1039);
}

}  // namespace

// Whether the call becomes an op. A wait that did not sleep and a wake that woke nobody count as compute.
bool RawAssembly::is_op(const raw_call& record, const Syscall& row, bool slept) {
    // Without context switches only the duration shows whether it slept.
    constexpr uint64_t kLong = 20'000;
    const bool waited = facts_.has_switches ? slept : record.head.time > record.enter + kLong;
    if (!row.makes_op) {
        return false;
    }
    switch (row.action) {
        case CallAction::wait:
            // Recordings of earlier versions lack switches from tasks that a kernel hides.
            return waited || takes_message(record) ||
                   (row.arg == kWaitSleep && record.result == 0 && record.head.time > record.enter + kLong);
        case CallAction::futex:
            if (LockWords::wakes(record.args[1])) {
                return record.result > 0 && !facts_.locks.is_lock(record.head.pid, record.args);
            }
            return waited;
        case CallAction::wake: return record.result > 0 && !facts_.locks.is_lock(record.head.pid, record.args);
        case CallAction::wait_child:
            return record.result > 0 || row.nr == SYS_waitid || waited || found_nobody(record, row);
        case CallAction::ask_task: return found_nobody(record, row) || ended_child(record, row) != nullptr;
        case CallAction::marker: return record.args[0] == RAW_MARKER_PRCTL && record.args[4] == RAW_MARKER_MAGIC;
        default: return true;
    }
}

void RawAssembly::call(const raw_call& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    const bool goes_on = record.nr == SYS_restart_syscall && task.restarts;
    const Syscall* row = find_syscall(goes_on ? task.restarts : record.nr);
    if (!row) {
        return;
    }
    task.owed += record.own_ns;
    taken_off_ += record.own_ns + facts_.call_gap_ns;
    const int64_t begin = at(record.enter), end = std::max(at(record.head.time), begin);
    if (row->action == CallAction::exit) {
        task.exit_enter = begin;  // the op is made when the task has ended
        return;
    }
    RawCall raw;
    const bool readable = filler_.fill(record, *row, static_cast<int64_t>(facts_.origin), raw);
    below_root(raw);
    const int64_t deferred = facts_.deferred.after(record, facts_.costs);
    // Separate the events inside the call from those before it.
    const auto inside = std::stable_partition(task.events.begin(), task.events.end(),
                                              [&](const Event& event) { return event.begin < begin; });
    const bool slept = std::any_of(inside, task.events.end(), [](const Event& event) {
        return event.kind == Event::Kind::off && event.state != RAW_OFF_RUNNABLE;
    });
    const RawTaskKey key = raw_task_key(task.pid, task.tid);
    const bool unfinished = record.head.flags & RAW_FLAG_UNFINISHED;
    if (unfinished) {
        task.cut_enter = begin;
    }
    // ERESTARTSYS and the like: the kernel may restart the call, depending on the signal handler.
    const bool again = !unfinished && record.result <= -512 && record.result >= kRestart;
    task.restarts = record.result == kRestart ? row->nr : uint16_t{0};
    after_cut_sleep(task, *row, unfinished || again || is_op(record, *row, slept));
    if (unfinished || again) {
        const bool frees = row->kind == OpKind::close || row->kind == OpKind::munmap;
        if (!frees || again) {
            return cut_call(task, record, *row, slept);
        }
        raw.result = 0;
    }
    other_effects(task, record, *row, raw);
    if (!makes_copy_or_populates(record, *row, raw) || !is_op(record, *row, slept) || passes_time(task, record, *row) ||
        library_works(task, *row)) {
        // A task woken by a call that makes no op depends on the op before that call.
        if (row->wakes != 0 && !(row->action == CallAction::futex && !LockWords::wakes(record.args[1]))) {
            settle(task, begin);
            edges_.may_have_woken(
                key, begin, {task.id, assembler_.op_count(task.id), begin, end, false, false, is_delivered(*row)});
            queue_edge(record, {task.id, assembler_.op_count(task.id), begin, end, false, false});
        }
        task.owed += facts_.call_gap_ns;
        return;
    }
    if (!readable) {
        count(Count::calls_with_unreadable_paths);
        return;
    }
    settle(task, begin);
    raw.duration += deferred;
    perform(task, record, *row, raw);
}

bool RawAssembly::library_works(const TaskState& task, const Syscall& row) {
    return task.in_library && (is_wait_action(row.action) || works_on_data(row.kind));
}

// False: a call that does so, but did not.
bool RawAssembly::makes_copy_or_populates(const raw_call& record, const Syscall& row, RawCall& raw) {
    if (row.action == CallAction::lock_memory) {
        ProcessState& process = processes_[record.head.pid];
        const bool populates = lock_memory(row.nr, raw, process.locks_all);
        if (populates) {
            process.fresh.unmapped(raw.address, static_cast<uint64_t>(raw.size));
        }
        return populates;
    }
    return row.action != CallAction::clone_blocks || raw.kind == OpKind::ioctl ||
           (record.result == 0 && filler_.fd_of(2) != nullptr);
}

// A direct read writes to the pages of a mapped file that its buffer is; where they are there, nothing else tells.
void RawAssembly::touch_direct_buffer(TaskState& task, const raw_call& record, const Syscall& row) {
    const bool one = row.arguments.find('B') != std::string_view::npos;
    const bool several = row.makes_op && info(row.kind).is(Trait::reads) && info(row.kind).has(Field::list);
    const raw_fd* fd = one || several ? filler_.fd_of(0) : nullptr;
    if (!fd || (fd->flags & kOpenDirect) == 0 || record.result <= 0) {
        return;
    }
    auto left = static_cast<uint64_t>(record.result);
    const auto filled = [&](uint64_t address, uint64_t bytes) {
        if (bytes == 0 || assembler_.mapped_at(static_cast<int32_t>(task.pid), address).map == 0) {
            return;
        }
        Event event;
        event.kind = Event::Kind::fault;
        event.begin = event.end = at(record.enter);
        event.places = places(task.pid, address, static_cast<uint32_t>((address % kPage + bytes - 1) / kPage + 1));
        event.write = true;
        task.events.push_back(event);
    };
    if (one) {
        return filled(record.args[1], left);
    }
    const std::span<const raw_s64> buffers = filler_.values_of(1), sizes = filler_.list_of(1);
    for (size_t i = 0; i < std::min(buffers.size(), sizes.size()) && left != 0; ++i) {
        const uint64_t bytes = std::min(left, static_cast<uint64_t>(std::max<raw_s64>(sizes[i], 0)));
        filled(static_cast<uint64_t>(buffers[i]), bytes);
        left -= bytes;
    }
}

// A call that did nothing, or whose effect is not known: only its duration is.
void RawAssembly::cut_call(TaskState& task, const raw_call& record, const Syscall& row, bool slept) {
    if ((!slept && is_wait_action(row.action)) || passes_time(task, record, row)) {
        return;
    }
    const int64_t begin = at(record.enter), end = std::max(at(record.head.time), begin);
    settle(task, begin);
    if (row.action == CallAction::uring_enter) {
        submit_before(task, begin, std::max(begin, task.cursor));
    }
    Op op;
    op.kind = OpKind::wait;
    op.arg = is_wait_action(row.action) ? row.arg : kWaitUnknown;
    op.begin = std::max(begin, task.cursor);
    op.duration = std::max<int64_t>(end - op.begin, 0);
    op.result = kInterrupted;
    const RawOpRef self{task.id, put(task, op), begin, end, slept, true};
    if (const std::optional<RawWaker> waker = slept ? signaller(task) : std::nullopt) {
        // The threads that the end of their process ends are found by the replay, which waits for that end.
        const bool ends_too = record.head.flags & RAW_FLAG_UNFINISHED && waker->task >> 32 == task.pid;
        if (row.arg == kWaitSleep && row.action == CallAction::wait) {
            task.cut_sleep = {self, *waker};
        } else if (!ends_too) {
            edges_.woken(self, *waker);
        }
    }
    count(Count::calls_cut);
    after_call(task, end);
}

/// The file in which the call may make holes.
const raw_fd* RawAssembly::cut_file(const RawCall& raw) const {
    constexpr int64_t kTruncate = 01000;  // O_TRUNC
    if (raw.kind == OpKind::open) {
        return raw.flags & kTruncate ? filler_.fd_of(RAW_WHICH_RESULT) : nullptr;
    }
    return raw.kind == OpKind::ftruncate || raw.kind == OpKind::fallocate ? filler_.fd_of(0) : nullptr;
}

/// Pages of which a write is a part were read first.
void RawAssembly::note_parts(TaskState& task, const RawCall& raw) {
    if (task.pages_written.empty()) {
        return;
    }
    const raw_fd* const fd = filler_.fd_of(0);
    const std::optional<int64_t> from = raw.position ? raw.position : raw.offset;
    if (fd != nullptr && from && *from >= 0 && raw.result > 0 && raw.result <= INT64_MAX - *from) {
        page_cache_.wrote(*fd, static_cast<uint64_t>(*from), static_cast<uint64_t>(*from + raw.result),
                          task.pages_written);
    }
    task.pages_written.clear();
}

void RawAssembly::perform(TaskState& task, const raw_call& record, const Syscall& row, RawCall& raw) {
    const int64_t begin = raw.begin, end = begin + raw.duration;
    const bool slept = std::any_of(task.events.begin(), task.events.end(), [](const Event& event) {
        return event.kind == Event::Kind::off && event.state != RAW_OFF_RUNNABLE;
    });
    prepare(task, record, row, raw);
    if (const raw_fd* made = filler_.fd_of(RAW_WHICH_RESULT)) {
        page_cache_.see(*made);
    }
    note_parts(task, raw);
    if (const raw_fd* cut = cut_file(raw)) {
        page_cache_.see_cut(*cut);
    }
    touch_direct_buffer(task, record, row);
    const int64_t taken = std::min(before_call(task, begin), raw.duration);
    raw.begin = std::max(begin + taken, task.cursor);
    const int64_t waited = wait_apart(task, record, row, raw.begin);
    const bool sleeps = slept && waited == raw.begin;
    raw.begin = waited;
    work_until(task, raw.begin);
    raw.duration = std::max<int64_t>(end - raw.begin, 0);
    // The replay takes the duration of calls that only wake others from the recording. The tasks it woke may have had
    // the processor for part of it, and will have it in the replay too: leave that part out.
    for (const Event& event : task.events) {
        const bool ready = event.kind == Event::Kind::off && event.state == RAW_OFF_RUNNABLE;
        if (ready) {
            raw.preempted += std::max<int64_t>(std::min(event.end, end) - std::max(event.begin, raw.begin), 0);
        }
    }
    raw.preempted = std::min(raw.preempted, raw.duration);
    const bool woke = raw.kind == OpKind::wait && raw.arg == kWaitWokeOthers;
    if (woke) {
        raw.duration -= raw.preempted;
    }
    raw.duration = std::max<int64_t>(raw.duration - recorders_part(task, record, woke), 0);
    if (row.action == CallAction::uring_enter) {
        submit_before(task, begin, raw.begin);
    }
    const uint64_t before = assembler_.op_count(task.id);
    const bool vfork = row.action == CallAction::spawn && raw.flags & kVfork && record.result > 0 && sleeps;
    const int64_t until_child = vfork ? std::clamp(last_sleep(task)->begin, raw.begin, end) : end;
    if (vfork) {
        raw.duration = until_child - raw.begin;
    }

    CallEffect effect;
    if (row.action == CallAction::marker) {
        mark(task, record, raw);
        return after_call(task, end);
    }
    if (row.action == CallAction::aio_submit) {
        effect = aio_submit(task, raw);
    } else if (row.action == CallAction::aio_reap) {
        effect = aio_reap(task, record, raw);
    } else {
        effect = assembler_.call(raw);
    }
    if (effect.ops > 0) {
        // What it took is told after the call that took it.
        const bool reaps = row.action == CallAction::aio_reap;
        const uint64_t last = reaps ? effect.first : effect.first + effect.ops - 1;
        if (before == 0) {
            began(task, {task.id, 0, raw.begin, end, slept, true});
        }
        if (row.action == CallAction::uring_enter && raw.arg > 0) {
            took_before(task, last);
        }
        link(task, record, row, effect, {task.id, last, begin, until_child, sleeps && !vfork, true, is_delivered(row)});
        if (vfork) {
            wait_for_vforked(task, until_child);
        }
        if (works_on_data(effect.kind)) {
            task.file_calls.add(begin, end);
        }
        if (end - begin >= kLongCall && !is_lock_wait(raw.kind == OpKind::wait ? raw.arg : 0)) {
            task.long_calls.add(begin, end);
        }
    } else if (is_memory_call(raw.kind)) {
        // Of the program's own memory, which a replay has none of: the time is computing, as all between ops.
        task.owed += facts_.call_gap_ns;
        return;
    } else if (may_have_woken(row)) {
        edges_.may_have_woken(raw_task_key(task.pid, task.tid), begin,
                              {task.id, before, begin, end, sleeps, false, is_delivered(row)});
    }
    if (row.action == CallAction::receive && raw.result >= 0) {
        for (const raw_part* part : filler_.parts()) {
            if (part->type != RAW_PART_FD || part->which < RAW_WHICH_RECEIVED || part->which >= RAW_WHICH_SENT) {
                continue;
            }
            const auto& fd = *static_cast<const raw_fd*>(raw_part_data(*part));
            assembler_.adopt(raw.pid, fd.fd, seen_instance(fd), {}, Assembler::Came::received, raw.tid);
        }
    }
    after_call(task, end);
    if (task.accelerator_from) {
        task.accelerator_from = std::max(*task.accelerator_from, end);
    }
}

// What the recorder took inside a call.
int64_t RawAssembly::recorders_part(TaskState& task, const raw_call& record, bool woke) const {
    const auto switches = std::count_if(task.events.begin(), task.events.end(),
                                        [](const Event& event) { return event.kind == Event::Kind::off; });
    int64_t own = switches * facts_.costs.off + task.cache_own;
    task.cache_own = 0;
    if (woke) {  // futexes say how many; what else wakes, wakes one, as far as is known
        constexpr int64_t kMost = 1'000;
        own += facts_.costs.wake * std::clamp<int64_t>(record.nr == SYS_futex ? record.result : 1, 1, kMost);
    }
    return own;
}

// A lock on a range, as struct flock has it. 0: not known.
int64_t RawAssembly::packed_lock() const {
    constexpr uint16_t kLock = 2;  // the argument
    const auto values = filler_.values_of(kLock);
    if (values.size() < 3) {
        return 0;
    }
    const int64_t type = values[0] & 0xffff, whence = values[0] >> 16 & 0xffff;
    const raw_fd* const fd = filler_.fd_of(0);
    if ((type != F_RDLCK && type != F_WRLCK && type != F_UNLCK) || (fd == nullptr && whence != SEEK_SET)) {
        return 0;
    }
    return pack(range_lock_of(type, whence, values[1], values[2], fd == nullptr ? 0 : fd->position,
                              fd == nullptr ? 0 : static_cast<int64_t>(fd->size)));
}

// Corrects arguments whose meaning the letters of the table do not cover.
void RawAssembly::prepare(TaskState& task, const raw_call& record, const Syscall& row, RawCall& raw) {
    const bool done = record.result >= 0;
    switch (row.action) {
        case CallAction::close_range:
            raw.fd = static_cast<int32_t>(std::min<uint64_t>(static_cast<uint32_t>(record.args[0]), INT32_MAX));
            raw.fd2 = static_cast<int32_t>(std::min<uint64_t>(static_cast<uint32_t>(record.args[1]), INT32_MAX));
            return;
        case CallAction::fcntl:
            if (argument_is_address(raw.arg)) {
                raw.flags = locks_range(raw.arg) ? packed_lock() : 0;
            }
            return;
        case CallAction::mmap:
            if (done) {
                raw.address = static_cast<uint64_t>(record.result);
                raw.result = 0;
                raw.flags |= processes_[record.head.pid].locks_all ? kMapPopulate : 0;
            }
            return;
        case CallAction::mremap:
            if (done) {
                raw.address2 = static_cast<uint64_t>(record.result);
                raw.result = 0;
            }
            return;
        case CallAction::pipe: return prepare_pipe(record, raw);
        case CallAction::spawn: return prepare_spawn(task, record, row, raw);
        case CallAction::wait_child:
        case CallAction::ask_task: return prepare_join(record, row, raw);
        case CallAction::wait:
            raw.size = static_cast<int32_t>(raw.size);  // of epoll: an int, -1 without end
            return record.nr == SYS_semop || record.nr == SYS_semtimedop ? prepare_lock(task, record, raw) : void();
        case CallAction::futex:
            if (LockWords::wakes(record.args[1])) {
                raw.arg = kWaitWokeOthers;
            } else if (facts_.locks.is_lock(record.head.pid, record.args)) {
                raw.arg = kWaitLock;
                ++locks_;
                if (facts_.locks.is_interpreter(record.head.pid, record.args)) {
                    waited_for_interpreter(task, record);
                }
            }
            return raw.arg != kWaitWokeOthers && facts_.locks.may_guard(record.head.pid, record.args)
                       ? prepare_lock(task, record, raw)
                       : void();
        case CallAction::exec:
            if (raw.path.empty() && done && raw.fd < 0) {
                raw.path = task.program;
            }
            return;
        default: set_mode_by_list(record, raw); return mark_fresh(record, row, raw);
    }
}

namespace {

/// What an access control list leaves of a mode (linux/posix_acl_xattr.h): of its owner, of its mask or else its group,
/// and of all others. None: not all of them are in it.
std::optional<uint32_t> mode_of_list(std::string_view list) {
    constexpr size_t kHeader = 4, kEntry = 8;
    constexpr uint16_t kOwner = 1, kGroup = 4, kMask = 16, kOthers = 32, kBits = 7;
    std::optional<uint32_t> owner, group, mask, others;
    for (size_t at = kHeader; at + kEntry <= list.size(); at += kEntry) {
        uint16_t tag = 0, permissions = 0;
        std::memcpy(&tag, list.data() + at, sizeof tag);
        std::memcpy(&permissions, list.data() + at + sizeof tag, sizeof permissions);
        const uint32_t bits = permissions & kBits;
        switch (tag) {
            case kOwner: owner = bits; break;
            case kGroup: group = bits; break;
            case kMask: mask = bits; break;
            case kOthers: others = bits; break;
            default: break;  // named users and groups
        }
    }
    group = mask ? mask : group;
    return owner && group && others ? std::optional(*owner << 6 | *group << 3 | *others) : std::nullopt;
}

}  // namespace

// How sed, cp and logrotate set the mode: by an access control list. Of an open file what it may afterwards is
// recorded, of a path the list.
void RawAssembly::set_mode_by_list(const raw_call& record, RawCall& raw) const {
    constexpr uint32_t kBits = 07777;
    if (raw.kind != OpKind::setxattr || record.result != 0 || raw.text != "system.posix_acl_access") {
        return;
    }
    const raw_fd* const fd = filler_.fd_of(0);
    const std::optional<uint32_t> by_list = mode_of_list(filler_.string_of(2));
    if (fd != nullptr && fd->file != 0) {
        raw.mode = fd->mode & kBits;
    } else if (fd == nullptr && by_list) {
        raw.mode = *by_list;
    } else {
        return;
    }
    raw.kind = OpKind::chmod;
    raw.text = {};
    raw.size = raw.flags = 0;
}

// A wait for what may be a lock.
void RawAssembly::prepare_lock(TaskState& task, const raw_call& record, RawCall& raw) {
    if (record.result == 0 && held_in_calls(task)) {
        raw.arg |= kWaitHeldInCalls;
    }
    task.locked_from = at(record.head.time);
}

void RawAssembly::prepare_pipe(const raw_call& record, RawCall& raw) {
    raw.fd = raw.fd2 = -1;
    if (record.result < 0) {
        return;
    }
    if (raw.arg == kEventFd || raw.arg == kMemFd) {
        raw.fd = static_cast<int32_t>(record.result);
        raw.made2 = nullptr;
        return;
    }
    if (const raw_fd* first = filler_.fd_of(RAW_WHICH_RESULT)) {
        raw.fd = first->fd;
    }
    if (const raw_fd* second = filler_.fd_of(RAW_WHICH_RESULT2)) {
        raw.fd2 = second->fd;
    }
}

void RawAssembly::prepare_spawn(const TaskState& task, const raw_call& record, const Syscall& row, RawCall& raw) {
    if (row.nr == SYS_clone3) {
        if (const auto values = filler_.values_of(0); !values.empty()) {
            raw.flags = values[0];
        }
    }
    if (record.result >= 0 && task.spawned) {
        raw.peer = task.spawned;
        raw.flags = task.spawn_flags | (raw.flags & 0xff);
        raw.arg = task.spawned_tid;
    } else {
        raw.arg = std::max<int64_t>(raw.result, 0);
    }
}

// Reads into memory that no call has filled since it was mapped pay its page faults.
void RawAssembly::mark_fresh(const raw_call& record, const Syscall& row, RawCall& raw) {
    if (row.arguments.find('B') == std::string_view::npos || record.result <= 0) {
        return;
    }
    if (processes_[record.head.pid].fresh.fill(raw.address, static_cast<uint64_t>(record.result))) {
        raw.flags |= kFreshMemory;
    }
}

// Which memory a call makes or leaves fresh.
void RawAssembly::memory_effects(const raw_call& record, const Syscall& row, const RawCall& raw) {
    FreshMemory& fresh = processes_[record.head.pid].fresh;
    const uint64_t address = record.args[0], size = record.args[1];
    const auto result = static_cast<uint64_t>(record.result);
    if (row.action == CallAction::brk) {
        return fresh.break_at(result);
    }
    if (record.result < 0) {
        return;
    }
    if (row.action == CallAction::mmap) {
        const bool untouched = raw.flags & kMapAnonymous && !(raw.flags & kMapPopulate);
        return untouched ? fresh.mapped(result, size) : fresh.unmapped(result, size);
    }
    if (row.action == CallAction::mremap || row.kind == OpKind::munmap) {
        return fresh.unmapped(address, size);
    }
    const bool drops = row.kind == OpKind::madvise && (raw.arg == kDontNeed || raw.arg == kFree);
    if (drops && assembler_.mapped_at(raw.pid, address).map == 0) {
        fresh.mapped(address, size);
    }
}

// Effects of a call besides its op.
void RawAssembly::other_effects(TaskState& task, const raw_call& record, const Syscall& row, const RawCall& raw) {
    const bool done = record.result >= 0;
    const auto pid = raw.pid;
    switch (row.action) {
        case CallAction::brk:
        case CallAction::mmap:
        case CallAction::mremap:
        case CallAction::op: return memory_effects(record, row, raw);
        case CallAction::chdir:
        case CallAction::fchdir:
        case CallAction::chroot:
        case CallAction::pivot_root:
        case CallAction::mount:
        case CallAction::umount:
        case CallAction::unshare:
        case CallAction::setns:
            if (done) {
                changed_names(record, row, raw);
            }
            return;
        case CallAction::futex:
            if (LockWords::wakes(record.args[1]) && facts_.locks.is_interpreter(record.head.pid, record.args)) {
                gave_interpreter(task, record);
            }
            return;
        case CallAction::umask: return assembler_.set_umask(pid, raw.mode, raw.tid);
        case CallAction::marker: {
            constexpr uint64_t kSetName = 15;  // PR_SET_NAME
            if (record.args[0] == kSetName && done) {
                assembler_.name_task(task.id, filler_.string_of(1));
            }
            return;
        }
        case CallAction::make:
        case CallAction::make_socket:
        case CallAction::make_epoll:
            if (done && raw.made) {
                assembler_.adopt(pid, static_cast<int32_t>(record.result), *raw.made, {}, Assembler::Came::made,
                                 raw.tid);
            }
            return;
        default: return;
    }
}

void RawAssembly::mark(TaskState& task, const raw_call& record, const RawCall& raw) {
    std::string_view name = filler_.string_of(1);
    if (name.size() > kLongestMarker) {
        name = name.substr(0, kLongestMarker);
        count(Count::marker_names_cut);
    }
    Op op;
    op.kind = OpKind::marker;
    op.begin = raw.begin;
    op.duration = raw.duration;
    op.text = writer_.intern(name);
    op.arg = static_cast<int64_t>(record.args[2]);
    op.flags = static_cast<int64_t>(record.args[3]);
    const RawOpRef self{task.id, put(task, op), raw.begin, op.end(), false, true};
    ranks_.mark(process_of(task.id), name, op.arg);
    if (is_accelerator_mark(name)) {
        if (op.flags == static_cast<int64_t>(MarkerPhase::begin)) {
            begin_accelerator(task, op.end());
        }
        if (op.flags == static_cast<int64_t>(MarkerPhase::end)) {
            end_accelerator(task);
        }
    }
    // "fetch", "fetch.2": the worker's side; "batch", "batch.2": the consumer's.
    const size_t point = std::min(name.find('.'), name.size());
    const std::string_view what = name.substr(0, point), loader = name.substr(point);
    const auto phase = static_cast<MarkerPhase>(op.flags);
    if (what == "fetch" && phase == MarkerPhase::end) {
        edges_.fetched(task.pid, processes_[task.pid].parent, loader, op.arg, self);
    }
    if (what == "batch" && phase != MarkerPhase::end) {
        edges_.batch(task.pid, loader, op.arg, self);
    }
}

void RawAssembly::link(TaskState& task, const raw_call& record, const Syscall& row, const CallEffect& effect,
                       RawOpRef self) {
    bool explained = queue_edge(record, self);
    if (effect.received.channel) {
        explained = edges_.received(effect.received, self);
    }
    if (effect.sent.channel) {
        edges_.sent(effect.sent, self);
    }
    const bool on_child = row.action == CallAction::wait_child || row.action == CallAction::ask_task;
    const bool own_wait = row.action == CallAction::spawn || on_child || row.kind == OpKind::flock ||
                          row.kind == OpKind::fcntl || row.kind == OpKind::dup;
    const bool interrupted = record.result == kInterrupted, timed_out = record.result == kTimedOut;
    const bool lock = row.action == CallAction::futex && facts_.locks.is_lock(task.pid, record.args) &&
                      !std::exchange(task.interpreter.held_by_blocked, false);
    if (interrupted && self.slept) {
        if (const std::optional<RawWaker> waker = signaller(task)) {
            edges_.woken(self, *waker);
        }
    } else if (!explained && self.slept && !own_wait && !timed_out && !lock) {
        wake_edge(task, self, row.nr);
    }
    if (on_child) {
        child_edge(task, record, row, self);
    }
    if (row.action == CallAction::spawn && task.spawned && record.result >= 0) {
        const auto child = tasks_.find(raw_task_key(task.spawned_pid, task.spawned_tid));
        if (child != tasks_.end() && child->second.id == task.spawned) {
            if (child->second.first) {
                edges_.add(*child->second.first, self, EdgeKind::lifecycle);
                child->second.first.reset();
                child->second.parent = 0;
            } else if (child->second.parent) {
                child->second.spawn = self;
            }
        }
        task.spawned = 0;
    }
    if (may_have_woken(row)) {
        edges_.may_have_woken(raw_task_key(task.pid, task.tid), self.begin, self);
    }
}

}  // namespace reprise
