/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Calls of library functions that tasks are in, from the probe at their begin to the one at their return. */
#ifndef REPRISE_CAPTURE_LIBRARY_CALLS_H
#define REPRISE_CAPTURE_LIBRARY_CALLS_H

#include "common.h"

struct library_call {
    __u64 enter; /* ns */
    __u64 stack; /* where it was called: what it calls itself is below */
    __u64 args[7];
    __u32 function; /* enum probed_function */
    __u32 inner;    /* probed functions that it called and that have not returned */
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64); /* process and task */
    __type(value, struct library_call);
} library_calls SEC(".maps");
__u32 library_calls_made = 0;

/* The task ends, perhaps inside such a call; its number becomes another's. */
static __always_inline void forget_library_call(void) {
    if (library_calls_made) {
        const __u64 id = bpf_get_current_pid_tgid();
        bpf_map_delete_elem(&library_calls, &id);
    }
}

#endif
