/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Faults that only the count of mapped pages tells of (faults.h), put together where they are on neighbouring pages.
 * Sent before anything else of the task that they precede. */
#ifndef REPRISE_CAPTURE_TOUCHES_H
#define REPRISE_CAPTURE_TOUCHES_H

#include "common.h"

#define TOUCH_APART 100000 /* ns; as near as the assembling joins faults */

static __noinline int send_touch(struct task_state* state) {
    const __u32 sequence = state->sequence++;
    const __u32 pages = state->touch.pages;
    state->touch.pages = 0;
    struct raw_touch* record = RESERVE(raw_touch);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_TOUCH, sizeof *record, sequence, bpf_ktime_get_ns());
    record->enter = state->touch.enter;
    record->end = state->touch.end;
    record->busy = state->touch.busy;
    record->address = state->touch.address;
    record->pages = pages;
    record->write = state->touch.write;
    SUBMIT(record);
    return 0;
}

/* The fault at hand is over, and nothing else told of it. */
static __noinline int add_touch(struct task_state* state) {
    const __u64 address = state->fault_address & ~((__u64)page_bytes - 1), pages = state->fault_pages;
    state->fault_counted = 0;
    if (state->touch.pages) {
        if (address == state->touch.address + (__u64)state->touch.pages * page_bytes &&
            state->touch.write == state->fault_write && state->fault_enter - state->touch.end < TOUCH_APART) {
            state->touch.pages += pages;
            state->touch.busy += state->fault_end - state->fault_enter;
            state->touch.end = state->fault_end;
            return 0;
        }
        send_touch(state);
    }
    state->touch.address = address;
    state->touch.write = state->fault_write;
    state->touch.pages = pages;
    state->touch.enter = state->fault_enter;
    state->touch.busy = state->fault_end - state->fault_enter;
    state->touch.end = state->fault_end;
    return 0;
}

static __always_inline void settle_touches(struct task_state* state) {
    if (state->fault_counted) {
        add_touch(state);
    }
    if (state->touch.pages) {
        send_touch(state);
    }
}

/* Fewer, or cheaper ones, are told with what comes later. */
#define FAULTS_LEAST 128
#define DEAR_LEAST 100000 /* ns */

static __noinline int send_faults(struct task_state* state) {
    const __u32 sequence = state->sequence++, faults = state->faults, dear = state->dear;
    const __u64 dear_ns = state->dear_ns;
    state->faults = 0;
    state->dear = 0;
    state->dear_ns = 0;
    struct raw_faults* record = RESERVE(raw_faults);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_FAULTS, sizeof *record, sequence, bpf_ktime_get_ns());
    record->faults = faults;
    record->dear = dear;
    record->dear_ns = dear_ns;
    SUBMIT(record);
    return 0;
}

static __always_inline void settle_faults(struct task_state* state) {
    const bool measuring = state->dear_ns && !page_costs[PAGE_BASE].dear;
    if (state->faults >= FAULTS_LEAST || state->dear_ns >= DEAR_LEAST || measuring) {
        send_faults(state);
    }
}

#endif
