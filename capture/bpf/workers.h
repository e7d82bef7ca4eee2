/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What a call leaves to the kernel's workers: who is woken by one is woken by that call. What is written to a terminal
 * reaches its reader that way. */
#ifndef REPRISE_CAPTURE_WORKERS_H
#define REPRISE_CAPTURE_WORKERS_H

#include "common.h"

#define IS_WORKER 0x20 /* PF_WQ_WORKER */

struct waking_call {
    __u64 enter;
    __u32 pid, tid;
    __u32 nr, pad;
};

/* By the work's address: who asked for it. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, __u64);
    __type(value, struct waking_call);
} asked_work SEC(".maps");

/* By the worker's number: whose work it does just now. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32);
    __type(value, struct waking_call);
} workers SEC(".maps");

SEC(HOOK "workqueue_queue_work")
int BPF_PROG(work_asked, unsigned int cpu, void* queue, void* work) {
    struct task_struct* task = bpf_get_current_task_btf();
    const struct task_state* state = state_of(task);
    const __u64 key = (__u64)work;
    if (!state || !state->enter || !(rules[state->nr & (CALL_LIMIT - 1)].flags & RULE_WAKES)) {
        return 0;
    }
    const struct waking_call call = {.enter = state->enter, .pid = task->tgid, .tid = task->pid, .nr = state->nr};
    bpf_map_update_elem(&asked_work, &key, &call, 0);
    return 0;
}

SEC(HOOK "workqueue_execute_start")
int BPF_PROG(work_begins, void* work) {
    const __u64 key = (__u64)work;
    const struct waking_call* asked = bpf_map_lookup_elem(&asked_work, &key);
    if (asked) {
        const struct waking_call call = *asked;
        const __u32 worker = bpf_get_current_task_btf()->pid;
        bpf_map_update_elem(&workers, &worker, &call, 0);
        bpf_map_delete_elem(&asked_work, &key);
    }
    return 0;
}

SEC(HOOK "workqueue_execute_end")
int BPF_PROG(work_ends, void* work) {
    const __u32 worker = bpf_get_current_task_btf()->pid;
    bpf_map_delete_elem(&workers, &worker);
    return 0;
}

/* For whom the current task works; 0: for nobody who is recorded. */
static __always_inline const struct waking_call* works_for(struct task_struct* task) {
    const __u32 worker = task->pid;
    return task->flags & IS_WORKER ? bpf_map_lookup_elem(&workers, &worker) : 0;
}

#endif
