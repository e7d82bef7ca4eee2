/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Writes to mapped files whose pages the cache holds as larger folios: the first write to one maps all of its pages,
 * for writing and as written (Linux 6.18; before, where it fills a huge page). No later write to them faults, the
 * storage gets all of them, and neither the kernel nor the processor knows which of them the task wrote to. So all are
 * told. */
#ifndef REPRISE_CAPTURE_FOLIOS_H
#define REPRISE_CAPTURE_FOLIOS_H

#include "common.h"
#include "pages.h"

#define XARRAY_DEEPEST 11 /* levels, of the 64 bits of an index */
#define XARRAY_NODES 4096 /* entries above it lead to a node */

enum mapping_flags { AS_FOLIO_ORDER_MAX = 21 };
#define FOLIO_ORDER_BITS 5

/* Whether the file system has larger folios at all. */
static __always_inline bool has_folios(struct address_space* mapping) {
    if (!bpf_core_enum_value_exists(enum mapping_flags, AS_FOLIO_ORDER_MAX)) {
        return 1;
    }
    const unsigned long flags = BPF_CORE_READ(mapping, flags);
    return flags >> bpf_core_enum_value(enum mapping_flags, AS_FOLIO_ORDER_MAX) & ((1 << FOLIO_ORDER_BITS) - 1);
}

/* Entries of the page cache: bits 0 and 1 tell what it is. A folio has neither; a node, or the number of the slot that
 * has the folio which also fills this one, has bit 1. */
static __always_inline bool is_internal(__u64 entry) { return (entry & 3) == 2; }

static __always_inline __u64 slot_of(struct xa_node* node, __u64 slot) {
    __u64 entry = 0;
    bpf_probe_read_kernel(&entry, sizeof entry,
                          (const void*)node + bpf_core_field_offset(node->slots) + slot * sizeof entry);
    return entry;
}

/* Address of the folio that the page cache of `mapping` holds for a page; 0: none. */
static __noinline __u64 cached_folio(struct address_space* mapping, __u64 index) {
    struct xa_node* const typed = 0;
    const __u64 mask = bpf_core_field_size(typed->slots) / sizeof(void*) - 1;
    __u64 entry = use_cast ? (__u64)CAST(mapping, address_space)->i_pages.xa_head
                           : (__u64)BPF_CORE_READ(mapping, i_pages.xa_head);
    for (int depth = 0; depth < XARRAY_DEEPEST && is_internal(entry); ++depth) {
        if (entry < XARRAY_NODES) {
            return 0;
        }
        struct xa_node* node = (struct xa_node*)(entry - 2);
        const __u8 shift = use_cast ? CAST(node, xa_node)->shift : BPF_CORE_READ(node, shift);
        entry = slot_of(node, index >> (shift & 63) & mask);
        if (is_internal(entry) && entry >> 2 <= mask) {
            entry = slot_of(node, entry >> 2);
        }
    }
    return entry & 3 ? 0 : entry;
}

static __always_inline __u64 pages_of_folio(struct folio* folio) {
    if (use_cast) {
        return folio_bytes(CAST(folio, folio)) / page_bytes;
    }
    unsigned long flags = 0;
    bpf_probe_read_kernel(&flags, sizeof flags, folio);
    if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1) || !bpf_core_field_exists(folio->_nr_pages)) {
        return 1;
    }
    return BPF_CORE_READ(folio, _nr_pages);
}

/* That a process has mapped, of a kind (a number: the relocation is made of it); small ones reach the count in batches.
 */
#define PAGES_COUNTED(memory, kind) (tells_pages() ? (memory)->rss_stat[kind].count : 0)

/* A look at a page that is not mapped is an exception, which is no fault of the task's. */
static __always_inline bool is_mapped(struct task_state* state, __u64 address) {
    __u8 byte;
    state->fault_looks = 1;
    const bool mapped = bpf_probe_read_user(&byte, sizeof byte, (const void*)address) == 0;
    state->fault_looks = 0;
    return mapped;
}

/* Of all kinds of pages only huge ones are counted before they are mapped. */
static __always_inline bool is_huge(struct task_state* state, __s64 counted) {
    const __s64 half = HUGE_BYTES / page_bytes / 2; /* less than one, as others may be in the count or come off it */
    return counted - state->folio_counted >= half && !is_mapped(state, state->fault_address);
}

/* A page of tmpfs was counted: a huge one that is written to is told of as a whole. */
static __always_inline void note_huge_write(struct task_state* state, __s64 counted) {
    if ((state->fault_write & RAW_FAULT_WRITES) && is_huge(state, counted)) {
        state->fault_address &= ~((__u64)HUGE_BYTES - 1);
        state->fault_pages = HUGE_BYTES / page_bytes;
    }
}

/* The kernel maps either all pages of a folio or the one: its ends and what is beside the page tell which. */
static __always_inline bool all_mapped(struct task_state* state, __u64 page, __u64 begin, __u64 last) {
    return is_mapped(state, begin) && is_mapped(state, last) &&
           (page == begin || is_mapped(state, page - page_bytes)) &&
           (page == last || is_mapped(state, page + page_bytes));
}

/* The file system was asked for a page to write to. `counted`: the pages of files that the process has mapped. */
static __always_inline void expect_folio(struct task_state* state, struct address_space* mapping, __u64 offset,
                                         __s64 counted) {
    if (!has_folios(mapping)) {
        return;
    }
    state->folio_mapping = (__u64)mapping;
    state->folio_page = offset / page_bytes;
    state->folio_counted = counted;
}

/* It is mapped; where by a huge page, that follows at once. */
static __noinline int tell_folio(struct task_state* state, __s64 counted) {
    if (!state) {
        return 0;
    }
    const __u64 index = state->folio_page;
    struct folio* folio = (struct folio*)cached_folio((struct address_space*)state->folio_mapping, index);
    state->folio_mapping = 0;
    if (!folio) {
        return 0;
    }
    const __u64 pages = pages_of_folio(folio),
                first = use_cast ? CAST(folio, folio)->index : BPF_CORE_READ(folio, index);
    if (pages < 2 || first > index || index - first >= pages) {
        return 0;
    }
    const __u64 page = state->fault_address & ~((__u64)page_bytes - 1);
    const __u64 begin = page - (index - first) * page_bytes;
    if (!(pages * page_bytes >= HUGE_BYTES && is_huge(state, counted)) &&
        !all_mapped(state, page, begin, begin + (pages - 1) * page_bytes)) {
        return 0;
    }
    const __u32 sequence = state->sequence++;
    struct raw_touch* record = RESERVE(raw_touch);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_TOUCH, sizeof *record, sequence, bpf_ktime_get_ns());
    record->enter = state->fault_enter;
    record->end = record->head.time;
    record->busy = record->end - record->enter;
    record->address = begin;
    record->pages = pages;
    record->write = RAW_FAULT_WRITES | RAW_FAULT_FOLIO;
    SUBMIT(record);
    return 0;
}

#endif
