/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Page tables of processes, read for the loader: which pages of a mapping are there, and which of them the processor
 * has marked as used. x86-64. */
#ifndef REPRISE_CAPTURE_PAGE_TABLES_H
#define REPRISE_CAPTURE_PAGE_TABLES_H

#include "common.h"

__u32 own_pid = 0; /* whose root is told beside those of the followed processes */

SEC("iter/task")
int page_roots(struct bpf_iter__task* ctx) {
    struct task_struct* task = ctx->task;
    if (!task || task->pid != task->tgid || !task->mm || ((__u32)task->tgid != own_pid && !state_of(task))) {
        return 0;
    }
    struct mm_struct* memory = task->mm;
    struct page_root out = {.pid = task->tgid};
    out.table = (__u64)BPF_CORE_READ(memory, pgd);
    bpf_seq_write(ctx->meta->seq, &out, sizeof out);
    return 0;
}

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct page_tables);
} page_tables SEC(".maps");

/* Entry 0 where it cannot be read: the table is gone. */
static __always_inline __u64 entry_at(__u64 table, __u64 number) {
    __u64 entry = 0;
    bpf_probe_read_kernel(&entry, sizeof entry, (void*)(table + (number & (PAGE_ENTRIES - 1)) * sizeof entry));
    return entry;
}

static __always_inline __u64 below(__u64 base, __u64 entry) { return base + (entry & PAGE_FRAME); }

static long read_table(__u32 i, struct page_walk* walk) {
    const __u32 zero = 0;
    struct page_tables* out = bpf_map_lookup_elem(&page_tables, &zero);
    if (!out || i >= PAGE_TABLES) {
        return 1;
    }
    struct page_table* slot = &out->slots[i];
    const __u64 address = walk->begin + ((__u64)i << 21);
    slot->kind = PAGE_TABLE_NONE;
    __u64 table = walk->root, entry;
    if (walk->levels == 5) {
        entry = entry_at(table, address >> 48);
        if (!(entry & PAGE_PRESENT)) {
            return 0;
        }
        table = below(walk->base, entry);
    }
    entry = entry_at(table, address >> 39);
    if (!(entry & PAGE_PRESENT)) {
        return 0;
    }
    entry = entry_at(below(walk->base, entry), address >> 30);
    if (!(entry & PAGE_PRESENT)) {
        return 0;
    }
    if (!(entry & PAGE_IS_HUGE)) {
        entry = entry_at(below(walk->base, entry), address >> 21);
        if (!(entry & PAGE_PRESENT)) {
            return 0;
        }
    }
    if (entry & PAGE_IS_HUGE) {
        slot->entries[0] = entry;
        slot->kind = PAGE_TABLE_HUGE;
    } else if (bpf_probe_read_kernel(slot->entries, sizeof slot->entries, (void*)below(walk->base, entry)) == 0) {
        slot->kind = PAGE_TABLE_PAGES;
    }
    return 0;
}

SEC("syscall")
int read_page_tables(struct page_walk* walk) {
    struct page_walk copy = *walk;
    bpf_loop(copy.count < PAGE_TABLES ? copy.count : PAGE_TABLES, read_table, &copy, 0);
    return 0;
}

#endif
