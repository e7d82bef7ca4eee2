/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Page faults on mapped files. The exception gives the address and whether it writes, the file system's part the file.
 * The mapping is looked for only there: at the exception interrupts are off, and then the look costs microseconds.
 * tmpfs and faults that map a huge page have no such part, only the count of the mapped pages tells of them (rss_stat).
 * Those faults are emitted together, where they are on neighbouring pages: a loader's shared tensor is thousands. */
#ifndef REPRISE_CAPTURE_FAULTS_H
#define REPRISE_CAPTURE_FAULTS_H

#include "tasks.h"

struct fault_place {
    __u64 address, offset, inode;
    __u32 device;
};

static long find_place(struct task_struct* task, struct vm_area_struct* vma, void* context) {
    struct fault_place* place = context;
    place->offset = ((place->address - vma->vm_start) & ~((__u64)page_bytes - 1)) + vma->vm_pgoff * page_bytes;
    return 0;
}

static __always_inline int record_fault(struct task_state* state, const struct fault_place* place, bool major) {
    const __u32 sequence = state->sequence++;
    struct raw_fault* record = RESERVE(raw_fault);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_FAULT, sizeof *record, sequence, bpf_ktime_get_ns());
    record->enter = state->fault_enter;
    record->address = state->fault_address;
    record->inode = place->inode;
    record->device = place->device;
    record->offset = place->offset;
    record->write = state->fault_write;
    record->major = major;
    SUBMIT(record);
    return 0;
}

static __always_inline int begin_fault(__u64 address, unsigned long code) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state) {
        return 0;
    }
    if (state->fault_counted) {
        add_touch(state);
    }
    if (!state->enter) {
        settle_stolen(task, state);
    }
    state->fault_enter = bpf_ktime_get_ns();
    state->fault_address = address;
    state->fault_present = code & 1;
    state->fault_write = code >> 1 & 1;
    state->fault_told = 0;
    return 0;
}

SEC(HOOK "page_fault_user")
int BPF_PROG(fault_user, unsigned long address, struct pt_regs* regs, unsigned long code) {
    return begin_fault(address, code);
}

/* The kernel touching the program's memory within a call. */
SEC(HOOK "page_fault_kernel")
int BPF_PROG(fault_kernel, unsigned long address, struct pt_regs* regs, unsigned long code) {
    return begin_fault(address, code);
}

static __always_inline int file_fault(struct address_space* mapping, __u64 offset, bool slow) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state || !state->fault_enter) {
        return 0;
    }
    const bool major = slow && !state->fault_write;
    if (state->fault_told && !major) {
        return 0;
    }
    state->fault_counted = 0;
    if (state->touch.pages) {
        send_touch(state);
    }
    struct inode* inode = BPF_CORE_READ(mapping, host);
    struct fault_place place = {
        .address = state->fault_address,
        .offset = offset, /* where the mapping is not found: of the first page mapped around */
        .inode = BPF_CORE_READ(inode, i_ino),
        .device = BPF_CORE_READ(inode, i_sb, s_dev),
    };
    state->fault_told = 1;
    bpf_find_vma(task, state->fault_address, find_place, &place, 0);
    return record_fault(state, &place, major);
}

/* Pages around the fault that were in the cache. */
SEC(HOOK "mm_filemap_map_pages")
int BPF_PROG(fault_map, struct address_space* mapping, unsigned long first, unsigned long last) {
    return file_fault(mapping, first * page_bytes, 0);
}

/* The page itself, where mapping around did not do: absent, not read yet, or written to. */
SEC(HOOK "mm_filemap_fault")
int BPF_PROG(fault_slow, struct address_space* mapping, unsigned long index) {
    return file_fault(mapping, index * page_bytes, 1);
}

/* The count of pages of files (0) or shared memory (3) that a process has mapped changed: where that is inside a fault
 * on a page that was not there, and nothing else tells of the fault by the next one, it was one of tmpfs or a huge
 * page. */
#define MM_FILEPAGES 0
#define MM_SHMEMPAGES 3
SEC(HOOK "rss_stat")
int BPF_PROG(fault_count, void* memory, int member) {
    if (member != MM_FILEPAGES && member != MM_SHMEMPAGES) {
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state || !state->fault_enter || state->fault_told || state->fault_present || state->fault_counted) {
        return 0;
    }
    if (memory != task->mm) {
        return 0;
    }
    state->fault_counted = 1;
    state->fault_end = bpf_ktime_get_ns();
    return 0;
}

#endif
