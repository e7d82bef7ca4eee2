// SPDX-License-Identifier: MIT
#include "replay/cluster/cluster_steps.h"

#include <algorithm>

namespace reprise {

ClusterSteps::ClusterSteps(const JobProfile& profile, const ClusterOptions& options, uint64_t copies, size_t tasks)
    : first_end_(tasks, 0.0),
      last_end_(tasks, 0.0),
      all_reduce_ns_(options.in_step ? options.network.all_reduce_ns(options.accelerators, options.hosts) : 0),
      together_(options.in_step && (copies > 1 || all_reduce_ns_ > 0)) {
    for (const ProfiledTask& task : profile.tasks) {
        const auto ends = static_cast<size_t>(
            std::count_if(task.segments.begin(), task.segments.end(), [](const Segment& s) { return s.step_end; }));
        expected_.resize(std::max(expected_.size(), ends), 0);
        for (size_t step = 0; step < ends; ++step) {
            expected_[step] += copies;
        }
    }
    barriers_.resize(expected_.size());
}

void ClusterSteps::note_end(uint64_t who, uint32_t step, double now) {
    if (step == 0) {
        first_end_[who] = now;
    }
    last_end_[who] = now;
}

double ClusterSteps::later_ns() const {
    double later = 0;
    for (size_t who = 0; who < last_end_.size(); ++who) {
        later += last_end_[who] - first_end_[who];
    }
    return later;
}

}  // namespace reprise
