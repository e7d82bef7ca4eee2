// SPDX-License-Identifier: MIT
#include "generate/training_notes.h"

#include "formats/support/quantity.h"

namespace reprise {

std::string fewer_steps(const TrainingJob& job, uint64_t steps) {
    return !job.steps || *job.steps == steps
               ? ""
               : "makes " + counted(steps, "step") + ", not the " + format_count(*job.steps) +
                     " of steps=: " + counted(job.epochs, "epoch") + " of " + format_count(job.steps_per_epoch()) +
                     (job.epochs == 1 ? " has" : " have") + " no more";
}

std::string no_checkpoint(const TrainingJob& job, uint64_t steps) {
    if (job.checkpoint_steps == 0 && job.checkpoint_epochs == 0) {
        return {};
    }
    const bool by_steps = job.checkpoint_steps != 0;
    const std::string every =
        by_steps ? std::to_string(job.checkpoint_steps)
                 : std::to_string(job.checkpoint_epochs) + (job.checkpoint_epochs == 1 ? "epoch" : "epochs");
    const std::string has = by_steps ? counted(steps, "step") : counted(steps / job.steps_per_epoch(), "whole epoch");
    return "writes no checkpoint: checkpoint_every=" + every + ", and the job has " + has;
}

}  // namespace reprise
