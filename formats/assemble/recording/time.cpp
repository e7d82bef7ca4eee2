// SPDX-License-Identifier: MIT
// The time between a task's calls: compute, waits, idle time, touches of mapped files. Waiting for a processor is none
// of them and stays a gap between ops.
#include <algorithm>

#include "formats/assemble/recording/recording_impl.h"

namespace reprise {
namespace {

constexpr size_t kMostEvents = 4096;
// Faults closer than this become one touch; compute between them is counted after it.
constexpr int64_t kMergeFaults = 100'000;
/// From when a fault is reported to the wait for its page, with what else is read along.
constexpr int64_t kMostAsking = 20'000'000;
constexpr size_t kMostFaults = 1024;
constexpr int64_t kPage = 4096;

// The class of a wait inside a call.
int64_t class_of(uint16_t nr) {
    const Syscall* row = find_syscall(nr);
    return row && row->makes_op && (row->kind == OpKind::wait || row->kind == OpKind::join) ? row->arg : kWaitUnknown;
}

/// Whether time inside the call, or outside any, belongs to no op.
bool outside_ops(uint16_t nr) {
    const Syscall* row = nr == kNoCall ? nullptr : find_syscall(nr);
    return nr == kNoCall || (row != nullptr && !row->makes_op);
}

}  // namespace

// The part after the task became runnable; 0 if the wake is unknown.
int64_t RawAssembly::waited_for_processor(const Event& off) {
    const int64_t from = off.wake > off.begin ? off.wake : off.state == RAW_OFF_RUNNABLE ? off.begin : off.end;
    return std::max<int64_t>(off.end - from, 0);
}

uint64_t RawAssembly::put(TaskState& task, const Op& op) {
    work_until(task, op.begin);
    const uint64_t number = assembler_.op_count(task.id);
    assembler_.op(static_cast<int32_t>(task.pid), static_cast<int32_t>(task.tid), op);
    task.cursor = std::max(task.cursor, op.end());
    if (task.accelerator_from) {
        task.accelerator_from = std::max(*task.accelerator_from, op.end());
    }
    if (number == 0) {
        began(task, {task.id, 0, op.begin, op.end(), false, true});
    }
    return number;
}

// Op 0 of a task depends on the op that spawned it.
void RawAssembly::began(TaskState& task, const RawOpRef& first) {
    if (task.parent == 0 || first.number != 0) {
        return;
    }
    if (task.spawn) {
        edges_.add(first, *task.spawn, EdgeKind::lifecycle);
        task.spawn.reset();
    } else {
        task.first = first;
        waiting_for_spawn_.emplace_back(first.end + RawEdges::kLag, raw_task_key(task.pid, task.tid));
    }
    task.parent = task.first ? task.parent : 0;
}

// Bounds the events of a task that makes no call for long, or one very long call.
void RawAssembly::bound_events(TaskState& task) {
    if (task.events.size() < kMostEvents) {
        return;
    }
    const Event last = task.events.back();
    if (last.kind != Event::Kind::off || last.nr == kNoCall) {
        // No call is under way unless the last event lies inside one, which a fault does not tell.
        const bool in_call = std::any_of(task.events.end() - 64, task.events.end(), [](const Event& each) {
            return each.kind == Event::Kind::off && each.nr != kNoCall;
        });
        if (!task.in_library && (!in_call || last.kind == Event::Kind::off)) {
            return settle(task, last.end);
        }
    }
    task.events.erase(task.events.begin() + kMostEvents / 4, task.events.begin() + kMostEvents / 2);
}

void RawAssembly::compute(TaskState& task, int64_t begin, int64_t duration) {
    if (duration < options_.least_compute_ns || task.accelerator_from) {
        return;
    }
    use_again(task, begin, duration);
    Op op;
    op.kind = OpKind::compute;
    op.begin = std::max(begin, task.cursor);
    op.duration = duration;
    computed_ += duration;
    op.flags = kComputeWorks;
    put(task, op);
}

// Asleep, but not inside a call that makes an op.
void RawAssembly::blocked(TaskState& task, const Event& event) {
    if (task.accelerator_from) {
        return;
    }
    Op op;
    const bool stopped = event.nr == kNoCall && event.state == RAW_OFF_SLEEPING, continued = was_continued(event);
    op.kind = stopped && !continued ? OpKind::idle : OpKind::wait;
    op.arg = op.kind == OpKind::wait && event.nr != kNoCall ? class_of(event.nr) : 0;
    op.begin = std::max(event.begin, task.cursor);
    const int64_t end = event.wake > event.begin ? event.wake : event.end;
    op.duration = std::max<int64_t>(end - op.begin, 0);
    const RawOpRef self{task.id, put(task, op), op.begin, event.end, true, true};
    if (op.kind == OpKind::wait && !is_lock_wait(op.arg) && (continued || may_be_woken(event, event.nr))) {
        edges_.woken(self, event.waker);
    }
}

// Look it up now, not when the task's time is settled: by then another thread may have changed the mapping.
std::vector<RawAssembly::Place> RawAssembly::places(uint32_t pid, uint64_t address, uint32_t pages) {
    std::vector<Place> out;
    uint64_t at = address & ~uint64_t{kPage - 1};
    for (uint32_t i = 0; i < pages; ++i, at += kPage) {
        const auto where = assembler_.mapped_at(static_cast<int32_t>(pid), at);
        if (where.map == 0) {
            count(Count::faults_outside_mappings);
            continue;
        }
        Place* const last = out.empty() ? nullptr : &out.back();
        if (last && last->map == where.map && last->offset + int64_t{last->pages} * kPage == where.offset) {
            ++last->pages;
        } else {
            out.push_back({where.map, 1, where.offset});
        }
    }
    return out;
}

std::vector<RawAssembly::Place> RawAssembly::places_of_call(const raw_fault& record) {
    const auto where = assembler_.mapping_of(static_cast<int32_t>(record.head.pid), user_device(record.device),
                                             record.inode, static_cast<int64_t>(record.offset));
    if (where.map == 0) {
        count(Count::pages_of_calls_unplaced);
        return {};
    }
    return {{where.map, 1, where.offset}};
}

void RawAssembly::fault(const raw_fault& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    Event event;
    event.kind = Event::Kind::fault;
    event.begin = at(record.enter);
    event.end = at(record.head.time);
    // One fault may be recorded twice: by fault-around and by reading the page.
    if (event.begin <= task.last_fault || event.begin < task.cursor) {
        if (!task.events.empty() && task.events.back().begin == event.begin) {
            task.events.back().may_read |= record.major != 0;
        }
        return;
    }
    task.last_fault = event.begin;
    event.busy = event.end - event.begin;
    used_again_.faulted(task.pid, task.tid, record.address);
    event.places = record.address != 0 ? places(task.pid, record.address, 1) : places_of_call(record);
    event.write = (record.write & RAW_FAULT_WRITES) != 0;
    event.may_read = record.major != 0;
    if (event.may_read) {
        task.long_calls.add(event.begin, event.end);
    }
    note_unseen_writes(event, record.write);
    task.events.push_back(event);
    bound_events(task);
}

void RawAssembly::touches(const raw_touch& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    Event event;
    event.kind = Event::Kind::fault;
    event.begin = at(record.enter);
    event.end = std::max(at(record.end), event.begin);
    if ((record.write & RAW_FAULT_FOLIO) != 0) {
        return touched_folio(task, record);
    }
    if (event.begin <= task.last_fault || event.begin < task.cursor) {
        return;
    }
    task.last_fault = event.begin;
    event.busy = std::min<int64_t>(static_cast<int64_t>(record.busy), event.end - event.begin);
    used_again_.faulted(task.pid, task.tid, record.address);
    event.places = places(task.pid, record.address, std::min<uint32_t>(record.pages, 1 << 20));
    event.write = (record.write & RAW_FAULT_WRITES) != 0;
    note_unseen_writes(event, record.write);
    task.events.push_back(event);
    bound_events(task);
}

void RawAssembly::touched_folio(TaskState& task, const raw_touch& record) {
    const int64_t begin = at(record.enter);
    const auto found = std::find_if(task.events.rbegin(), task.events.rend(), [&](const Event& event) {
        return event.kind == Event::Kind::fault && event.begin == begin;
    });
    if (found != task.events.rend() && !found->places.empty()) {
        found->places = places(task.pid, record.address, std::min<uint32_t>(record.pages, 1 << 20));
        found->end = std::max(at(record.end), found->end);  // all of the fault, as they are mapped in its end
        found->busy = found->end - found->begin;
        count(Count::pages_written_along, record.pages - 1);
    }
}

void RawAssembly::note_unseen_writes(const Event& event, uint32_t how) {
    if ((how & RAW_FAULT_MEMORY) == 0 || event.write) {
        return;
    }
    for (const Place& place : event.places) {
        if (assembler_.writes_file(place.map)) {
            written_unseen_.insert(place.map);
        }
    }
}

bool RawAssembly::start_touch(TaskState& task, std::optional<Touch>& touch, const Event& event) {
    if (event.places.empty()) {
        return false;
    }
    for (const Place& place : event.places) {
        for (uint32_t i = 0; i < place.pages; ++i) {
            touch_page(task, touch, event, place.map, place.offset + int64_t{i} * kPage);
        }
    }
    touch->duration += event.busy;
    touch->last = event.end;
    touch->may_read = event.may_read;
    return true;
}

void RawAssembly::touch_page(TaskState& task, std::optional<Touch>& touch, const Event& event, uint32_t map,
                             int64_t offset) {
    const bool same = touch && touch->map == map && touch->write == event.write &&
                      event.begin - touch->last < kMergeFaults && touch->list.size() < 2 * kMostFaults;
    if (!same) {
        // Follows at once on the touch it is near to: the time between them counts after both, and must not count
        // twice.
        const bool joined = touch.has_value();
        end_touch(task, touch);
        touch.emplace();
        touch->map = map;
        touch->write = event.write;
        touch->begin = joined ? task.cursor : event.begin;
        touch->offset = touch->at = offset;
    }
    const int64_t skip = offset - touch->at;
    if (skip == 0 && !touch->list.empty()) {
        touch->list.back() += kPage;
    } else {
        touch->list.push_back(skip);
        touch->list.push_back(kPage);
    }
    touch->at = offset + kPage;
    touch->size = std::max(touch->size, touch->at - touch->offset);
    touch->last = event.begin;
}

void RawAssembly::end_touch(TaskState& task, std::optional<Touch>& touch) {
    if (!touch) {
        return;
    }
    Op op;
    op.kind = OpKind::touch;
    op.begin = std::max(touch->begin, task.cursor);
    op.duration = touch->duration;
    op.map = touch->map;
    op.offset = touch->offset;
    op.size = touch->size;
    op.flags = touch->write;
    if (touch->list.size() > 2) {
        op.list = touch->list;
    }
    put(task, op);
    touch.reset();
}

/// Runs along a task's events from where its last op ended, and gives out compute, waits and touches.
struct RawAssembly::Settling {
    RawAssembly& assembly;
    TaskState& task;
    int64_t now, from;  // `now` runs along; the last op ended at `from`
    int64_t worked;     // ns on the processor since `from`
    std::optional<Touch> touch{};
    int64_t fault_until = INT64_MIN;

