/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Following: which tasks are recorded, what becomes of them, and when and why they were off the processor. */
#ifndef REPRISE_CAPTURE_TASKS_H
#define REPRISE_CAPTURE_TASKS_H

#include "calls.h"
#include "library_calls.h"
#include "off.h"
#include "workers.h"

#define NR_EXIT_GROUP 231
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2

static __always_inline struct task_state* follow(struct task_struct* task) {
    struct task_state* state = make_state(task);
    if (!state) {
        count(COUNT_UNTRACKED, 1);
        return 0;
    }
    state->nr = NO_CALL;
    state->off_nr = NO_CALL;
    count(COUNT_TASKS, 1);
    count(COUNT_LIVE, 1);
    return state;
}

/* Control groups being recorded; the loader fills in those that are there. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct cgroup_key);
    __type(value, __u8);
} cgroups SEC(".maps");

static __always_inline struct cgroup_key key_of(struct cgroup* group) {
    struct cgroup_key key = {.id = BPF_CORE_READ(group, kn, id), .hierarchy = BPF_CORE_READ(group, root, hierarchy_id)};
    return key;
}

/* A task that comes into a group from outside. */
SEC(HOOK "cgroup_attach_task")
int BPF_PROG(cgroup_enter, struct cgroup* group, const char* path, struct task_struct* task) {
    const struct cgroup_key key = key_of(group);
    if (bpf_map_lookup_elem(&cgroups, &key) && !state_of(task)) {
        follow(task);
    }
    return 0;
}

/* Groups made below recorded ones are recorded, too. */
SEC(HOOK "cgroup_mkdir")
int BPF_PROG(cgroup_made, struct cgroup* group) {
    struct cgroup* parent = BPF_CORE_READ(group, self.parent, cgroup);
    const struct cgroup_key above = key_of(parent), key = key_of(group);
    const __u8 yes = 1;
    if (parent && bpf_map_lookup_elem(&cgroups, &above)) {
        bpf_map_update_elem(&cgroups, &key, &yes, 0);
    }
    return 0;
}

SEC(HOOK "task_newtask")
int BPF_PROG(task_new, struct task_struct* child, __u64 flags) {
    TYPED(child, task_struct);
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) {
        /* Made right into a group of the unified hierarchy (CLONE_INTO_CGROUP). */
        if (want_cgroups) {
            const struct cgroup_key key = key_of(BPF_CORE_READ(child, cgroups, dfl_cgrp));
            if (bpf_map_lookup_elem(&cgroups, &key)) {
                follow(child);
            }
        }
        return 0;
    }
    struct task_state* new_state = follow(child);
    if (new_state) {
        new_state->compat = state->compat;
        /* It can run, and waits for a processor. */
        new_state->off = bpf_ktime_get_ns();
        new_state->off_state = RAW_OFF_RUNNABLE;
        inherit_shared(bpf_get_current_pid_tgid() >> 32, child->tgid);
    }
    if (child->pid == child->tgid) {
        note_inside(child, 0);
    }
    const __u32 sequence = state->sequence++;
    struct raw_spawn* record = RESERVE(raw_spawn);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_SPAWN, sizeof *record, sequence, bpf_ktime_get_ns());
    record->child_pid = child->tgid;
    record->child_tid = child->pid;
    record->flags = flags;
    bpf_probe_read_kernel(record->name, sizeof record->name, child->comm);
    SUBMIT(record);
    return 0;
}

SEC(HOOK "sched_process_exec")
int BPF_PROG(task_exec, struct task_struct* task, int old_pid, struct linux_binprm* program) {
    TYPED(program, linux_binprm);
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) {
        return 0;
    }
    /* Calls of 32-bit programs have other numbers; better none than wrong ones. */
    char class = 0;
    bpf_probe_read_kernel(&class, 1, &program->buf[4]);
    const bool compat = class == 1;
    if (compat && !state->compat) {
        count(COUNT_UNTRACKED, 1);
    }
    state->compat = compat;
    forget_shared(bpf_get_current_pid_tgid() >> 32);
    struct composer c = {};
    if (!compose(&c, sizeof(struct raw_exec))) {
        return 0;
    }
    struct raw_exec* record = (struct raw_exec*)c.scratch->record;
    fill_head(&record->head, RAW_EXEC, 0, state->sequence++, bpf_ktime_get_ns());
    record->old_tid = old_pid;
    record->pad = 0;
    bpf_get_current_comm(record->name, sizeof record->name);
    add_text(&c, RAW_PART_PATH, (__u64)program->filename, 0, 1);
    send(&c);
    return 0;
}

