// SPDX-License-Identifier: MIT
#include "replay/plan/polled_jobs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/oplog/op_fields.h"
#include "replay/plan/edges_rules.h"

namespace reprise {
namespace {

/// Of all requests, so many were made while the thread computed that made them, and while no other one did so often.
constexpr double kMostly = 0.9, kSome = 0.5;

struct Event {
    uint64_t op = 0;
    int64_t begin = 0, end = 0;
    OpKind kind = OpKind::compute;
};
struct Computed {
    Event op;
    size_t first = 0, last = 0;  // of the events of the kernel's thread, the request and the event
};

template <class Use>
void each_op(const Plan& plan, TaskId task, const Use& use) {
    OpBlock block;
    for (const BlockInfo& where : plan.tasks[task].blocks) {
        plan.log->decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
            use(Event{block.first + i, block.begin[i], OpRef::end_of(block.begin[i], block.duration[i]),
                      static_cast<OpKind>(block.kind[i])},
                row);
        }
        plan.log->forget(where);
    }
}

/// Computing of the task during which the kernel's thread took requests, and how many those are. It lasts until the
/// next op: its duration has no time in which another task had the processor.
std::vector<Computed> computed_beside(const Plan& plan, TaskId task, const std::vector<Event>& events,
                                      size_t& requests) {
    std::vector<Computed> found;
    size_t at = 0;
    requests = 0;
    Event last;
    bool computes = false;
    const auto over = [&](int64_t end) {
        while (at < events.size() && events[at].begin < last.begin) {
            ++at;
        }
        Computed beside{{last.op, last.begin, end, last.kind}, events.size(), 0};
        for (; at < events.size() && events[at].begin <= end; ++at) {
            if (info(events[at].kind).is(Trait::submits)) {
                beside.first = std::min(beside.first, at);
                ++requests;
            }
            beside.last = at;
        }
        if (beside.first != events.size()) {
            found.push_back(beside);
        }
    };
    each_op(plan, task, [&](const Event& op, const OpInfo&) {
        if (computes) {
            over(std::max(last.end, op.begin));
        }
        last = op;
        computes = op.kind == OpKind::compute;
    });
    if (computes) {
        over(last.end);
    }
    return found;
}

class PolledJob {
public:
    PolledJob(Plan& plan, TaskId kernel, TaskId job) : plan_(plan), kernel_(kernel), job_(job) {}

    void join(const std::vector<Computed>& computed, const std::vector<Event>& events,
              const std::vector<Event>& kernel_computes) {
        for (const Computed& each : computed) {
            wait(job_, each.op.op, kernel_, events[each.last].op);
            look(job_, each.op.op, distance_ns(events[each.last].begin, each.op.end));
            if (each.op.op == 0) {
                continue;
            }
            const Event& first = events[each.first];
            wait(kernel_, first.op, job_, each.op.op - 1);
            // What the kernel's thread did until the job got there is the job's.
            int64_t own = std::max<int64_t>(distance_ns(each.op.begin, first.begin), 0);
            auto before = std::upper_bound(kernel_computes.begin(), kernel_computes.end(), first.op,
                                           [](uint64_t op, const Event& one) { return op < one.op; });
            for (uint64_t op = first.op; before != kernel_computes.begin() && (before - 1)->op + 1 == op; --op) {
                --before;
                const int64_t ns = std::max<int64_t>(distance_ns(before->begin, before->end), 0);
                look(kernel_, before->op, std::min(own, ns));
                own = std::max<int64_t>(own - ns, 0);
            }
        }
        for (const TaskId task : {kernel_, job_}) {
            auto& looks = plan_.tasks[task].requests.looks;
            std::stable_sort(looks.begin(), looks.end(), [](const auto& a, const auto& b) { return a.op < b.op; });
            const auto same = [](const auto& a, const auto& b) { return a.op == b.op; };
            looks.erase(std::unique(looks.begin(), looks.end(), same), looks.end());
        }
    }

private:
    void wait(TaskId task, uint64_t op, TaskId source, uint64_t of) {
        plan_.tasks[task].waits.push_back({op, of, source, 0, EdgeKind::wake});
        ++plan_.edges_by_kind[static_cast<size_t>(EdgeKind::wake)];
    }
    void look(TaskId task, uint64_t op, int64_t own_ns) {
        plan_.tasks[task].requests.looks.push_back({op, std::max<int64_t>(own_ns, 0)});
    }

    Plan& plan_;
    const TaskId kernel_, job_;
};

bool join_ring(Plan& plan, RequestRing& ring, uint32_t number) {
    TaskId kernel = 0;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        for (const auto& [op, own] : plan.tasks[task].requests.rings) {
            if (own == number && kernel != task) {
                if (kernel != 0) {
                    return false;
                }
                kernel = task;
            }
        }
    }
    if (kernel == 0 || plan.tasks[kernel].process != ring.process) {
        return false;
    }
    std::vector<Event> events, computes;
    size_t made = 0;
    each_op(plan, kernel, [&](const Event& op, const OpInfo& row) {
        if (op.kind == OpKind::compute) {
            computes.push_back(op);
        } else if (row.is(Trait::submits) || row.is(Trait::completes)) {
            made += row.is(Trait::submits) ? 1 : 0;
            events.push_back(op);
        }
    });
    std::vector<Computed> most;
    TaskId job = 0;
    size_t best = 0, second = 0;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        if (task == kernel || plan.tasks[task].process != ring.process) {
            continue;
        }
        size_t requests = 0;
        std::vector<Computed> found = computed_beside(plan, task, events, requests);
        if (requests > best) {
            second = std::exchange(best, requests);
            most = std::move(found);
            job = task;
        } else {
            second = std::max(second, requests);
        }
    }
    const auto all = static_cast<double>(made);
    if (static_cast<double>(best) < kMostly * all || static_cast<double>(second) > kSome * all || job == 0) {
        return false;
    }
    PolledJob(plan, kernel, job).join(most, events, computes);
    ring.looker = job;
    return true;
}

}  // namespace

void join_polled_jobs(Plan& plan) {
    bool any = false;
    for (uint32_t number = 0; number < plan.rings.size(); ++number) {
        RequestRing& ring = plan.rings[number];
        any = (ring.polled && ring.looked_ns > 0 && join_ring(plan, ring, number)) || any;
    }
    if (any) {
        number_sources(plan);
    }
}

}  // namespace reprise
