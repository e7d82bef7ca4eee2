// SPDX-License-Identifier: MIT
// The loop of a recorded training job: its ranks, who loads for them, and every batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/job_trace.h"

namespace reprise {

/// One batch of a rank, from its loading to its end.
struct BatchLoad {
    uint32_t epoch = 0;
    uint64_t number = 0;              // in the epoch, of that rank
    TaskId loader = 0;                // 0: not known
    uint64_t first = 0, last = 0;     // its ops that load the batch
    int64_t begins = 0;               // ns, of the first that reads or marks
    uint64_t taken = 0, until = 0;    // the rank's ops of the step: from the batch on, before the next is asked for
    int64_t taken_at = 0;             // ns
    std::optional<int64_t> asked_at;  // ns, when the loader was sent a message for it
    std::optional<uint64_t> lag;      // the batch whose taking let the loader begin, so many batches before this one
};

struct RankLoop {
    TaskId task = 0;
    std::vector<TaskId> loaders;  // none: the rank loads itself
    uint64_t idle_loaders = 0;    // more that never had a batch
    std::vector<BatchLoad> batches;
    std::vector<uint64_t> epoch_begins, epoch_ends;  // ops that mark them
    std::vector<uint64_t> step_ends;                 // ops that mark them, or with which a batch is taken
};

struct TrainingLoop {
    /// By what steps are known.
    enum class By : uint8_t { step_marks, batch_marks, accelerator, hand_overs } by = By::step_marks;
    std::vector<RankLoop> ranks;
    uint64_t epochs = 1;
    bool epochs_marked = false;
    bool asked = true;  // each batch that is handed over was asked for by a message: what it holds is certain

    uint64_t batches() const;
    /// Batches of each full epoch of a rank; the most that an epoch has.
    uint64_t batches_per_epoch() const;
};

/// Throws Error (bad_input), which says why, where nothing in the log tells of steps. `name`: of the log.
TrainingLoop find_training_loop(const JobTrace& trace, const std::string& name);

struct LoaderCount {
    uint64_t of_epoch = 0;   // of a rank, that had batches in one epoch
    uint64_t at_once = 0;    // ... that were there at the same time
    bool processes = false;  // not threads of the rank's

    /// New ones may come for each epoch, and old ones may stay for a loop of another kind.
    uint64_t workers() const { return std::min(of_epoch, at_once); }
};
LoaderCount count_loaders(const JobTrace& trace, const TrainingLoop& loop);

// Its parts.

/// Epochs by their marks, numbers, and when each batch began and was taken.
void number_batches(const JobTrace& trace, RankLoop& rank);
/// Epochs where none are marked, what held loaders back, and loaders that never had a batch.
void finish_loop(const JobTrace& trace, TrainingLoop& loop);

}  // namespace reprise
