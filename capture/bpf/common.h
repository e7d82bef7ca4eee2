/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Settings, maps and the small change every program uses. */
#ifndef REPRISE_CAPTURE_COMMON_H
#define REPRISE_CAPTURE_COMMON_H

#include "kernel.h"
/* after the types */
#include "shared.h"

/* Set by the loader before the programs are loaded; the verifier drops what they switch off. */
const volatile struct call_rule rules[CALL_LIMIT] = {};
const volatile bool use_cast = 1;        /* bpf_rdonly_cast is there: plain loads instead of probe reads */
const volatile bool switch_state = 1;    /* sched_switch passes the previous state (5.18) */
const volatile bool exit_group_dead = 1; /* sched_process_exit passes whether it is the last thread (6.16) */
const volatile bool want_pagecache = 0;
const volatile bool want_cgroups = 0;
const volatile __u32 page_bytes = 4096;

__u64 counters[COUNT_LIMIT] = {};
volatile struct page_cost page_costs[PAGE_KINDS] = {};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 32 << 20);
} ring SEC(".maps");

/* The programs are made twice. As tp_btf their arguments are typed, and what they keep of a task hangs on the task. As
 * raw tracepoints, where a machine refuses the others, arguments are plain numbers, and no task but the current one can
 * be given to the helpers of task storage: there the states are in a table by the task's address. */
#ifdef REPRISE_RAW_TRACEPOINTS
#define HOOK "raw_tp/"
#define TYPED(pointer, type) pointer = CAST(pointer, type)
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u64);
    __type(value, struct task_state);
} tasks SEC(".maps");
#else
#define HOOK "tp_btf/"
#define TYPED(pointer, type)
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task_state);
} tasks SEC(".maps");
#endif

/* Where a process has files mapped shared (shared_maps.h). */
#define SHARED_RANGES 8
struct shared_ranges {
    __u32 used, pad;
    struct {
        __u64 from, to;
    } range[SHARED_RANGES];
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 16384);
    __type(key, __u32); /* process */
    __type(value, struct shared_ranges);
} shared_maps SEC(".maps");
__u64 shared_made = 0; /* any process has had one */

/* Records are composed here. Programs of one CPU do not interrupt each other here: tracepoints of calls and of tasks
 * run with preemption off, and those of interrupts do not use it. */
#define SCRATCH_LIMIT 0x10000
#define SCRATCH_MARGIN 0x4000 /* any one part is smaller */
struct scratch {
    __u8 record[SCRATCH_LIMIT + SCRATCH_MARGIN];
    __u8 list[0x8000]; /* user lists before they are taken apart */
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY); /* per-CPU values may not be this large; one for each processor (loader) */
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, struct file_key);
    __type(value, __u8);
} files SEC(".maps");

extern void* bpf_rdonly_cast(const void* object, __u32 type_id) __ksym __weak;

#define CAST(pointer, type) ((struct type*)bpf_rdonly_cast((pointer), bpf_core_type_id_kernel(struct type)))

/* Kernel memory as a number, with which the verifier lets one compute. */
static __always_inline __u64 word_at(const void* address) {
    __u64 word = 0;
    if (use_cast) {
        return CAST(address, io_uring_cqe)->user_data;
    }
    bpf_probe_read_kernel(&word, sizeof word, address);
    return word;
}

static __always_inline void count(enum counter which, long by) { __sync_fetch_and_add(&counters[which], by); }

#ifdef REPRISE_RAW_TRACEPOINTS
static __always_inline struct task_state* state_of(struct task_struct* task) {
    const __u64 key = (__u64)task;
    return bpf_map_lookup_elem(&tasks, &key);
}
static __always_inline struct task_state* make_state(struct task_struct* task) {
    static const struct task_state empty = {};
    const __u64 key = (__u64)task;
    bpf_map_update_elem(&tasks, &key, &empty, 0);
    return bpf_map_lookup_elem(&tasks, &key);
}
/* Its address may become another task's. */
SEC(HOOK "sched_process_free")
int BPF_PROG(task_free, struct task_struct* task) {
    const __u64 key = (__u64)task;
    bpf_map_delete_elem(&tasks, &key);
    return 0;
}
#else
static __always_inline struct task_state* state_of(struct task_struct* task) {
    /* What is not followed has no storage at all, as a rule: a look instead of a call. */
    if (!task->bpf_storage) {
        return 0;
    }
    return bpf_task_storage_get(&tasks, task, 0, 0);
}
static __always_inline struct task_state* make_state(struct task_struct* task) {
    return bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}
#endif

static __always_inline void fill_head(struct raw_head* head, int type, __u32 size, __u32 sequence, __u64 time) {
    struct task_struct* task = bpf_get_current_task_btf();
    head->size = size;
    head->type = type;
    head->flags = 0;
    head->sequence = sequence;
    head->pid = task->tgid;
    head->tid = task->pid;
    head->time = time;
}

/* Room for a record of a fixed size; counts where there is none. */
#define RESERVE(type)                                                                \
    ({                                                                               \
        struct type* reserved_ = bpf_ringbuf_reserve(&ring, sizeof(struct type), 0); \
        if (!reserved_) count(COUNT_LOST, 1);                                        \
        reserved_;                                                                   \
    })
#define SUBMIT(record) bpf_ringbuf_submit((record), BPF_RB_NO_WAKEUP)

/* A process's counts of pages: one counter for each kind since 6.2. */
static __always_inline bool tells_pages(void) {
    return bpf_core_field_exists(((struct percpu_counter*)0)->count) &&
           bpf_core_field_exists(((struct mm_struct*)0)->rss_stat);
}

static __always_inline unsigned long argument(struct pt_regs* regs, __u32 index) {
    switch (index) {
        case 0: return regs->di;
        case 1: return regs->si;
        case 2: return regs->dx;
        case 3: return regs->r10;
        case 4: return regs->r8;
        default: return regs->r9;
    }
}

#endif
