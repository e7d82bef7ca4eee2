// SPDX-License-Identifier: MIT
#include "replay/run/critical_path.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr int kBits = 31;  // of each part
constexpr int64_t kMost = (int64_t{1} << (kBits - 1)) - 1;

int64_t part(int64_t ns) { return std::clamp(ns / PathRow::kUnit, -kMost, kMost); }

/// The wait of op `op` that was over last.
const WaitFor* last_released(const TaskPlan& task, uint64_t op, const std::function<int64_t(const WaitFor&)>& ended) {
    const auto first =
        std::partition_point(task.waits.begin(), task.waits.end(), [&](const WaitFor& wait) { return wait.op < op; });
    const WaitFor* last = nullptr;
    int64_t at = INT64_MIN;
    for (auto wait = first; wait != task.waits.end() && wait->op == op; ++wait) {
        if (const int64_t end = ended(*wait); end > at) {
            at = end;
            last = &*wait;
        }
    }
    return last;
}

}  // namespace

int64_t PathRow::pack() const {
    return part(added_ns) * (int64_t{1} << (kBits + 1)) + (part(behind_ns) * 2 & ((int64_t{1} << (kBits + 1)) - 1)) +
           (released ? 1 : 0);
}

PathRow PathRow::unpack(int64_t packed) {
    PathRow row;
    row.released = (packed & 1) != 0;
    row.added_ns = (packed >> (kBits + 1)) * kUnit;
    // The sign of the lower part is its highest bit.
    row.behind_ns = (static_cast<int64_t>(static_cast<uint64_t>(packed) << (64 - kBits - 1)) >> (64 - kBits)) * kUnit;
    return row;
}

namespace {

/// Walks the path back, and gives each stretch of time to a part.
class Walk {
public:
    Walk(const Plan& plan, SharedRun& run, const FinishedRun& finished) : plan_(plan), run_(run), finished_(finished) {}

    CriticalPath from(TaskId task, uint64_t op) {
        const SpoolRow& last = row(task, op);
        at_ = end_of(last);
        out_.added_ns = path_of(last).behind_ns;
        bool begun = false;  // the path came from the begin of the op, not from its end
        for (uint64_t steps = 0; steps <= plan_.ops; ++steps) {
            const TaskPlan& here = plan_.tasks[task];
            const SpoolRow& spool = row(task, op);
            const PathRow path = path_of(spool);
            out_.added_ns += begun ? 0 : path.added_ns;
            begun = false;
            const WaitFor* const wait = path.released ? last_released(here, op, finished_.ended) : nullptr;
            const int64_t released = wait == nullptr ? INT64_MIN : finished_.ended(*wait);
            cut_ = plan_.helpers.is_cut(task);
            passed(spool, released);
            const bool elsewhere = path.released && (wait == nullptr ? waits_elsewhere(here, op) : !performs(*wait));
            if (wait != nullptr) {
                doubtful(*wait, task, op, released);
                spend(PathPart::call, released);
            }
            if (elsewhere) {  // the path of the other rank is that rank's: this one goes on in the task that waited
                const bool within = begin_of(spool) < released || part_of(spool.end) == PathPart::ranks;
                spend(PathPart::ranks, within ? begin_of(spool) : left_before(task, op));
            }
            if (wait != nullptr && !elsewhere) {
                task = wait->task;
                op = wait->source;
                out_.added_ns += path_of(row(task, op)).behind_ns;
            } else if (op != 0) {
                --op;
            } else if (here.spawner != 0 && performs(here.spawner)) {
                op = here.spawn_op;
                task = here.spawner;
                out_.added_ns += path_of(row(task, op)).behind_ns;
                begun = true;
            } else {
                break;
            }
        }
        spend(PathPart::call, finished_.start_ns);
        return out_;
    }

private:
    const SpoolRow& row(TaskId task, uint64_t op) { return run_.spool(plan_.tasks[task].spool_first)[op]; }
    static bool performed(const SpoolRow& row) { return (row.begin & kNotPerformed) == 0; }
    static PathRow path_of(const SpoolRow& row) { return performed(row) ? PathRow::unpack(row.result) : PathRow{}; }
    int64_t begin_of(const SpoolRow& row) const { return finished_.ns(row.begin & kSpoolTicks); }
    int64_t end_of(const SpoolRow& row) const {
        return performed(row) ? finished_.ns(row.end & kSpoolEndTicks) : finished_.start_ns;
    }

    /// Whether the op waited for one that another rank performs, before it was issued or within.
    bool waits_elsewhere(const TaskPlan& task, uint64_t op) const {
        const auto first = std::partition_point(task.waits.begin(), task.waits.end(),
                                                [&](const WaitFor& wait) { return wait.op < op; });
        const auto after = std::find_if(first, task.waits.end(), [&](const WaitFor& wait) { return wait.op != op; });
        return std::any_of(first, after, [&](const WaitFor& wait) { return !performs(wait); });
    }
    bool performs(TaskId task) const { return plan_.performs(plan_.tasks[task].process); }
    bool performs(const WaitFor& wait) const { return performs(wait.task); }
    /// When the last op was over that the task performed before `op`.
    int64_t left_before(TaskId task, uint64_t op) {
        while (op > 0) {
            if (const SpoolRow& before = row(task, --op); performed(before)) {
                return end_of(before);
            }
        }
        return finished_.start_ns;
    }

    /// The time from `from` to where the walk is.
    void spend(PathPart part, int64_t from) {
        if (from < at_) {
            const int64_t ns = at_ - std::max(from, finished_.start_ns);
            out_.times.of(part) += ns;
            out_.times.cut_ns += cut_ ? ns : 0;
            at_ = std::max(from, finished_.start_ns);
        }
    }
    void passed(const SpoolRow& row, int64_t released) {
        if (performed(row)) {
            spend(PathPart::call, end_of(row));
            spend(part_of(row.end), std::max(begin_of(row), released));
        }
    }
    /// Without the edge, the task would have gone on after its last op.
    void doubtful(const WaitFor& wait, TaskId task, uint64_t op, int64_t released) {
        if (wait.kind != EdgeKind::queue || !finished_.doubt || op == 0) {
            return;
        }
        const SpoolRow& before = row(task, op - 1);
        if (performed(before)) {
            const int64_t held = std::max<int64_t>(released - end_of(before), 0);
            out_.times.doubtful_ns += static_cast<double>(held) * finished_.doubt(task);
        }
    }

    const Plan& plan_;
    SharedRun& run_;
    const FinishedRun& finished_;
    int64_t at_ = 0;
    bool cut_ = false;  // a signal ended the task
    CriticalPath out_;
};

}  // namespace

CriticalPath critical_path(const Plan& plan, SharedRun& run, TaskId task, uint64_t last, const FinishedRun& finished) {
    return Walk(plan, run, finished).from(task, last);
}

}  // namespace reprise