    /// Compute up to `at` ends by then; it must not delay the next op.
    void flush(int64_t at) {
        if (touch) {
            assembly.end_touch(task, touch);
            from = std::max(from, task.cursor);
        }
        assembly.compute(task, from, std::min(worked, at - std::max(from, task.cursor)));
        worked = std::min<int64_t>(worked, 0);  // what was more than the compute here is of that around it
    }

    /// The recorder's own part of what came just before.
    void recorder(int64_t ns) {
        worked -= ns;
        assembly.taken_off_ += ns;
    }

    /// Off the processor between the faults of one record, or while the page that a fault waits for is read: the read
    /// begins when the fault is reported.
    bool belongs_to_fault(const Event& event) {
        if (event.kind != Event::Kind::off) {
            return false;
        }
        // Asking for much at once (read-ahead of megabytes) takes a while.
        const int64_t most = touch && event.for_io && touch->may_read ? kMostAsking : kMergeFaults;
        const bool reads_page = touch && outside_ops(event.nr) && event.state == RAW_OFF_UNINTERRUPTIBLE &&
                                event.begin >= touch->last && event.begin - touch->last < most;
        if (reads_page) {
            touch->duration += event.end - touch->last;
            touch->last = event.end;
        } else if (event.begin >= fault_until) {
            return false;
        } else if (event.state == RAW_OFF_RUNNABLE) {
            worked = std::max<int64_t>(worked - (std::min(event.end, fault_until) - event.begin), 0);
        }
        now = std::max(now, event.end);
        return true;
    }

