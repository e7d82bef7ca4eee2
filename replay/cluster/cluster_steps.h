// SPDX-License-Identifier: MIT
// The steps of all copies in a cluster: where copies wait for each other, and how long steps took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "replay/cluster/cluster.h"
#include "replay/cluster/job_profile.h"

namespace reprise {

class ClusterSteps {
public:
    /// `tasks`: of all copies.
    ClusterSteps(const JobProfile& profile, const ClusterOptions& options, uint64_t copies, size_t tasks);

    uint64_t count() const { return expected_.size(); }
    double all_reduce_ns() const { return all_reduce_ns_; }

    /// A task has come to the end of its step. True: it goes on. False: it waits, until `go_on` gets it and when it
    /// goes on: with the last task of the step all do.
    template <class GoOn>
    bool end(uint64_t who, uint32_t step, double now, const GoOn& go_on) {
        note_end(who, step, now);
        if (!together_) {
            return true;
        }
        std::vector<std::pair<uint64_t, double>>& there = barriers_[step];
        there.emplace_back(who, now);
        if (there.size() < expected_[step]) {
            return false;
        }
        for (const auto& [waiter, since] : there) {
            waited_ns_ += now - since;
            go_on(waiter, now + all_reduce_ns_);
        }
        std::vector<std::pair<uint64_t, double>>().swap(there);
        return false;
    }

    /// Of all tasks: how long they waited for others at the ends of steps.
    double waited_ns() const { return waited_ns_; }
    /// Of all tasks: from the end of the first step to that of the last.
    double later_ns() const;

private:
    void note_end(uint64_t who, uint32_t step, double now);

    std::vector<uint64_t> expected_;                                  // by step: tasks that end it
    std::vector<std::vector<std::pair<uint64_t, double>>> barriers_;  // by step: who waits, and since when
    std::vector<double> first_end_, last_end_;                        // by task
    const double all_reduce_ns_;
    const bool together_;
    double waited_ns_ = 0;
};

}  // namespace reprise
