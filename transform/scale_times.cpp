// SPDX-License-Identifier: MIT
#include "transform/scale_times.h"

#include <fcntl.h>

#include <algorithm>
#include <functional>

#include "formats/oplog/op_fields.h"

namespace reprise {
namespace {

/// Sources that began so much after what waits for them count as done: recorders are not more exact (ns).
constexpr int64_t kLittle = 2'000'000;

/// Instances that a replay opens; what order others need, messages tell.
bool is_opened(HandleKind kind) {
    return kind == HandleKind::file || kind == HandleKind::directory || kind == HandleKind::memfd;
}

int64_t sum(int64_t time, int64_t ns) { return end_of(time, ns); }

}  // namespace

ScaledTimes::ScaledTimes(const ScaleRecording& recording, const Tables& now) : now_(now) {
    const Tables& tables = recording.log().tables();
    handles_.resize(tables.handles.size());
    for (HandleId id = 1; id < handles_.size(); ++id) {
        if (is_opened(tables.handles[id].kind) && recording.handles()[id].uses.size() > 1) {
            handles_[id] = kTasks;
        }
    }
    for (uint32_t row = 1; row < recording.held().size(); ++row) {
        if (const HandleId id = recording.handle_of_held(row); handles_[id] != 0) {
            handles_[id] |= kProcesses;
        }
    }
    files_.resize(tables.files.size());
    for (FileId id = 1; id < files_.size(); ++id) {
        files_[id] = recording.files()[id].uses.size() > 1 ? kTasks : 0;
    }
    maps_.resize(recording.map_limit());
    for (const auto& [id, map] : recording.maps()) {
        maps_[id] = map.uses.size() > 1 ? kTasks : 0;
    }
}

void ScaledTimes::like(Flags& flags, uint32_t made, uint32_t recorded) {
    const uint8_t flag = recorded < flags.size() ? flags[recorded] : 0;
    if (flag != 0) {
        flags.resize(std::max<size_t>(flags.size(), size_t{made} + 1));
        flags[made] = flag;
    }
}

void ScaledTimes::arrange(MadeOps& made, const ScaledEdges& edges, bool goes_on) {
    made_ = &made;
    edges_ = &edges;
    run_ += goes_on ? 0 : 1;
    states_.resize(now_.tasks.size());
    begins_.resize(states_.size(), INT64_MIN);
    ends_.resize(states_.size(), INT64_MIN);
    for (State& state : states_) {
        state.next = 0;
        state.fresh = state.fresh || !goes_on;
    }
    events_.clear();
    for (TaskId task = 1; task < made.tasks(); ++task) {
        queue(task);
    }
    while (!events_.empty()) {
        std::pop_heap(events_.begin(), events_.end(), std::greater<>());
        const Event event = events_.back();
        events_.pop_back();
        if (event.ends) {
            end(event.task);
        } else {
            begin(event.task);
        }
        queue(event.task);
    }
}

void ScaledTimes::queue(TaskId task) {
    const State& state = states_[task];
    if (state.waits) {
        events_.push_back({state.wait_end, true, task});
    } else if (state.next < made_->of(task).size()) {
        events_.push_back({made_->of(task)[state.next].recorded, false, task});
    } else {
        return;
    }
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void ScaledTimes::begin(TaskId task) {
    State& state = states_[task];
    PieceOp& of = made_->of(task)[state.next];
    Op& op = of.op;
    const int64_t alone = op.begin;
    // What overlaps in the recording may overlap.
    op.begin = std::max(op.begin, state.fresh ? ends_[task] : std::min(state.end, sum(alone, state.push)));
    if (const auto spawned = spawned_.find(task); spawned != spawned_.end()) {
        op.begin = std::max(op.begin, after(spawned->second, of.recorded));
        spawned_.erase(spawned);
    }
    const bool waits = waits_for_edges(op.kind);
    op.begin = std::max({op.begin, begins_[task], after_accesses(task, of)});
    if (!waits) {
        op.begin = std::max(op.begin, after_edges(of, of.recorded));
    }
    begins_[task] = op.begin;
    state.push = distance_ns(alone, op.begin);
    state.end = end_of(op);
    state.fresh = false;
    state.waits = waits;
    ++state.next;
    of.later = distance_ns(of.recorded, op.begin);
    if (waits) {
        state.wait_end = sum(of.recorded, op.duration);
        return;  // `end` goes on
    }
    ends_[task] = std::max(ends_[task], state.end);
    remember(of);
    if (op.kind == OpKind::spawn && op.peer != 0) {
        remember(spawned_[op.peer], of);
    }
}

void ScaledTimes::end(TaskId task) {
    State& state = states_[task];
    PieceOp& of = made_->of(task)[state.next - 1];
    Op& op = of.op;
    // Who began later waits for less.
    const int64_t alone = distance_ns(state.push, sum(op.begin, op.duration));
    int64_t end = info(op.kind).is(Trait::waits) ? std::max(op.begin, alone) : sum(op.begin, op.duration);
    end = std::max(end, after_edges(of, state.wait_end));
    op.duration = op.duration < 0 ? op.duration : distance_ns(op.begin, end);
    state.push = distance_ns(alone, end);
    state.end = end;
    state.waits = false;
    ends_[task] = std::max(ends_[task], end);
    of.later = distance_ns(state.wait_end, end);
    list_accesses(task, of);
    remember(of);
}

int64_t ScaledTimes::after_edges(const PieceOp& op, int64_t until) const {
    int64_t time = op.after;
    for (const Edge& edge : op.edges) {
        if (edge.op >= edges_->base_of(edge.task)) {
            time = std::max(time, after(edge.task, static_cast<size_t>(edge.op - edges_->base_of(edge.task)), until));
        }
    }
    return time;
}

/// After an op of this passage.
int64_t ScaledTimes::after(TaskId task, size_t index, int64_t until) const {
    const State& state = states_[task];
    if (index >= made_->of(task).size()) {
        return INT64_MIN;
    }
    if (index >= state.next) {
        if (made_->of(task)[index].recorded - until > kLittle) {
            return INT64_MIN;  // against time in the recording, too
        }
        if (state.next == 0) {
            return ends_[task];
        }
        index = state.next - 1;
    }
    const PieceOp& source = made_->of(task)[index];
    const int64_t as_then = sum(until, source.later);
    return state.waits && index == state.next - 1 ? as_then : std::min(end_of(source.op), as_then);
}

int64_t ScaledTimes::after(const Accesses& of, int64_t until) const {
    if (of.run != run_) {
        return std::max(of.before, of.end);
    }
    return std::max(of.before, of.end == INT64_MIN ? INT64_MIN : std::min(of.end, sum(until, of.later)));
}

void ScaledTimes::list_accesses(TaskId task, const PieceOp& of) {
    accesses_.clear();
    const Op& op = of.op;
    const OpInfo& row = info(op.kind);
    const ProcessId process = now_.tasks[task].process;
    const auto add = [&](Key key, ProcessId by, uint32_t id, Mode mode) {
        accesses_.push_back({static_cast<uint64_t>(key) << 60 | uint64_t{by & 0x0fffffff} << 32 | id, mode});
    };
    const auto content = [&](HandleId handle, Mode mode) {
        if (handle != 0 && is(files_, now_.handles[handle].file, kTasks)) {
            add(Key::content, 0, now_.handles[handle].file, mode);
        }
    };
    for (const HandleId handle : {op.handle, op.handle2}) {
        if (!is(handles_, handle, kTasks)) {
            continue;
        }
        const bool makes = row.is(Trait::makes_handle), ends = row.is(Trait::ends_handle);
        add(Key::descriptor, process, handle, makes || ends || op.kind == OpKind::dup ? Mode::exclusive : Mode::use);
        if (row.is(Trait::moves) || op.kind == OpKind::lseek) {
            add(Key::position, 0, handle, Mode::exclusive);
        }
        if (is(handles_, handle, kProcesses)) {
            add(Key::instance, 0, handle, makes ? Mode::exclusive : Mode::use);
            if (makes || ends) {
                add(Key::descriptors, process, 0, Mode::use);
            }
        }
    }
    if (op.kind == OpKind::spawn && op.peer != 0 && now_.tasks[op.peer].process != process) {
        add(Key::descriptors, process, 0, Mode::exclusive);  // the child has what is open now
    }
    if (is(maps_, op.map, kTasks)) {
        const bool structural = op.kind == OpKind::mmap || op.kind == OpKind::munmap || op.kind == OpKind::mremap;
        add(Key::mapping, process, op.map, structural ? Mode::exclusive : Mode::use);
    }
    const bool creates = op.kind == OpKind::open && op.result >= 0 && (op.flags & O_CREAT) != 0;
    if (row.is(Trait::path)) {
        const bool changes = op.result >= 0 && (row.is(Trait::makes_name) || row.is(Trait::ends_name));
        for (const FileId file : {op.file, op.file2}) {
            if (is(files_, file, kTasks)) {
                add(Key::name, 0, file, creates || changes ? Mode::exclusive : Mode::use);
            }
        }
    }
    if (row.is(Trait::reads)) {
        content(op.handle, Mode::use);
    }
    if (row.is(Trait::writes)) {
        content(row.is(Trait::reads) ? op.handle2 : op.handle, Mode::produce);
    }
    if (op.kind == OpKind::ftruncate) {
        content(op.handle, Mode::exclusive);
    } else if ((creates || op.kind == OpKind::truncate) && is(files_, op.file, kTasks)) {
        add(Key::content, 0, op.file, Mode::exclusive);
    }
    if (op.kind == OpKind::flock && op.handle != 0) {
        add(Key::lock, 0, now_.handles[op.handle].file, Mode::exclusive);
    }
}

int64_t ScaledTimes::after_accesses(TaskId task, const PieceOp& op) {
    list_accesses(task, op);
    int64_t time = INT64_MIN;
    for (const Access& access : accesses_) {
        const auto found = resources_.find(access.key);
        if (found == resources_.end()) {
            continue;
        }
        time = std::max(time, after(found->second.exclusive, op.recorded));
        if (access.mode != Mode::produce) {
            time = std::max(time, after(found->second.produced, op.recorded));
        }
        if (access.mode == Mode::exclusive) {
            time = std::max(time, after(found->second.used, op.recorded));
        }
    }
    return time;
}

/// The accesses of an op that has its times now.
void ScaledTimes::remember(const PieceOp& op) {
    for (const Access& access : accesses_) {
        Resource& resource = resources_[access.key];
        switch (access.mode) {
            case Mode::use: remember(resource.used, op); break;
            case Mode::produce: remember(resource.produced, op); break;
            case Mode::exclusive: remember(resource.exclusive, op); break;
        }
    }
}

void ScaledTimes::remember(Accesses& of, const PieceOp& op) const {
    if (of.run != run_) {
        of = {run_, std::max(of.before, of.end), INT64_MIN, INT64_MIN};
    }
    of.end = std::max(of.end, end_of(op.op));
    of.later = std::max(of.later, op.later);
}

}  // namespace reprise
