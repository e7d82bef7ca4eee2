/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What calls point to: vectors, messages, control blocks, stat buffers. Layouts are the user ABI
 * of x86-64. */
#ifndef REPRISE_CAPTURE_LISTS_H
#define REPRISE_CAPTURE_LISTS_H

#include "compose.h"

/* Reads `count` entries of `each` bytes into the list of the scratch; at most what fits there. */
static __always_inline __u32 read_list(struct composer* c, __u64 user, __u64 entries, __u32 each) {
    const __u32 most = sizeof c->scratch->list / 2 / each;
    if (entries > most) {
        entries = most;
        c->flags |= RAW_FLAG_TRUNCATED;
    }
    __u32 bytes = (__u32)entries * each;
    barrier_var(bytes);
    if (!user || bytes == 0 || bytes > sizeof c->scratch->list / 2) {
        return 0;
    }
    /* A short list is copied to the stack first: a copy to a map's memory makes the kernel look up its bounds. */
    __u64 few[4] = {};
    const bool is_short = bytes <= sizeof few;
    void* const to = c->scratch->list;
    if (is_short ? bpf_probe_read_user(few, bytes, (void*)user) : bpf_probe_read_user(to, bytes, (void*)user)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return 0;
    }
    if (is_short) {
        __builtin_memcpy(to, few, sizeof few);
    }
    return entries;
}

/* The n-th 64-bit word of the list. */
static __always_inline __u64 list_word(struct composer* c, __u32 n) {
    n &= sizeof c->scratch->list / 8 - 1;
    barrier_var(n);
    return *(__u64*)(c->scratch->list + n * 8);
}

/* The n-th number of the part being composed at `at`. */
static __always_inline void put_number(struct composer* c, __u32 n, __u64 value) {
    __u32 at = c->at;
    barrier_var(at);
    if (at >= SCRATCH_LIMIT - SCRATCH_MARGIN) {
        return;
    }
    n &= LIST_LIMIT - 1; /* never more; said for the verifier */
    barrier_var(n);
    *(__u64*)(c->scratch->record + at + sizeof(struct raw_part) + n * 8) = value;
}

static long put_iovec(__u32 i, void* context) {
    struct composer* c = context;
    put_number(c, i, list_word(c, i * 2 + 1));
    return 0;
}
static __noinline void add_iovec(struct composer* c, __u64 user, __u64 entries, __u32 which) {
    const __u32 n = read_list(c, user, entries, 16);
    if (!n || !place(c)) {
        return;
    }
    bpf_loop(n, put_iovec, c, 0);
    begin_part(c, RAW_PART_LIST, which, n * 8, n);
}

/* Where the buffers are. */
static long put_buffer(__u32 i, void* context) {
    struct composer* c = context;
    put_number(c, i, list_word(c, i * 2));
    return 0;
}
static __noinline void add_direct_buffers(struct composer* c, struct file* file, __u64 user, __u64 entries,
                                          __u32 which) {
    if (!file || !(BPF_CORE_READ(file, f_flags) & O_DIRECT)) {
        return;
    }
    const __u32 n = read_list(c, user, entries, 16);
    if (!n || !place(c)) {
        return;
    }
    bpf_loop(n, put_buffer, c, 0);
    begin_part(c, RAW_PART_VALUES, which, n * 8, n);
}

/* Kernel's own coding of a device number, as in raw_fd. */
static __always_inline __u32 kernel_device(__u32 major, __u32 minor) { return major << 20 | (minor & 0xfffff); }

static __noinline void add_stat(struct composer* c, __u64 user, __u32 which) {
    __u64 words[7]; /* dev ino nlink mode|uid gid|pad rdev size */
    if (!user || bpf_probe_read_user(words, sizeof words, (void*)user)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return;
    }
    struct raw_part* part = begin_part(c, RAW_PART_STAT, which, sizeof(struct raw_stat), 1);
    if (!part) {
        return;
    }
    struct raw_stat* out = (struct raw_stat*)(part + 1);
    const __u64 dev = words[0];
    out->device = kernel_device((dev >> 8 & 0xfff) | (dev >> 32 & ~0xfffu), (dev & 0xff) | (dev >> 12 & ~0xffu));
    out->inode = words[1];
    out->size = words[6];
    out->mode = (__u32)words[3];
    out->links = words[2];
}

