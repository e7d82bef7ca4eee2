/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What was there before the recording began: tasks to follow, their descriptors and mappings, by iterators. */
#ifndef REPRISE_CAPTURE_SEED_H
#define REPRISE_CAPTURE_SEED_H

#include "tasks.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32);
    __type(value, __u8);
} seeds SEC(".maps"); /* processes to attach to */

#define VM_SHARED 8

__u64 seeded = 0; /* tasks that seed_tasks began to follow */

/* Iterators may be preempted, so they do not share the scratch of the calls. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} seed_scratch SEC(".maps");

static __always_inline bool is_seed(struct task_struct* task) {
    const __u32 pid = task->tgid;
    return bpf_map_lookup_elem(&seeds, &pid) != 0;
}

static __always_inline bool compose_seed(struct composer* c, __u32 fixed) {
    const __u32 zero = 0;
    c->scratch = bpf_map_lookup_elem(&seed_scratch, &zero);
    c->at = fixed;
    return c->scratch != 0;
}

/* One to attach to, or a child of one that was made between the listing and now. */
static __always_inline bool is_wanted(struct task_struct* task) {
    if (is_seed(task)) {
        return 1;
    }
    const __u32 parent = BPF_CORE_READ(task, real_parent, tgid), pid = task->tgid;
    if (!bpf_map_lookup_elem(&seeds, &parent)) {
        return 0;
    }
    const __u8 yes = 1;
    bpf_map_update_elem(&seeds, &pid, &yes, 0);
    return 1;
}

/* A call that the task sleeps in already: recorded from now on, so that what ends it is known. */
static __always_inline void seed_call(struct task_struct* task) {
    const __u32 kernel_state = task->__state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE);
    struct task_state* state = state_of(task);
    if (!kernel_state || !state || state->compat) {
        return;
    }
    struct pt_regs* user = (struct pt_regs*)bpf_task_pt_regs(task);
    if (!user || !is_recorded_call(user)) {
        return;
    }
    const __u64 now = bpf_ktime_get_ns();
    state->nr = state->off_nr = user->orig_ax;
    state->off = now;
    state->off_state = kernel_state & TASK_UNINTERRUPTIBLE ? RAW_OFF_UNINTERRUPTIBLE : RAW_OFF_SLEEPING;
    state->enter = now;
}

SEC("iter/task")
int seed_tasks(struct bpf_iter__task* ctx) {
    struct task_struct* task = ctx->task;
    if (task && is_wanted(task) && !state_of(task) && follow(task)) {
        ++seeded;
        seed_call(task);
    }
    return 0;
}

SEC("iter/task")
int task_memory(struct bpf_iter__task* ctx) {
    struct task_struct* task = ctx->task;
    if (!task || task->pid != task->tgid || !task->mm || !tells_pages() || !state_of(task)) {
        return 0;
    }
    struct mm_struct* memory = task->mm;
    const long long anonymous = BPF_CORE_READ(memory, rss_stat[MM_ANONPAGES].count),
                    shared = BPF_CORE_READ(memory, rss_stat[MM_SHMEMPAGES].count);
    struct process_memory now = {.pid = task->tgid};
    now.anonymous = anonymous > 0 ? (__u64)anonymous << 12 : 0;
    now.shared = shared > 0 ? (__u64)shared << 12 : 0;
    bpf_seq_write(ctx->meta->seq, &now, sizeof now);
    return 0;
}

static __always_inline void fill_seed_head(struct raw_head* head, int type, struct task_struct* task) {
    fill_head(head, type, 0, 0, bpf_ktime_get_ns());
    head->pid = task->tgid;
    head->tid = task->pid;
}

static __always_inline void add_file_path(struct composer* c, struct path* path, __u32 type) {
    struct raw_part* part = place(c);
    if (!part) {
        return;
    }
    const long n = bpf_d_path(path, (char*)(part + 1), PATH_LIMIT);
    if (n <= 0 || n > PATH_LIMIT) {
        return;
    }
    const __u32 length = n - 1;
    part->type = type;
    part->size = sizeof *part + ((length + 7) & ~7u);
    part->which = 0;
    part->length = length;
    c->at += sizeof *part + ((length + 7) & ~7u);
}

SEC("iter/task_file")
int seed_files(struct bpf_iter__task_file* ctx) {
    struct task_struct* task = ctx->task;
    struct file* file = ctx->file;
    if (!task || !file || task->pid != task->tgid || !is_seed(task)) {
        return 0;
    }
    struct composer c = {};
    if (!compose_seed(&c, sizeof(struct raw_head))) {
        return 0;
    }
    fill_seed_head((struct raw_head*)c.scratch->record, RAW_SEED_FD, task);
    struct raw_part* part = place(&c);
    if (!part) {
        return 0;
    }
    struct raw_fd* out = (struct raw_fd*)(part + 1);
    fill_part_fd(part, out, file, ctx->fd, 0);
    fill_cached(out, file);
    unsigned long bits = 0;
    bpf_probe_read_kernel(&bits, sizeof bits, BPF_CORE_READ(task, files, fdt, close_on_exec) + ctx->fd / 64);
    if (bits >> (ctx->fd & 63) & 1) {
        out->info |= RAW_FD_CLOEXEC;
    }
    remember_file(out);
    c.at += sizeof *part + sizeof *out;
    add_file_path(&c, &file->f_path, RAW_PART_STRING);
    send(&c);
    return 0;
}

static __always_inline void add_size(struct composer* c, struct file* file) {
    struct raw_part* part = place(c);
    if (!part) {
        return;
    }
    part->type = RAW_PART_VALUES;
    part->size = sizeof *part + sizeof(raw_s64);
    part->which = 0;
    part->length = 1;
    *(raw_s64*)(part + 1) = BPF_CORE_READ(file, f_inode, i_size);
    c->at += sizeof *part + sizeof(raw_s64);
}

SEC("iter/task_vma")
int seed_maps(struct bpf_iter__task_vma* ctx) {
    struct task_struct* task = ctx->task;
    struct vm_area_struct* vma = ctx->vma;
    if (!task || !vma || task->pid != task->tgid || !is_seed(task)) {
        return 0;
    }
    struct file* file = vma->vm_file;
    if (!file) {
        return 0;
    }
    if (vma->vm_flags & VM_SHARED) {
        add_shared(task->tgid, vma->vm_start, vma->vm_end - vma->vm_start);
    }
    struct composer c = {};
    if (!compose_seed(&c, sizeof(struct raw_seed_map))) {
        return 0;
    }
    struct raw_seed_map* record = (struct raw_seed_map*)c.scratch->record;
    fill_seed_head(&record->head, RAW_SEED_MAP, task);
    const __u64 flags = vma->vm_flags;
    record->address = vma->vm_start;
    record->size = vma->vm_end - vma->vm_start;
    record->offset = vma->vm_pgoff * page_bytes;
    record->inode = BPF_CORE_READ(file, f_inode, i_ino);
    record->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
    record->prot = flags & 7;                  /* VM_READ, VM_WRITE, VM_EXEC are PROT_* */
    record->flags = flags & VM_SHARED ? 1 : 2; /* MAP_SHARED, MAP_PRIVATE */
    record->pad = 0;
    add_size(&c, file);
    add_file_path(&c, &file->f_path, RAW_PART_PATH);
    send(&c);
    return 0;
}

#endif
