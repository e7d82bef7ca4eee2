// SPDX-License-Identifier: MIT
// Edges across ranks: what tasks here publish and others wait for, and what others publish, as if it were published
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "replay/plan/elsewhere.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

class Mirror {
public:
    Mirror(const Plan& plan, SharedRun& run, std::span<const uint32_t> rank_of, uint32_t mine);

    using Tell = std::function<void(uint32_t rank, TaskId task, uint32_t published)>;
    /// Tells what has been published since the last look. True where there was something.
    bool look(const Tell& tell);
    /// Another rank's task has published.
    void heard(TaskId task, uint32_t published);
    /// Whether a task here waits for another rank now.
    bool waited_for() const { return run_.control().waits_elsewhere.load(std::memory_order_relaxed) != 0; }
    /// From here to awake(), tasks ring the bell (RunControl::bell) when there is something to tell and, with
    /// `also_waits`, when one begins to wait for another rank. False: there is something already.
    bool falls_asleep(bool also_waits);
    void awake();
    /// Ends the run here.
    void stop();

    SharedRun& run() { return run_; }

private:
    struct Told {
        TaskId task = 0;
        std::vector<std::pair<uint32_t, uint32_t>> told;
        size_t next = 0;
    };
    bool anything() const;

    const Plan& plan_;
    SharedRun& run_;
    std::vector<Told> told_;  // those with something left
};

}  // namespace reprise
