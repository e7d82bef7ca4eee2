// SPDX-License-Identifier: MIT
#include "replay/run/live.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <utility>

#include "formats/support/quiet_thread.h"
#include "replay/plan/causal_step.h"
#include "replay/run/row_result.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 100ms;
constexpr int64_t kRest = 4;                    // times what a turn took: a fifth of a processor at most
constexpr uint64_t kMostOps = 1'000'000;        // in a turn
constexpr size_t kMostKept = size_t{64} << 20;  // bytes of decoded blocks that are not used up
constexpr size_t kOpBytes = 100;                // of a decoded op, about
constexpr uint64_t kFewOps = 4096;              // not worth decoding a block for again
constexpr int64_t kOften = 1'000'000'000;       // ns: but once in a while
constexpr int64_t kDeviceEvery = 500'000'000;   // ns

int64_t thread_cpu_ns() {
    timespec now{};
    return ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0 ? int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec : 0;
}

}  // namespace

/// How far a task has been followed.
struct LiveRun::Cursor {
    uint64_t next = 0;               // op
    size_t block = 0;                // of the task's blocks
    OpBlock kept;                    // that block, where it is decoded
    size_t kept_size = 0;            // bytes; 0: it is not
    int64_t visited = 0;             // ns: when it was decoded
    std::optional<CausalStep> step;  // causal
    size_t wait = 0;                 // in the waits of the task
    int64_t last_left = 0;           // when its last op was over, or it began
};

LiveRun::LiveRun(LiveSources from, std::function<void(const LiveFigures&)> tell)
    : from_(std::move(from)),
      tell_(std::move(tell)),
      cursors_(from_.plan.tasks.size()),
      until_(from_.plan.tasks.size()),
      sampled_(from_.plan.tasks.size()),
      reads_(from_.plan, from_.root.empty() ? std::nullopt : disk_of(from_.root), from_.group) {
    figures_.planned = from_.plan.ops;
    figures_.log_begin_ns = from_.plan.first_begin;
    figures_.cache = from_.cache;
    device_before_ = from_.root.empty() ? std::nullopt : read_device_counter(from_.root);
}

LiveRun::~LiveRun() { stop(); }

void LiveRun::start() {
    start_ = from_.run.control().start_ns;
    thread_ = quiet_thread("live figures", [this] { follow_until_told(); });
}