/* Most memory besides files that the process held since its last exec, bytes: its largest resident set less what it has
 * of files now. From Linux 6.16 on the memory is still there when its last thread ends; before, and where counts are
 * kept otherwise, 0. (signal->maxrss knows of the memory before an exec, too: the recorder's.) */
static __always_inline __u64 held_memory(struct task_struct* task) {
    struct mm_struct* memory = task->mm;
    if (!memory || !tells_pages()) {
        return 0;
    }
    const long long files = BPF_CORE_READ(memory, rss_stat[MM_FILEPAGES].count),
                    shared = BPF_CORE_READ(memory, rss_stat[MM_SHMEMPAGES].count),
                    own = BPF_CORE_READ(memory, rss_stat[MM_ANONPAGES].count);
    const __u64 of_files = (files > 0 ? files : 0) + (shared > 0 ? shared : 0), now = of_files + (own > 0 ? own : 0),
                before = BPF_CORE_READ(memory, hiwater_rss), most = before > now ? before : now;
    return most > of_files ? (most - of_files) << 12 : 0;
}

SEC(HOOK "sched_process_exit")
int BPF_PROG(task_exit) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state) {
        return 0;
    }
    settle_touches(state);
    settle_pages(state);
    settle_faults(state);
    const __u64 now = bpf_ktime_get_ns();
    if (state->enter) {
        struct pt_regs* user = (struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
        struct call_record* call = RESERVE(call_record);
        if (call) {
            fill_call(&call->call, sizeof *call, state, user, state->nr, 0, now);
            call->call.head.flags = RAW_FLAG_UNFINISHED;
            SUBMIT(call);
        } else {
            ++state->sequence;
        }
    }
    const __u32 sequence = state->sequence++;
    const bool last = exit_group_dead ? (ctx[1] & 0xff) != 0 : BPF_CORE_READ(task, signal, live.counter) == 0;
    if (last) {
        forget_shared(bpf_get_current_pid_tgid() >> 32);
    }
    struct raw_exit* record = RESERVE(raw_exit);
    if (record) {
        fill_head(&record->head, RAW_EXIT, sizeof *record, sequence, now);
        record->code = task->exit_code;
        record->last = last;
        record->allowed = BPF_CORE_READ(task, cpus_ptr, bits[0]);
        record->cpus = BPF_CORE_READ(task, nr_cpus_allowed);
        record->pad = 0;
        record->held = last ? held_memory(task) : 0;
        SUBMIT(record);
    }
    if (task->pid == task->tgid) {
        note_inside(task, 1);
    }
    forget_library_call();
    /* What it wakes from here on, it wakes by ending. */
    if (!state->enter) {
        state->enter = now;
    }
    state->nr = NR_EXIT_GROUP;
    state->ended = 1;
    count(COUNT_LIVE, -1);
    return 0;
}

/* What runs. In an interrupt `current` is an innocent task, but for what its own call left to a soft one: a message to
 * a socket of this machine is delivered by one, at the end of the send. Kernels that tell the addresses of their data
 * (KALLSYMS_ALL) show their own count: bits 8-15 soft interrupts, 16-19 hard ones, 20-23 NMI. On others, entries and
 * exits of interrupts are counted here. The loader takes one of the two. */
extern const int __preempt_count __ksym __weak;

enum what_runs { RUNS_TASK = 0, RUNS_SOFT, RUNS_HARD };

static __always_inline enum what_runs what_runs_by_kernel(void) {
    const int count = *(const int*)bpf_this_cpu_ptr(&__preempt_count);
    /* without 0x200: bottom halves only held off */
    return count & 0x00ff0000 ? RUNS_HARD : count & 0x0000fd00 ? RUNS_SOFT : RUNS_TASK;
}

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} interrupts SEC(".maps");

#define SOFT_INTERRUPT 0x10000 /* counted apart */

static __always_inline enum what_runs what_runs_by_count(void) {
    const __u32 zero = 0;
    const __u32* depth = bpf_map_lookup_elem(&interrupts, &zero);
    return !depth || !*depth ? RUNS_TASK : *depth & (SOFT_INTERRUPT - 1) ? RUNS_HARD : RUNS_SOFT;
}