static __noinline void add_statx(struct composer* c, __u64 user, __u32 which) {
    __u32 words[36]; /* struct statx up to stx_dev_minor */
    if (!user || bpf_probe_read_user(words, sizeof words, (void*)user)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return;
    }
    struct raw_part* part = begin_part(c, RAW_PART_STAT, which, sizeof(struct raw_stat), 1);
    if (!part) {
        return;
    }
    struct raw_stat* out = (struct raw_stat*)(part + 1);
    out->device = kernel_device(words[34], words[35]);
    out->inode = words[8] | (__u64)words[9] << 32;
    out->size = words[10] | (__u64)words[11] << 32;
    out->mode = words[7] & 0xffff;
    out->links = words[4];
}

/* SCM_RIGHTS: descriptors that travel. At the exit of a receive they are the receiver's own. */
static long add_passed(__u32 i, void* context) {
    struct composer* c = context;
    int fd = -1;
    if (bpf_probe_read_user(&fd, sizeof fd, (void*)(c->user + i * 4))) {
        return 1;
    }
    add_fd(c, fd, c->which + i);
    return 0;
}
struct control_head {
    __u64 length;
    __s32 level, type;
};
/* The descriptors of one message's control data; its first one is number c->count of the call. */
static __noinline void add_control(struct composer* c, __u64 at, __u64 left, bool receives) {
    for (int k = 0; k < 4; ++k) {
        struct control_head head;
        if (!at || left < sizeof head || bpf_probe_read_user(&head, sizeof head, (void*)at)) {
            return;
        }
        if (head.length < sizeof head || head.length > left) {
            return;
        }
        if (head.level == 1 && head.type == 1) { /* SOL_SOCKET, SCM_RIGHTS */
            __u64 n = (head.length - sizeof head) / 4;
            if (c->count + n > 32) {
                c->flags |= RAW_FLAG_TRUNCATED;
                n = c->count < 32 ? 32 - c->count : 0;
            }
            c->user = at + sizeof head;
            c->which = (receives ? RAW_WHICH_RECEIVED : RAW_WHICH_SENT) + c->count;
            bpf_loop(n, add_passed, c, 0);
            c->count += n;
            return;
        }
        const __u64 step = (head.length + 7) & ~7ull;
        if (step > left) {
            return;
        }
        at += step;
        left -= step;
    }
}
static __noinline void add_message(struct composer* c, __u64 user, __u32 which, bool receives) {
    __u64 message[7]; /* name namelen iov iovlen control controllen flags */
    if (!user || bpf_probe_read_user(message, sizeof message, (void*)user)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return;
    }
    add_iovec(c, message[2], message[3], which);
    c->count = 0;
    add_control(c, message[4], message[5], receives);
}

/* sendmmsg, recvmmsg: struct {msghdr; u32 bytes}, 64 bytes each; those that the call dealt with. */
#define MESSAGES_LIMIT 256
#define MESSAGES_WITH_CONTROL 32
static long put_message_bytes(__u32 i, void* context) {
    struct composer* c = context;
    __u32 bytes = 0;
    if (bpf_probe_read_user(&bytes, sizeof bytes, (void*)(c->base + (__u64)i * 64 + 56))) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return 1;
    }
    put_number(c, i, bytes);
    return 0;
}
static __always_inline long add_messages_control(__u32 i, struct composer* c, bool receives) {
    __u64 control[2];
    if (bpf_probe_read_user(control, sizeof control, (void*)(c->base + (__u64)i * 64 + 32))) {
        return 1;
    }
    if (control[0] && control[1]) {
        add_control(c, control[0], control[1], receives);
    }
    return 0;
}
static long add_received(__u32 i, void* context) { return add_messages_control(i, context, 1); }
static long add_sent(__u32 i, void* context) { return add_messages_control(i, context, 0); }
static __noinline void add_messages(struct composer* c, __u64 user, __u32 which, bool receives, __s64 messages) {
    if (messages <= 0 || !user || !place(c)) {
        return;
    }
    if (messages > MESSAGES_LIMIT) {
        messages = MESSAGES_LIMIT;
        c->flags |= RAW_FLAG_TRUNCATED;
    }
    c->base = user;
    bpf_loop(messages, put_message_bytes, c, 0);
    begin_part(c, RAW_PART_LIST, which, (__u32)messages * 8, messages);
    if (messages > MESSAGES_WITH_CONTROL) {
        messages = MESSAGES_WITH_CONTROL;
    }
    c->count = 0;
    if (receives) {
        bpf_loop(messages, add_received, c, 0);
    } else {
        bpf_loop(messages, add_sent, c, 0);
    }
}

