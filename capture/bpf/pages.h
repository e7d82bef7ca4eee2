/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Page-cache traffic of recorded files: one record for pages that come or go one after the other. A processor keeps the
 * run at hand until something else begins on it: another range, a call's begin or end, another task. */
#ifndef REPRISE_CAPTURE_PAGES_H
#define REPRISE_CAPTURE_PAGES_H

#include "common.h"
#include "passed_over.h"

#define RUN_LONGEST 5000000 /* ns; tasks that share a file are told apart no later */
#define PF_MEMALLOC 0x800   /* reclaims memory */

/* `flags` of a folio is a struct of one word since 6.18. */
struct folio_flags {
    unsigned long f;
} __attribute__((preserve_access_index));
struct folio___wrapped {
    struct folio_flags flags;
} __attribute__((preserve_access_index));
struct folio___plain {
    unsigned long flags;
} __attribute__((preserve_access_index));
enum pageflags { PG_head = 6 };

struct page_run {
    __u64 bytes; /* 0: there is none */
    __u64 mapping, offset, inode, first, last, after;
    __u32 device, folios;
    __u16 evicted, in_nr;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct page_run);
} page_runs SEC(".maps");

static __always_inline struct page_run* page_run_here(void) {
    const __u32 zero = 0;
    return bpf_map_lookup_elem(&page_runs, &zero);
}

static __always_inline __u32 folio_bytes(struct folio* folio) {
    const unsigned long flags = *(const volatile unsigned long*)folio; /* the first word in all versions */
    if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)) {
        return page_bytes;
    }
    const __u32 pages = bpf_core_field_exists(folio->_nr_pages) ? folio->_nr_pages : 1;
    return (pages ? pages : 1) * page_bytes;
}

/* `state`: of the current task, 0 where it is not followed. */
static __noinline int send_pages(struct page_run* run, struct task_state* state) {
    if (!run) {
        return 0;
    }
    const __u32 sequence = state ? state->sequence++ : 0;
    struct raw_page_cache* record = RESERVE(raw_page_cache);
    if (record) {
        fill_head(&record->head, RAW_PAGE_CACHE, sizeof *record, sequence, bpf_ktime_get_ns());
        if (!state) {
            record->head.pid = 0;
            record->head.tid = 0;
        }
        record->inode = run->inode;
        record->offset = run->offset;
        record->bytes = run->bytes;
        record->first = run->first;
        record->last = run->last;
        record->after = run->after;
        record->device = run->device;
        record->evicted = run->evicted;
        record->in_nr = run->in_nr;
        record->folios = run->folios;
        record->pad = 0;
        SUBMIT(record);
    }
    run->bytes = 0;
    return 0;
}

/* Before what ends or follows the run: `state` is that of the current task. */
static __always_inline void settle_pages(struct task_state* state) {
    if (want_pagecache && state->pages) {
        state->pages = 0;
        struct page_run* run = page_run_here();
        if (run && run->bytes) {
            send_pages(run, state);
        }
    }
}

/* The same of a task that is not followed, when it leaves the processor. */
static __always_inline void settle_pages_of_others(void) {
    if (want_pagecache) {
        struct page_run* run = page_run_here();
        if (run && run->bytes) {
            send_pages(run, 0);
        }
    }
}

static __always_inline int record_folio(struct folio* folio, bool evicted) {
    struct page_run* run = page_run_here();
    if (!run) {
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    /* A run at hand is of this task, as it ends where another comes. Without one, pages that come for others are of no
     * concern. */
    if (!run->bytes && !evicted && !state_of(task)) {
        return 0;
    }
    struct address_space* pages_of = folio->mapping;
    const __u64 mapping = (__u64)pages_of;
    const __u64 offset = (__u64)folio->index * page_bytes;
    const __u64 now = bpf_ktime_get_ns();
    if (run->bytes && run->mapping == mapping && run->offset + run->bytes == offset && run->evicted == evicted &&
        now - run->first < RUN_LONGEST) {
        run->bytes += folio_bytes(folio);
        ++run->folios;
        run->last = now;
        return 0;
    }
    struct task_state* state = state_of(task);
    if (run->bytes) {
        send_pages(run, state);
    }
    if (!evicted && !state) {
        return 0;
    }
    struct inode* inode = pages_of->host;
    struct file_key key = {.inode = inode->i_ino, .device = inode->i_sb->s_dev};
    if (!bpf_map_lookup_elem(&files, &key)) {
        if (evicted) {
            return 0;
        }
        const __u8 yes = 1;
        bpf_map_update_elem(&files, &key, &yes, 0);
    }
    const bool in_call = state && state->enter;
    run->mapping = mapping;
    run->offset = offset;
    run->inode = key.inode;
    run->device = key.device;
    run->evicted = evicted;
    run->in_nr = in_call ? state->nr : NO_CALL;
    /* Between its calls a task removes pages only to get memory, for the call that just ended, or in one that is not
     * recorded, such as an ioctl that shares blocks. */
    const bool between = evicted && state && !in_call && !(task->flags & PF_MEMALLOC);
    run->after = between && is_recorded_call((struct pt_regs*)bpf_task_pt_regs(task)) ? state->left : 0;
    run->first = now;
    run->last = now;
    run->bytes = folio_bytes(folio);
    run->folios = 1;
    if (state) {
        state->pages = 1;
    }
    return 0;
}

SEC(HOOK "mm_filemap_add_to_page_cache")
int BPF_PROG(cache_add, struct folio* folio) {
    TYPED(folio, folio);
    return record_folio(folio, 0);
}

SEC(HOOK "mm_filemap_delete_from_page_cache")
int BPF_PROG(cache_delete, struct folio* folio) {
    TYPED(folio, folio);
    return record_folio(folio, 1);
}

#endif