static __always_inline int count_interrupt(int by) {
    const __u32 zero = 0;
    __u32* depth = bpf_map_lookup_elem(&interrupts, &zero);
    /* An exit whose entry was before the recording began. */
    const __u32 one = by > 0 ? by : -by;
    if (depth && (by > 0 || (one == SOFT_INTERRUPT ? *depth >= one : *depth & (SOFT_INTERRUPT - 1)))) {
        *depth += by;
    }
    return 0;
}
#define COUNT_INTERRUPTS(name, one)                                      \
    SEC(HOOK #name "_exit")                                              \
    int irq_##name##_exit(void* ctx) { return count_interrupt(-(one)); } \
    SEC(HOOK #name "_entry")                                             \
    int irq_##name##_entry(void* ctx) { return count_interrupt(one); }
COUNT_INTERRUPTS(irq_handler, 1)
COUNT_INTERRUPTS(softirq, SOFT_INTERRUPT)
COUNT_INTERRUPTS(local_timer, 1)
COUNT_INTERRUPTS(call_function, 1)
COUNT_INTERRUPTS(call_function_single, 1)

static __always_inline void note_waker(struct task_struct* task, struct task_state* state, enum what_runs runs) {
    state->wake = bpf_ktime_get_ns();
    state->waker_tid = 0;
    state->waker_deferred = runs == RUNS_SOFT;
    if (runs == RUNS_HARD) {
        return;
    }
    struct task_struct* current = bpf_get_current_task_btf();
    struct task_state* waker = state_of(current);
    const struct waking_call* call = runs == RUNS_TASK ? works_for(current) : 0;
    if (call && call->tid != (__u32)task->pid && state->off_state == RAW_OFF_SLEEPING) {
        state->waker_deferred = 1;
        state->waker_pid = call->pid;
        state->waker_tid = call->tid;
        state->waker_nr = call->nr;
        state->waker_enter = call->enter;
        return;
    }
    if (!waker || waker == state || !waker->enter) {
        return;
    }
    const __u32 nr = waker->nr;
    if (!(rules[nr & (CALL_LIMIT - 1)].flags & RULE_WAKES)) {
        return;
    }
    state->waker_pid = current->tgid;
    state->waker_tid = current->pid;
    state->waker_nr = nr;
    state->waker_enter = waker->enter;
}

SEC(HOOK "sched_waking")
int BPF_PROG(task_waking, struct task_struct* task) {
    TYPED(task, task_struct);
    struct task_state* state = state_of(task);
    if (state) {
        note_waker(task, state, what_runs_by_kernel());
    }
    return 0;
}

SEC(HOOK "sched_waking")
int BPF_PROG(task_waking_counted, struct task_struct* task) {
    TYPED(task, task_struct);
    struct task_state* state = state_of(task);
    if (state) {
        note_waker(task, state, what_runs_by_count());
    }
    return 0;
}

SEC(HOOK "sched_switch")
int BPF_PROG(task_switch, bool preempted, struct task_struct* prev, struct task_struct* next) {
    TYPED(prev, task_struct);
    TYPED(next, task_struct);
    struct task_state* state = state_of(prev);
    const __u64 now = bpf_ktime_get_ns();
    if (state) {
        settle_pages(state);
        if (!state->enter) {
            settle_stolen(prev, state);
            settle_faults(state);
        }
        state->fault_broken = 1;
        const __u32 kernel_state = switch_state ? (__u32)ctx[3] : prev->__state;
        state->off = now;
        state->wake = 0;
        state->waker_tid = 0;
        state->off_nr = state->enter ? state->nr : NO_CALL;
        state->off_state = preempted || kernel_state == 0        ? RAW_OFF_RUNNABLE
                           : kernel_state & TASK_UNINTERRUPTIBLE ? RAW_OFF_UNINTERRUPTIBLE
                                                                 : RAW_OFF_SLEEPING;
        state->off_iowait = BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait);
    } else {
        settle_pages_of_others();
    }
    state = state_of(next);
    if (!state) {
        return 0;
    }
    stolen_from_here(next, state);
    if (!state->off || state->ended) { /* an ended task may still sleep until its requests to io_uring are over */
        return 0;
    }
    return back_on(next, state, now);
}

#endif