/* The vector of one control block; few buffers, as the list of the scratch holds the blocks' addresses meanwhile. */
#define IOCB_PREADV 7
#define IOCB_HAS_EVENTFD 1
#define IOCB_PWRITEV 8
static long put_block_size(__u32 i, void* context) {
    struct composer* c = context;
    __u64 size = 0;
    if (bpf_probe_read_user(&size, sizeof size, (void*)(c->user + (__u64)i * 16 + 8))) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return 1;
    }
    put_number(c, i, size);
    return 0;
}
static __noinline void add_block_iovec(struct composer* c, __u64 user, __u64 entries) {
    if (!place(c) || entries == 0 || entries > LIST_LIMIT) {
        return;
    }
    c->user = user;
    bpf_loop(entries, put_block_size, c, 0);
    begin_part(c, RAW_PART_LIST, 2, (__u32)entries * 8, entries);
}

/* io_submit: the blocks it took, each followed by the descriptor where that differs from the one before. */
static long add_iocb(__u32 i, void* context) {
    struct composer* c = context;
    const __u64 address = list_word(c, i);
    __u64 words[8]; /* data key|rw_flags opcode|prio|fd buf nbytes offset reserved flags|resfd */
    if (bpf_probe_read_user(words, sizeof words, (void*)address)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return 0;
    }
    struct raw_part* part = begin_part(c, RAW_PART_IOCB, 2, sizeof(struct raw_iocb), 1);
    if (!part) {
        return 1;
    }
    struct raw_iocb* out = (struct raw_iocb*)(part + 1);
    out->iocb = address;
    out->data = words[0];
    out->offset = words[5];
    out->length = words[4];
    out->opcode = (__u16)words[2];
    out->rw_flags = (__u16)(words[1] >> 32);
    out->fd = (__s32)(words[2] >> 32);
    out->buffer = words[3];
    const int fd = out->fd;
    const __u16 opcode = out->opcode;
    if (opcode == IOCB_PREADV || opcode == IOCB_PWRITEV) {
        bpf_probe_read_user(&out->buffer, sizeof out->buffer, (void*)words[3]);
    }
    if (i == 0 || c->count != (__u32)fd) {
        add_fd(c, fd, 2);
    }
    struct task_state* state = words[7] & IOCB_HAS_EVENTFD ? state_of(bpf_get_current_task_btf()) : 0;
    if (state) {
        state->aio_eventfd = (words[7] >> 32) + 1;
    }
    c->count = fd;
    if (opcode == IOCB_PREADV || opcode == IOCB_PWRITEV) {
        add_block_iovec(c, words[3], words[4]);
    }
    return 0;
}
static __noinline void add_iocbs(struct composer* c, __u64 user, __s64 entries) {
    if (entries <= 0) {
        return;
    }
    const __u32 n = read_list(c, user, entries, 8);
    bpf_loop(n, add_iocb, c, 0);
}

/* A result of libaio; 1 where there is no room. */
static __always_inline long put_event(struct composer* c, __u64 data, __u64 iocb, __s64 result) {
    struct raw_part* part = begin_part(c, RAW_PART_EVENT, 3, sizeof(struct raw_aio_event), 1);
    if (!part) {
        return 1;
    }
    struct raw_aio_event* out = (struct raw_aio_event*)(part + 1);
    out->data = data;
    out->iocb = iocb;
    out->result = result;
    return 0;
}
static long add_event(__u32 i, void* context) {
    struct composer* c = context;
    return put_event(c, list_word(c, i * 4), list_word(c, i * 4 + 1), list_word(c, i * 4 + 2));
}
static __noinline void add_events(struct composer* c, __u64 user, __s64 entries) {
    if (entries <= 0) {
        return;
    }
    const __u32 n = read_list(c, user, entries, 32);
    bpf_loop(n, add_event, c, 0);
}

#endif
