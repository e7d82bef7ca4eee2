/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Page faults on mapped files. The exception gives the address and whether it writes, the file system's part the file.
 */
#ifndef REPRISE_CAPTURE_FAULTS_H
#define REPRISE_CAPTURE_FAULTS_H

#include "tasks.h"

struct fault_place {
    __u64 offset;
};

static long find_offset(struct task_struct* task, struct vm_area_struct* vma, void* context) {
    struct fault_place* place = context;
    place->offset = ((place->offset - vma->vm_start) & ~((__u64)page_bytes - 1)) + vma->vm_pgoff * page_bytes;
    return 0;
}

static __always_inline int record_fault(struct address_space* mapping, __u64 guess, bool slow) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    /* Inside a call (MAP_POPULATE, MADV_WILLNEED) pages are mapped without a fault: the call stands for them. */
    if (!state || !state->fault_enter || state->enter) return 0;
    struct inode* inode = BPF_CORE_READ(mapping, host);
    struct fault_place place = {.offset = state->fault_address};
    if (bpf_find_vma(task, state->fault_address, find_offset, &place, 0)) place.offset = guess;
    const __u32 sequence = state->sequence++;
    struct raw_fault* record = RESERVE(raw_fault);
    if (!record) return 0;
    fill_head(&record->head, RAW_FAULT, sizeof *record, sequence, bpf_ktime_get_ns());
    record->enter = state->fault_enter;
    record->address = state->fault_address;
    record->inode = BPF_CORE_READ(inode, i_ino);
    record->device = BPF_CORE_READ(inode, i_sb, s_dev);
    record->offset = place.offset;
    record->write = state->fault_write;
    record->major = slow && !state->fault_write;
    SUBMIT(record);
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(fault_user, unsigned long address, struct pt_regs* regs, unsigned long code) {
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) return 0;
    state->fault_enter = bpf_ktime_get_ns();
    state->fault_address = address;
    state->fault_write = code >> 1 & 1;
    return 0;
}

/* Pages around the fault that were in the cache. */
SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(fault_map, struct address_space* mapping, unsigned long first, unsigned long last) {
    return record_fault(mapping, first * page_bytes, 0);
}

/* The page itself, where mapping around did not do: absent, not read yet, or written to. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(fault_slow, struct address_space* mapping, unsigned long index) {
    return record_fault(mapping, index * page_bytes, 1);
}

#endif
