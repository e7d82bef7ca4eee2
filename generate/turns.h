// SPDX-License-Identifier: MIT
// Samples of several loaders that are taken in turn, as tf.data takes records of interleaved files: none of them gets
// ahead of the others, however much faster the storage serves it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "generate/task_writer.h"

namespace reprise {

class Turns {
public:
    /// `taker`: the task that takes them.
    Turns(const TaskWriter& taker, size_t loaders) : taker(taker), loaders_(loaders) {}

    void begin_epoch() {
        rounds_.clear();
        gone_ = 0;
        gated_ = false;
    }
    /// A loader is done with sample number `sample` of the epoch.
    void loaded(uint64_t sample, const TaskMoment& moment) {
        if (sample % loaders_ == 0) {
            rounds_.emplace_back(loaders_);
        }
        rounds_.back()[sample % loaders_] = moment;
    }
    /// When a loader may read on for that sample; not set: at once.
    TaskMoment place_for(uint64_t sample) {
        const uint64_t round = sample / loaders_;
        if (round < kKept) {
            return {};
        }
        const uint64_t taken = round - kKept;
        while (gone_ < taken) {
            rounds_.pop_front();
            ++gone_;
        }
        if (!gated_ || gate_ < taken) {
            taker.wait_for(rounds_.front());
            gate_ = taken;
            gated_ = true;
        }
        return taker.last();
    }

    TaskWriter taker;

private:
    static constexpr uint64_t kKept = 2;  // samples of each loader, which were not taken yet

    size_t loaders_;
    std::deque<std::vector<TaskMoment>> rounds_;  // moments at which each loader was done with its sample
    uint64_t gone_ = 0, gate_ = 0;                // rounds before the first of these; the last that was waited for
    bool gated_ = false;
};

}  // namespace reprise