void LiveRun::stop() {
    if (!thread_.joinable()) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void LiveRun::follow_until_told() {
    // Whatever replays goes first.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
    std::unique_lock lock(mutex_);
    for (std::chrono::nanoseconds pause = kPause; !wake_.wait_for(lock, pause, [&] { return stop_; });) {
        const int64_t begun = thread_cpu_ns();
        turn(false);
        tell();
        pause = std::max<std::chrono::nanoseconds>(kPause, std::chrono::nanoseconds(kRest * (thread_cpu_ns() - begun)));
    }
}

void LiveRun::finish(int64_t most_ns) {
    if (!thread_.joinable()) {
        return;  // the run never began
    }
    stop();
    device_looked_ = 0;
    const int64_t until = monotonic_ns() + most_ns;
    do {
        turn(true);
    } while (figures_.uncounted != 0 && !broken_ && monotonic_ns() < until);
    for (const OpKind kind : polled_.left()) {
        ++figures_.kinds[static_cast<size_t>(kind)].mismatches;
    }
    tell();
}

/// One look at all tasks. Ops are counted once every task was seen to have passed them in an earlier look: then their
/// rows are whole, and so are those of whatever they waited for.
void LiveRun::turn(bool last) {
    from_.clock.add_now();
    from_.clock.catch_up(clock_);
    look_at_tasks();
    if (last) {
        until_ = sampled_;
    }
    uint64_t budget = kMostOps;
    const size_t tasks = from_.plan.tasks.size();
    TaskId task = next_;
    for (size_t i = 1; i < tasks && budget != 0 && !broken_; ++i, task = task + 1 < tasks ? task + 1 : 1) {
        const uint64_t from = cursors_[task] ? cursors_[task]->next : 0;
        if (until_[task] <= from) {
            continue;
        }
        try {
            budget -= std::min(budget, follow(task, std::min(until_[task], from + budget), last));
        } catch (const std::exception&) {
            broken_ = true;
        }
    }
    next_ = task;
    figures_.uncounted = 0;
    for (TaskId each = 1; each < tasks; ++each) {
        figures_.uncounted += sampled_[each] - (cursors_[each] ? cursors_[each]->next : 0);
    }
    look_at_devices();
}

void LiveRun::look_at_tasks() {
    figures_.passed = 0;
    figures_.lag_ns = 0;
    figures_.tasks = {};
    until_.swap(sampled_);
    for (TaskId task = 1; task < from_.plan.tasks.size(); ++task) {
        const TaskSlot& slot = from_.run.task(task);
        if (slot.elsewhere) {
            continue;
        }
        sampled_[task] = slot.done.load(std::memory_order_acquire);
        figures_.passed += sampled_[task];
        const TaskState state = slot.state.load(std::memory_order_relaxed);
        if (state == TaskState::running) {
            figures_.lag_ns = std::max(figures_.lag_ns, slot.lag_ns.load(std::memory_order_relaxed));
        }
        figures_.tasks[static_cast<size_t>(state)] += from_.plan.tasks[task].ops != 0 ? 1 : 0;
    }
    figures_.processes = 0;
    for (ProcessId process = 1; process < from_.plan.processes.size(); ++process) {
        figures_.processes += from_.run.process(process).state.load() == ProcessState::running ? 1 : 0;
    }
    figures_.elapsed_ns = monotonic_ns() - start_;
}

void LiveRun::look_at_devices() {
    const int64_t now = monotonic_ns();
    if (from_.root.empty() || now - device_looked_ < kDeviceEvery) {
        return;
    }
    device_looked_ = now;
    figures_.own_read = reads_.look(from_.run);
    if (const auto counter = device_before_ ? read_device_counter(from_.root) : std::nullopt) {
        figures_.device_read = counter->read_bytes - device_before_->read_bytes;
        figures_.device_written = counter->write_bytes - device_before_->write_bytes;
    }
}

void LiveRun::tell() {
    tell_(figures_);
    figures_.device_ops.clear();
}

/// Counts the ops of a task before `until`. How many there were.
uint64_t LiveRun::follow(TaskId task, uint64_t until, bool last) {
    const TaskPlan& plan = from_.plan.tasks[task];
    if (!cursors_[task]) {
        cursors_[task] = std::make_unique<Cursor>();
        const uint64_t spawned = from_.run.task(task).spawned_tick.load(std::memory_order_relaxed);
        cursors_[task]->last_left = spawned == 0 ? start_ : clock_.ns(spawned);
        if (from_.pace == Pace::causal) {
            cursors_[task]->step.emplace(from_.plan, task, from_.speeds, start_,
                                         spawned == 0 ? std::optional<int64_t>{} : clock_.ns(spawned));
        }
    }
    Cursor& cursor = *cursors_[task];
    const uint64_t from = cursor.next;
    while (cursor.next < until && cursor.block < plan.blocks.size()) {
        if (!load(cursor, task, until, last)) {
            break;
        }
        const OpBlock& block = cursor.kept_size != 0 ? cursor.kept : scratch_;
        const uint64_t end = block.first + block.count();
        for (; cursor.next < std::min(until, end); ++cursor.next) {
            count(cursor, task, block, cursor.next - block.first);
        }
        if (cursor.next == end) {
            ++cursor.block;
        }
        if (cursor.kept_size != 0 && (cursor.next == end || kept_ > kMostKept)) {
            kept_ -= std::exchange(cursor.kept_size, 0);
            cursor.kept = OpBlock();
        }
    }
    return cursor.next - from;
}

/// Decodes the cursor's block: into itself where it will be needed again. False where that is to wait.
bool LiveRun::load(Cursor& cursor, TaskId task, uint64_t until, bool last) {
    if (cursor.kept_size != 0) {
        return true;
    }
    const BlockInfo& where = from_.plan.tasks[task].blocks[cursor.block];
    const int64_t now = monotonic_ns();
    if (until >= where.first + where.ops || last) {
        from_.plan.log->decode(where, scratch_);
        return true;
    }
    if (until - cursor.next < kFewOps && now - cursor.visited < kOften) {
        return false;
    }
    cursor.visited = now;
    from_.plan.log->decode(where, cursor.kept);
    cursor.kept.drop_scratch();
    cursor.kept_size = cursor.kept.count() * kOpBytes;
    kept_ += cursor.kept_size;
    return true;
}

void LiveRun::count(Cursor& cursor, TaskId task, const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const SpoolRow& row = from_.run.spool(from_.plan.tasks[task].spool_first)[block.first + i];
    const RowResult result(row, kind, block.result[i]);
    LiveKind& of_kind = figures_.kinds[block.kind[i]];
    if (!result.performed) {
        ++figures_.left_out;
        if (result.reason == LeftOut::filter) {
            if (cursor.step) {
                cursor.step->left_out(block, i);
            }
            return;
        }
    }
    const int64_t begin = clock_.ns(row.begin & kSpoolTicks);
    const int64_t done = result.performed ? clock_.ns(row.end) : begin, end = std::max(done, begin);
    if (result.performed) {
        performed(cursor, task, block, i, begin, end);
        const OpInfo& of = info(kind);
        of_kind.errors += of.is(Trait::io) && is_error(result.actual) ? 1 : 0;
        const uint64_t bytes = result.actual > 0 ? static_cast<uint64_t>(result.actual) : 0;
        figures_.bytes_read += of.is(Trait::reads) ? bytes : 0;
        figures_.bytes_written += of.is(Trait::writes) ? bytes : 0;
    }
    if (info(kind).is(Trait::async)) {
        const int64_t moved = result.performed ? result.actual : 0;
        if (const auto request = request_bytes_.see(block, i, moved, result.own_reason)) {
            figures_.bytes_read += request->reads ? static_cast<uint64_t>(request->here) : 0;
            figures_.bytes_written += request->writes ? static_cast<uint64_t>(request->here) : 0;
        }
    }
    if (from_.pace != Pace::afap) {
        late(cursor, task, block, i, row, begin, done, result.performed);
    }
    polled_.see(block.handle[i], kind, block.offset[i], block.result[i]);
    if (!result.own_reason &&
        result_differs(kind, block, i, block.result[i], result.actual, listings_, from_.plan.tasks[task].looks) &&
        !polled_.keep(block.handle[i], kind, block.offset[i], block.result[i], result.actual, kind)) {
        ++of_kind.mismatches;
    }
}

void LiveRun::performed(const Cursor&, TaskId task, const OpBlock& block, size_t i, int64_t begin, int64_t end) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    LiveKind& of_kind = figures_.kinds[block.kind[i]];
    ++of_kind.ops;
    of_kind.duration.add(end - begin);
    const bool device = kind == OpKind::gpu_submit || kind == OpKind::marker;
    if (!device || from_.pace == Pace::afap || from_.plan.streams.empty()) {
        return;
    }
    Op op;
    op.kind = kind;
    op.begin = begin - start_ + from_.plan.first_begin;
    op.duration = end - begin;
    op.flags = block.flags[i];
    op.arg = block.arg[i];
    op.text = block.text[i];
    op.size = kind == OpKind::gpu_submit ? from_.speeds.busy(block.size[i]) : 0;
    figures_.device_ops.push_back({task, op});
}