    void fault(const Event& event) {
        const bool joins = touch && event.begin - touch->last < kMergeFaults;
        if (!joins) {
            flush(event.begin);
            from = task.cursor;
        }
        // Between the faults the task worked, and in those on mappings of the program's own.
        const bool kept = assembly.start_touch(task, touch, event);
        worked += event.end - event.begin - (kept ? event.busy : 0);
        recorder(assembly.facts_.costs.file_fault);
        fault_until = event.end;
    }

    void off(const Event& event) {
        task.accelerator_late += waited_for_processor(event);
        if (event.state != RAW_OFF_RUNNABLE) {
            flush(event.begin);
            assembly.blocked(task, event);
            from = std::max(event.end, task.cursor);
        }
        recorder(assembly.facts_.costs.off);
    }

    void take(const Event& event) {
        if (belongs_to_fault(event)) {
            return;
        }
        if (event.begin > now) {
            worked += event.begin - now;
            now = event.begin;
        }
        if (event.kind == Event::Kind::off) {
            off(event);
        } else if (event.kind == Event::Kind::fault) {
            fault(event);
        } else if (event.kind == Event::Kind::not_its_own) {
            worked -= event.busy;
        } else {
            flush(event.begin);
            assembly.asynchronous(task, event);
            from = std::max(now, task.cursor);
        }
        now = std::max(now, event.end);
    }
};

void RawAssembly::asynchronous(TaskState& task, const Event& event) {
    switch (event.kind) {
        case Event::Kind::submit: return submitted(task, event, event.begin);
        case Event::Kind::complete: return completed(task, event, event.begin);
        case Event::Kind::ring_call: return ring_called(task, event, task.cursor);
        case Event::Kind::off:
        case Event::Kind::fault:
        case Event::Kind::not_its_own: return;
    }
}

void RawAssembly::settle(TaskState& task, int64_t until) {
    until = task.in_library ? std::min(until, task.library_since) : until;
    if (!task.started) {
        // The time before a task's first event is unknown.
        task.started = true;
        task.cursor = until;
        for (const Event& event : task.events) {
            task.cursor = std::min(task.cursor, event.begin);
        }
    }
    auto& events = task.events;
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.begin < b.begin; });
    const int64_t recorders_own = task.owed + (task.after_call ? facts_.call_gap_ns : 0);
    Settling settling{*this, task, task.cursor, task.cursor, -recorders_own};
    task.after_call = false;
    task.owed = 0;
    size_t used = 0;
    for (; used < events.size() && events[used].begin < until; ++used) {
        settling.take(events[used]);
    }
    settling.worked += std::max<int64_t>(until - settling.now, 0);
    settling.flush(until);
    events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(used));
    task.cursor = std::max(task.cursor, until);
}

int64_t RawAssembly::before_call(TaskState& task, int64_t begin) {
    std::optional<Touch> touch;
    int64_t taken = 0;
    for (Event event : task.events) {
        if (event.kind != Event::Kind::fault) {
            continue;
        }
        const int64_t length = std::max<int64_t>(event.busy, 0);
        event.begin = begin + taken;
        event.end = event.begin + length;
        taken += length;
        start_touch(task, touch, event);
    }
    end_touch(task, touch);
    return taken;
}

void RawAssembly::after_call(TaskState& task, int64_t end) {
    task.cursor = std::max(task.cursor, end);
    task.after_call = true;
    for (const Event& event : task.events) {
        if (event.kind == Event::Kind::submit) {
            submitted(task, event, event.begin);
        }
        if (event.kind == Event::Kind::complete) {
            completed(task, event, event.begin);
        }
        if (event.kind == Event::Kind::ring_call) {
            ring_called(task, event, INT64_MIN);
        }
    }
    task.events.clear();
}

}  // namespace reprise
