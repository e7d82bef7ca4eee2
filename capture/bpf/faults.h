/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Page faults on mapped files. The exception gives the address and whether it writes, the file system's part the file.
 * The mapping is looked for only there: at the exception interrupts are off, and then the look costs microseconds.
 * tmpfs and faults that map a huge page have no such part, only the count of the mapped pages tells of them (rss_stat).
 * Those faults are emitted together, where they are on neighbouring pages: a loader's shared tensor is thousands. */
#ifndef REPRISE_CAPTURE_FAULTS_H
#define REPRISE_CAPTURE_FAULTS_H

#include "tasks.h"

#define NR_PROCESS_VM_WRITEV 311
#define O_DIRECT 040000
#define HUGE_BYTES 0x200000
#include "folios.h"
#define TMPFS_MAGIC 0x01021994

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
    if (!state || state->fault_looks) {
        return 0;
    }
    if (state->fault_counted) {
        add_touch(state);
    }
    state->folio_mapping = 0;
    state->folio_counted = PAGES_COUNTED(task->mm, MM_SHMEMPAGES);
    state->fault_pages = 1;
    if (!state->enter) {
        settle_stolen(task, state);
        ++state->faults;
    }
    state->fault_broken = 0;
    state->fault_enter = bpf_ktime_get_ns();
    state->fault_address = address;
    state->fault_present = code & 1;
    state->fault_write = code >> 1 & 1;
    state->fault_told = 0;
    /* A page of a shared file that was only read so far: nothing else tells of it. */
    if ((code & 3) == 3 && is_shared(bpf_get_current_pid_tgid() >> 32, address)) {
        state->fault_counted = 1;
        state->fault_end = state->fault_enter;
    }
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

/* Whether the pages that a call asks for itself are written to. */
static __always_inline bool call_fills(struct task_struct* task, __u32 nr) {
    const __u32 flags = rules[nr & (CALL_LIMIT - 1)].flags;
    if (!(flags & (RULE_READS | RULE_WRITES))) {
        return nr == NR_PROCESS_VM_WRITEV;
    }
    /* Direct reads fill the buffer; other calls that ask for pages are about the memory of a process. */
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
    struct file* file = file_of(task, regs->di);
    const bool direct = file && BPF_CORE_READ(file, f_flags) & O_DIRECT;
    return (flags & RULE_READS) ? direct : !direct;
}

/* Pages of mapped files that a call asks for itself, without an exception: those that direct reads and writes move,
 * and the memory of other processes. */
static __noinline int fault_of_call(struct task_state* state, struct address_space* mapping, __u64 offset, bool slow) {
    struct task_struct* task = bpf_get_current_task_btf();
    if (!state || rules[state->nr & (CALL_LIMIT - 1)].flags & RULE_POPULATES) {
        return 0;
    }
    struct inode* inode = BPF_CORE_READ(mapping, host);
    const struct fault_place place = {
        .offset = offset,
        .inode = BPF_CORE_READ(inode, i_ino),
        .device = BPF_CORE_READ(inode, i_sb, s_dev),
    };
    const bool fills = slow && call_fills(task, state->nr);
    state->fault_enter = bpf_ktime_get_ns();
    state->fault_address = 0;
    state->fault_write = fills;
    record_fault(state, &place, slow && !fills);
    state->fault_enter = 0;
    return 0;
}

static __always_inline int file_fault(struct address_space* mapping, __u64 offset, bool slow) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state) {
        return 0;
    }
    if (!state->fault_enter) {
        return state->enter ? fault_of_call(state, mapping, offset, slow) : 0;
    }
    const bool major = slow && !(state->fault_write & RAW_FAULT_WRITES);
    if (slow && !major) {
        expect_folio(state, mapping, offset, PAGES_COUNTED(task->mm, MM_FILEPAGES));
    }
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
    if (BPF_CORE_READ(inode, i_sb, s_magic) == TMPFS_MAGIC) {
        state->fault_write |= RAW_FAULT_MEMORY;
    }
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

/* A fault that made new pages of anonymous memory is nearly over, and took far more than such a page usually does: the
 * host of a virtual machine had taken that memory back, and had to find some. `weight`: so many faults this one stands
 * for. */
static __always_inline void anonymous_fault(struct task_struct* task, struct task_state* state, bool huge,
                                            __u32 weight) {
    const __u64 took = bpf_ktime_get_ns() - state->fault_enter;
    state->fault_told = 1;
    const volatile struct page_cost* cost = &page_costs[huge ? PAGE_HUGE : PAGE_BASE];
    const __u64 usual = cost->usual;
    if (took < cost->dear || took < usual || state->fault_broken) {
        return;
    }
    /* The host gave the processor to others meanwhile: that is told by itself. */
    if (tells_stolen() && stolen_here(task) - state->stolen >= STOLEN_LEAST) {
        return;
    }
    state->dear += huge ? HUGE_BYTES / page_bytes : weight;
    state->dear_ns += (took - usual) * weight;
}

/* Of the base pages one in so many is looked at: they come in thousands, and a look costs a tenth of a fault. */
#define SAMPLED 8

/* What a processor saw of anonymous pages last. Huge ones show in a process's count, which small ones reach in batches.
 */
struct anonymous_seen {
    __u64 memory, pages;
    __u32 turn, pad;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct anonymous_seen);
} anonymous SEC(".maps");

static __always_inline int anonymous_pages(struct mm_struct* memory) {
    const __u32 zero = 0;
    struct anonymous_seen* seen = bpf_map_lookup_elem(&anonymous, &zero);
    if (!seen || !tells_pages()) {
        return 0;
    }
    const __u64 pages = memory->rss_stat[MM_ANONPAGES].count, before = seen->pages;
    const bool known = seen->memory == (__u64)memory;
    seen->memory = (__u64)memory;
    seen->pages = pages;
    const bool huge = pages > before && pages - before >= HUGE_BYTES / page_bytes;
    if (!known || (!huge && ++seen->turn % SAMPLED != 0)) {
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (state && !state->enter && state->fault_enter && !state->fault_told && !state->fault_present &&
        memory == task->mm) {
        anonymous_fault(task, state, huge, huge ? 1 : SAMPLED);
    }
    return 0;
}

/* The count of pages of files (0) or shared memory (3) that a process has mapped changed: where that is inside a fault
 * on a page that was not there, and nothing else tells of the fault by the next one, it was one of tmpfs or a huge
 * page. */
SEC(HOOK "rss_stat")
int BPF_PROG(fault_count, struct mm_struct* memory, int member) {
    TYPED(memory, mm_struct);
    if (member == MM_ANONPAGES) {
        return anonymous_pages(memory);
    }
    if (member != MM_FILEPAGES && member != MM_SHMEMPAGES) {
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state || !state->fault_enter || memory != task->mm) {
        return 0;
    }
    /* A call that began since may unmap pages. */
    if (state->folio_mapping && member == MM_FILEPAGES && state->fault_enter >= state->enter) {
        return tell_folio(state, PAGES_COUNTED(memory, MM_FILEPAGES));
    }
    if (state->fault_told || state->fault_present || state->fault_counted) {
        return 0;
    }
    state->fault_counted = 1;
    if (member == MM_SHMEMPAGES) {
        note_huge_write(state, PAGES_COUNTED(memory, MM_SHMEMPAGES));
        state->fault_write |= RAW_FAULT_MEMORY;
    }
    state->fault_end = bpf_ktime_get_ns();
    return 0;
}

#endif
