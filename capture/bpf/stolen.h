/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the host took from a task: on a virtual machine the processor may stand still while a task has it. The
 * scheduler knows how long in all. It is neither the task's computing nor any wait the kernel sees, so it is told where
 * it is noticed. */
#ifndef REPRISE_CAPTURE_STOLEN_H
#define REPRISE_CAPTURE_STOLEN_H

#include "common.h"

#define STOLEN_LEAST 10000 /* ns; less is told with what comes later */

/* As the scheduler of the task's processor last saw it: at the latest switch or tick, which comes at once where the
 * processor goes on after standing still. */
static __always_inline bool tells_stolen(void) {
    return bpf_core_field_exists(((struct cfs_rq*)0)->rq) && bpf_core_field_exists(((struct rq*)0)->prev_steal_time_rq);
}
static __always_inline __u64 stolen_here(struct task_struct* task) { return task->se.cfs_rq->rq->prev_steal_time_rq; }

static __noinline int send_stolen(struct task_state* state, __u64 stolen) {
    const __u32 sequence = state->sequence++;
    struct raw_stolen* record = RESERVE(raw_stolen);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_STOLEN, sizeof *record, sequence, bpf_ktime_get_ns());
    record->stolen = stolen;
    SUBMIT(record);
    return 0;
}

/* What is stolen from here on concerns the task; before it, a call of its or another task. */
static __always_inline void stolen_from_here(struct task_struct* task, struct task_state* state) {
    if (tells_stolen()) {
        state->stolen = stolen_here(task);
    }
}

/* The task has run in its own code until now. */
static __always_inline void settle_stolen(struct task_struct* task, struct task_state* state) {
    if (!tells_stolen()) {
        return;
    }
    const __u64 here = stolen_here(task);
    const __u64 stolen = here - state->stolen;
    if (stolen < STOLEN_LEAST) {
        return;
    }
    /* A task whose first look this is has no earlier one to compare with. */
    if (state->stolen) {
        send_stolen(state, stolen);
    }
    state->stolen = here;
}

#endif
