// SPDX-License-Identifier: MIT
#include "replay/predict/planned_job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "replay/plan/edges_rules.h"
#include "replay/plan/guards.h"
#include "replay/plan/one_lock.h"

namespace reprise {
namespace {

constexpr int64_t kLook = 1'000'000;  // ns: how often the job's memory is looked at

Plan planned(const LogReader& log, const OpFilter& filter, const AccessChange& access) {
    Plan plan = make_plan(log, filter, {}, true);
    find_locks(plan);
    find_guards(plan);
    if (access.any()) {
        plan.access = std::make_shared<const AccessPlan>(plan_access(plan, access));
    }
    return plan;
}

/// As a replay leaves it to the page cache, whatever the job held.
uint64_t least_cache(uint64_t limit) { return std::min(limit, std::max(uint64_t{8} << 20, limit / 20)); }

}  // namespace

PlannedJob::PlannedJob(const LogReader& log, const OpFilter& filter, const AccessChange& access)
    : plan(planned(log, filter, access)) {}

const std::optional<std::vector<HeldTotal>>& PlannedJob::held() const {
    if (!held_) {
        const std::optional<HeldMemories> held = held_memory(*plan.log);
        held_.emplace(held ? std::optional(total_held(*held)) : std::nullopt);
    }
    return *held_;
}

const JobMemory& PlannedJob::memory() const {
    if (!memory_) {
        memory_.emplace();
        memory_->held = held().value_or(std::vector<HeldTotal>());
        if (!memory_->held.empty()) {
            memory_->progress.emplace(*plan.log);
        }
    }
    return *memory_;
}

const MemoryTimes& PlannedJob::memory_times() const {
    if (!memory_times_) {
        memory_times_.emplace(plan);
    }
    return *memory_times_;
}

const RequestTimes& PlannedJob::request_times() const {
    if (!request_times_) {
        request_times_.emplace(plan);
    }
    return *request_times_;
}

RequestTimes::RequestTimes(const Plan& plan) {
    std::unordered_map<uint32_t, int64_t> begun;
    OpBlock block;
    for (const TaskPlan& task : plan.tasks) {
        for (const BlockInfo& where : task.blocks) {
            plan.log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
                if (row.is(Trait::submits)) {
                    begun[block.request[i]] = block.begin[i];
                } else if (row.is(Trait::completes)) {
                    took_[block.request[i]] = OpRef::end_of(block.begin[i], block.duration[i]);
                }
            }
        }
    }
    for (auto& [request, at] : took_) {
        const auto found = begun.find(request);
        at = found == begun.end() ? 0 : std::clamp<int64_t>(at - found->second, 0, int64_t{1} << 50);
    }
}

int64_t RequestTimes::of(uint32_t request) const {
    const auto found = took_.find(request);
    return found == took_.end() ? 0 : found->second;
}

bool RoomOverTime::changed(uint64_t done, int64_t now) {
    if (now < next_) {
        return false;
    }
    next_ = now + kLook;
    if (done != done_) {
        done_ = done;
        since_ = now;
    }
    const uint64_t held = job_.progress ? held_at(job_.held, job_.progress->time_at(done, now - since_)) : 0;
    const auto bytes = static_cast<int64_t>(std::max(limit_ - std::min(limit_, held), least_cache(limit_)));
    return std::exchange(bytes_, bytes) != bytes;
}

}  // namespace reprise
