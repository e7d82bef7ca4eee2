/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* How long a task was off the processor, told when it has one again. */
#ifndef REPRISE_CAPTURE_BPF_OFF_H
#define REPRISE_CAPTURE_BPF_OFF_H

#include "common.h"

static __always_inline int back_on(struct task_struct* task, struct task_state* state, __u64 now) {
    const __u32 sequence = state->sequence++;
    struct raw_switch* record = RESERVE(raw_switch);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_SWITCH, sizeof *record, sequence, now);
    record->head.pid = task->tgid;
    record->head.tid = task->pid;
    record->off = state->off;
    record->wake = state->wake;
    const bool woken = state->wake && state->waker_tid;
    record->waker_pid = woken ? state->waker_pid : 0;
    record->waker_tid = woken ? state->waker_tid : 0;
    record->waker_nr = woken ? state->waker_nr : NO_CALL;
    record->waker_enter = woken ? state->waker_enter : 0;
    record->nr = state->off_nr;
    record->state = state->off_state;
    record->in_iowait = state->off_iowait;
    if (woken && state->waker_deferred) {
        record->head.flags = RAW_FLAG_DEFERRED;
    }
    SUBMIT(record);
    state->off = 0;
    return 0;
}

/* Some kernels hide tasks (the agent of a virtual machine), and trace no switch from one of them to any other. A task
 * that got its processor from a hidden one is noticed when its call returns. */
static __noinline int back_on_unseen(struct task_struct* task, struct task_state* state) {
    return back_on(task, state, bpf_ktime_get_ns());
}

#endif
