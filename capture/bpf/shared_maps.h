/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which addresses of a process are files mapped shared. There, a write to a page that was only read before faults, and
 * the file system is told of the page. On a process's own memory such faults are copies after a fork and of no concern;
 * they cost no more than the look here, as looking for the mapping takes microseconds at an exception (faults.h).
 * Ranges may be wider than what is mapped, never narrower. */
#ifndef REPRISE_CAPTURE_SHARED_MAPS_H
#define REPRISE_CAPTURE_SHARED_MAPS_H

#include "common.h"

#define MAP_SHARED 1 /* a bit of MAP_SHARED_VALIDATE, too */
#define NR_MREMAP 25

static __noinline int add_shared(__u32 pid, __u64 from, __u64 bytes) {
    static const struct shared_ranges none = {};
    const __u64 to = from + bytes;
    struct shared_ranges* all = bpf_map_lookup_elem(&shared_maps, &pid);
    if (!all) {
        bpf_map_update_elem(&shared_maps, &pid, &none, BPF_NOEXIST);
        all = bpf_map_lookup_elem(&shared_maps, &pid);
        if (!all) {
            return 0;
        }
    }
    shared_made = 1;
    for (__u32 i = 0; i < SHARED_RANGES; ++i) {
        if (i >= all->used) {
            all->range[i].from = from;
            all->range[i].to = to;
            all->used = i + 1;
            return 0;
        }
        /* One that it overlaps or continues grows; where there is no room left, the last one. */
        if ((from <= all->range[i].to && all->range[i].from <= to) || i == SHARED_RANGES - 1) {
            all->range[i].from = all->range[i].from < from ? all->range[i].from : from;
            all->range[i].to = all->range[i].to > to ? all->range[i].to : to;
            return 0;
        }
    }
    return 0;
}

static __always_inline bool is_shared(__u32 pid, __u64 address) {
    if (!shared_made) {
        return 0;
    }
    const struct shared_ranges* all = bpf_map_lookup_elem(&shared_maps, &pid);
    if (!all) {
        return 0;
    }
    for (__u32 i = 0; i < SHARED_RANGES; ++i) {
        if (i >= all->used) {
            break;
        }
        if (all->range[i].from <= address && address < all->range[i].to) {
            return 1;
        }
    }
    return 0;
}

/* One that ends whole is forgotten. */
static __noinline int remove_shared(__u32 pid, __u64 from, __u64 bytes) {
    struct shared_ranges* all = shared_made ? bpf_map_lookup_elem(&shared_maps, &pid) : 0;
    if (!all) {
        return 0;
    }
    for (__u32 i = 0; i < SHARED_RANGES; ++i) {
        if (i >= all->used) {
            break;
        }
        if (from <= all->range[i].from && all->range[i].to <= from + bytes) {
            const __u32 last = (all->used - 1) & (SHARED_RANGES - 1);
            all->range[i].from = all->range[last].from;
            all->range[i].to = all->range[last].to;
            all->used = last;
            break;
        }
    }
    return 0;
}

static __always_inline void inherit_shared(__u32 parent, __u32 child) {
    if (!shared_made || parent == child) {
        return;
    }
    const struct shared_ranges* all = bpf_map_lookup_elem(&shared_maps, &parent);
    if (all) {
        bpf_map_update_elem(&shared_maps, &child, all, 0);
    }
}

static __always_inline void forget_shared(__u32 pid) {
    if (shared_made) {
        bpf_map_delete_elem(&shared_maps, &pid);
    }
}

/* An mmap of a file, or a call that ends or moves mappings, has returned. */
static __always_inline void note_mapping(struct pt_regs* regs, __u32 nr, __u32 flags, __u64 result) {
    const __u32 pid = bpf_get_current_pid_tgid() >> 32;
    if (result > -4096ull) {
        return;
    }
    if (flags & RULE_NOT_ANON) {
        add_shared(pid, result, regs->si);
    } else if (nr != NR_MREMAP) {
        remove_shared(pid, regs->di, regs->si);
    } else if (is_shared(pid, regs->di)) {
        add_shared(pid, result, regs->dx);
    }
}

#endif