/// As the collector has it.
void LiveRun::late(Cursor& cursor, TaskId task, const OpBlock& block, size_t i, const SpoolRow& row, int64_t begin,
                   int64_t done, bool performed) {
    if (from_.pace == Pace::timed) {
        if (performed) {
            const auto since = static_cast<double>(block.begin[i] - from_.plan.first_begin) * from_.speeds.time_scale;
            figures_.lateness.add(begin - start_ - static_cast<int64_t>(since));
        }
        return;
    }
    const Released by = released(cursor, task, block, i);
    const bool locked = (row.begin & kWaitedForLock) != 0;
    const int64_t due = cursor.step->due(block, i, locked ? std::max(by.before, begin) : by.before);
    const CausalRole role = cursor.step->issued(block, i, begin, performed);
    // The task did not wait for the result of a request.
    const int64_t left = cursor.step->beside() ? begin : std::max(done, begin);
    const bool in_row =
        role == CausalRole::drain || (by.inside != CausalStep::kNotKnown && cursor.step->over_on_arrival());
    cursor.step->ended(left, in_row ? done : by.inside);
    cursor.last_left = left;
    if (performed) {
        figures_.lateness.add(begin - due);
    }
}

/// When other tasks let a task go on.
LiveRun::Released LiveRun::released(Cursor& cursor, TaskId task, const OpBlock& block, size_t i) {
    const std::vector<WaitFor>& waits = from_.plan.tasks[task].waits;
    const uint64_t op = block.first + i;
    const bool inside = cursor.step->waits_inside(block, i);
    int64_t before = INT64_MIN, within = INT64_MIN;
    for (; cursor.wait < waits.size() && waits[cursor.wait].op <= op; ++cursor.wait) {
        const WaitFor& wait = waits[cursor.wait];
        const SpoolRow& source = from_.run.spool(from_.plan.tasks[wait.task].spool_first)[wait.source];
        const bool done = from_.run.task(wait.task).done.load(std::memory_order_acquire) > wait.source;
        const std::optional<uint64_t> tick = done ? let_go(source) : std::nullopt;
        const bool here = from_.plan.performs(from_.plan.tasks[wait.task].process);
        int64_t& last = inside && wait.op == op ? within : before;
        last = std::max(last, tick ? clock_.ns(*tick) : INT64_MIN);
        within = here || &last != &within ? within : CausalStep::kNotKnown;
    }
    // What was done before the task got there did not hold it up.
    return {before > cursor.last_left ? before : INT64_MIN, within == INT64_MIN ? CausalStep::kNotKnown : within};
}

}  // namespace reprise
