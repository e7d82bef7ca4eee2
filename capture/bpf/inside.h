/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Numbers inside PID namespaces: wait4 and waitid tell who ended by its number where the waiting task lives, and by
 * the time they return nobody has that number any more. */
#ifndef REPRISE_CAPTURE_INSIDE_H
#define REPRISE_CAPTURE_INSIDE_H

#include "common.h"

#define MOST_LEVELS 32 /* the kernel's own limit, MAX_PID_NS_LEVEL */

struct inside_key {
    __u64 space; /* address of the namespace */
    __u32 number, pad;
};

/* By its number inside: the number in the initial namespace of a process that ended and may be waited for. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct inside_key);
    __type(value, __u32);
} ended_inside SEC(".maps");

static __always_inline struct upid* number_at(struct pid* pid, __u32 level) {
    return (struct upid*)((char*)&pid->numbers + level * bpf_core_type_size(struct upid));
}

/* Of a process that begins (`ended` 0: whoever had its numbers before is forgotten) or ends. */
static __always_inline void note_inside(struct task_struct* task, bool ended) {
    struct pid* pid = BPF_CORE_READ(task, thread_pid);
    const __u32 levels = BPF_CORE_READ(pid, level);
    const __u32 number = task->pid;
    for (__u32 level = 1; level <= MOST_LEVELS && level <= levels; ++level) {
        struct upid* inside = number_at(pid, level);
        const struct inside_key key = {.space = (__u64)BPF_CORE_READ(inside, ns), .number = BPF_CORE_READ(inside, nr)};
        if (ended) {
            bpf_map_update_elem(&ended_inside, &key, &number, 0);
        } else {
            bpf_map_delete_elem(&ended_inside, &key);
        }
    }
}

/* Who ended as `number` where the current task lives; 0: unknown, or it lives in the initial namespace. */
static __always_inline __u32 who_ended(struct task_struct* task, __u32 number) {
    struct pid* pid = BPF_CORE_READ(task, thread_pid);
    const __u32 level = BPF_CORE_READ(pid, level);
    if (level == 0 || level > MOST_LEVELS) {
        return 0;
    }
    struct upid* own = number_at(pid, level);
    const struct inside_key key = {.space = (__u64)BPF_CORE_READ(own, ns), .number = number};
    const __u32* found = bpf_map_lookup_elem(&ended_inside, &key);
    return found ? *found : 0;
}

#endif
