/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Results of libaio that a job takes from the ring in its own memory, without a call, as QEMU does: looked for when its
 * next call begins, and told as a call of io_getevents that asked for none and took them. A job may let go of what it
 * took only once it has dealt with it, and so after it has submitted more: what is in the ring when it reads the
 * eventfd of its requests it takes then. */
#ifndef REPRISE_CAPTURE_AIO_RING_H
#define REPRISE_CAPTURE_AIO_RING_H

#include "lists.h"

#define NR_IO_DESTROY 207
#define NR_IO_GETEVENTS 208
#define NR_IO_SUBMIT 209
#define NR_IO_PGETEVENTS 333
#define AIO_RING_MAGIC 0xa10a10a1
#define AIO_RING_LIMIT 65536 /* entries */

/* User ABI; the events follow. */
struct aio_ring {
    __u32 id, entries, head, tail, magic, compat, incompat, header_length;
};
#define AIO_EVENT_WORDS 4

struct aio_ring_key {
    __u64 context;
    __u32 pid, pad;
};
struct aio_ring_state {
    __u32 told;        /* up to where; at or behind the ring's head, or as far ahead as there are results */
    __u32 inside;      /* threads in io_getevents: there the kernel takes them */
    __u32 itself, pad; /* results were taken without a call */
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, struct aio_ring_key);
    __type(value, struct aio_ring_state);
} aio_rings SEC(".maps");

static __always_inline bool takes_events(__u32 nr) { return nr == NR_IO_GETEVENTS || nr == NR_IO_PGETEVENTS; }

static __always_inline bool read_aio_ring(struct aio_ring* out, __u64 context) {
    return bpf_probe_read_user(out, sizeof *out, (void*)context) == 0 && out->magic == AIO_RING_MAGIC && out->entries &&
           out->entries <= AIO_RING_LIMIT && out->head < out->entries;
}

static long add_taken(__u32 i, void* context) {
    struct composer* c = context;
    __u64 words[AIO_EVENT_WORDS];
    const __u32 at = (c->which + i) % c->count;
    if (bpf_probe_read_user(words, sizeof words, (void*)(c->user + (__u64)at * sizeof words))) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return 1;
    }
    return put_event(c, words[0], words[1], words[2]);
}

static __always_inline __u32 ring_distance(const struct aio_ring* ring, __u32 from, __u32 to) {
    return (to + ring->entries - from) % ring->entries;
}

static __noinline int tell_taken(struct task_state* state, __u64 context, __u32 entries, __u32 from, __u32 taken) {
    struct composer c = {};
    if (!state || !entries || !compose(&c, sizeof(struct raw_call))) {
        return 0;
    }
    struct raw_call* call = (struct raw_call*)c.scratch->record;
    const __u64 time = bpf_ktime_get_ns();
    fill_head(&call->head, RAW_CALL, 0, state->sequence++, time);
    call->enter = time;
    call->result = taken;
    call->nr = NR_IO_GETEVENTS;
    call->pad = 0;
    call->own_ns = state->own;
    call->args[0] = context;
    call->args[1] = 0;
    call->args[2] = taken;
    call->args[3] = call->args[4] = call->args[5] = 0;
    c.user = context + sizeof(struct aio_ring);
    c.which = from;
    c.count = entries;
    bpf_loop(taken, add_taken, &c, 0);
    send(&c);
    state->own = bpf_ktime_get_ns() - time;
    return 0;
}

static __always_inline struct aio_ring_key aio_ring_key_of(__u64 context) {
    struct aio_ring_key key = {.context = context, .pid = bpf_get_current_pid_tgid() >> 32};
    return key;
}

static __noinline int forget_aio_ring(__u64 context) {
    const struct aio_ring_key key = aio_ring_key_of(context);
    bpf_map_delete_elem(&aio_rings, &key);
    return 0;
}

/* Of a task that has submitted: what it took since. `all`: and what is there, which it takes now. `enters`: it goes on
 * to wait there in the kernel. */
static __noinline int look_for_taken(struct task_state* state, bool all, bool enters) {
    if (!state) {
        return 0;
    }
    const __u64 context = state->aio_context;
    const struct aio_ring_key key = aio_ring_key_of(context);
    struct aio_ring_state* known = bpf_map_lookup_elem(&aio_rings, &key);
    struct aio_ring now;
    if (!known) {
        state->aio_context = 0; /* until it submits again: the context is gone, and another one may lie there */
        return 0;
    }
    const bool kernel_takes = known->inside != 0;
    if (!kernel_takes && !read_aio_ring(&now, context)) {
        return 0;
    }
    if (enters) {
        __sync_fetch_and_add(&known->inside, 1);
    }
    if (kernel_takes) {
        return 0;
    }
    const __u32 from = known->told, there = ring_distance(&now, now.head, now.tail);
    const bool behind = ring_distance(&now, now.head, from) > there;
    known->itself |= behind;
    const __u32 to = all && known->itself ? now.tail : behind ? now.head : from;
    if (to == from) {
        return 0;
    }
    known->told = to;
    return tell_taken(state, context, now.entries, from, ring_distance(&now, from, to));
}

/* io_getevents begins (1) or is over (-1), or requests were submitted (0). */
static __noinline int note_aio_ring(struct task_state* state, __u64 context, int inside) {
    struct aio_ring now;
    if (!state || !read_aio_ring(&now, context)) {
        return 0;
    }
    const struct aio_ring_key key = aio_ring_key_of(context);
    struct aio_ring_state* known = bpf_map_lookup_elem(&aio_rings, &key);
    if (!known) {
        const struct aio_ring_state fresh = {.told = now.head, .inside = inside > 0};
        bpf_map_update_elem(&aio_rings, &key, &fresh, BPF_NOEXIST);
    } else if (inside > 0) {
        __sync_fetch_and_add(&known->inside, 1);
    } else if (inside < 0) {
        if (known->inside) {
            __sync_fetch_and_sub(&known->inside, 1);
        }
        known->told = now.head;
    }
    if (inside == 0) {
        state->aio_context = context;
    }
    return 0;
}

/* Before a call of a task that uses libaio. It takes longer than what runs before other calls, and is told with this
 * one as the recorder's own. Returns when it began; 0: it was told with what was taken, or no call was before. */
static __noinline __u64 look_before(struct task_state* state, __u64 context, bool takes) {
    if (!state) {
        return 0;
    }
    const __u64 began = bpf_ktime_get_ns();
    const __u32 sequence = state->sequence;
    const bool same = takes && state->aio_context == context; /* looked at once for both */
    if (state->aio_context) {
        look_for_taken(state, 0, same);
    }
    if (takes && !(same && state->aio_context)) {
        note_aio_ring(state, context, 1);
    }
    return state->own && state->sequence == sequence ? began : 0;
}

#endif
