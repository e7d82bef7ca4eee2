/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Composing a record with parts in the scratch of this CPU. */
#ifndef REPRISE_CAPTURE_COMPOSE_H
#define REPRISE_CAPTURE_COMPOSE_H

#include "files.h"

#define PATH_LIMIT 4096
#define LIST_LIMIT 1024 /* UIO_MAXIOV */

struct composer {
    struct scratch* scratch;
    __u64 user;  /* address a loop callback reads from */
    __u64 base;  /* that of a loop around it */
    __u32 at;    /* bytes composed */
    __u32 flags; /* RAW_FLAG_* */
    __u32 count; /* entries of the list being composed */
    __u32 which;
    struct file* last;
};

/* Where the next part goes; what is added is smaller than the margin, so one check is enough. 0: full. */
static __always_inline void* place(struct composer* c) {
    __u32 at = c->at;
    barrier_var(at);
    if (at >= SCRATCH_LIMIT - SCRATCH_MARGIN) {
        c->flags |= RAW_FLAG_TRUNCATED;
        return 0;
    }
    return c->scratch->record + at;
}

static __always_inline struct raw_part* begin_part(struct composer* c, __u32 type, __u32 which, __u32 bytes,
                                                   __u32 length) {
    struct raw_part* part = place(c);
    if (!part) {
        return 0;
    }
    part->type = type;
    part->size = sizeof *part + ((bytes + 7) & ~7u);
    part->which = which;
    part->length = length;
    c->at += part->size;
    return part;
}

static __noinline void add_fd(struct composer* c, int fd, __u32 which) {
    struct raw_part* part = place(c);
    if (!part) {
        return;
    }
    struct raw_fd* out = (struct raw_fd*)(part + 1);
    struct file* file = file_of(bpf_get_current_task_btf(), fd);
    fill_part_fd(part, out, file, fd, which);
    if (which == RAW_WHICH_RESULT) {
        fill_cached(out, file);
    }
    c->last = (struct file*)out->file;
    remember_file(out);
    c->at += sizeof *part + sizeof *out;
}

static __always_inline void add_text(struct composer* c, __u32 type, __u64 user, __u32 which, bool in_kernel) {
    struct raw_part* part = place(c);
    if (!part) {
        return;
    }
    char* text = (char*)(part + 1);
    if (!user) {
        return;
    }
    long n = in_kernel ? bpf_probe_read_kernel_str(text, PATH_LIMIT + 8, (void*)user)
                       : bpf_probe_read_user_str(text, PATH_LIMIT + 8, (void*)user);
    if (n < 0) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return;
    }
    if (n > PATH_LIMIT) {
        c->flags |= RAW_FLAG_TRUNCATED;
    }
    const __u32 length = n > 0 ? n - 1 : 0;
    part->type = type;
    part->size = sizeof *part + ((length + 7) & ~7u);
    part->which = which;
    part->length = length;
    c->at += sizeof *part + ((length + 7) & ~7u);
}

static __noinline void add_path(struct composer* c, __u64 user, __u32 which) {
    add_text(c, RAW_PART_PATH, user, which, 0);
}
static __noinline void add_string(struct composer* c, __u64 user, __u32 which) {
    add_text(c, RAW_PART_STRING, user, which, 0);
}

/* Bytes that the call wrote; they have no end of their own. */
static __noinline void add_bytes(struct composer* c, __u64 user, __u32 which, __s64 bytes) {
    struct raw_part* part = place(c);
    if (!part || !user || bytes <= 0) {
        return;
    }
    __u32 length = bytes > PATH_LIMIT ? PATH_LIMIT : bytes;
    barrier_var(length);
    if (length > PATH_LIMIT) {
        return;
    }
    if (bpf_probe_read_user(part + 1, length, (void*)user)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return;
    }
    part->type = RAW_PART_STRING;
    part->size = sizeof *part + ((length + 7) & ~7u);
    part->which = which;
    part->length = length;
    c->at += sizeof *part + ((length + 7) & ~7u);
}

/* `words` 64-bit values as user memory has them. */
static __noinline void add_values(struct composer* c, __u64 user, __u32 which, __u32 words) {
    struct raw_part* part = place(c);
    if (!part || !user) {
        return;
    }
    words &= 31;
    if (bpf_probe_read_user(part + 1, words * 8, (void*)user)) {
        c->flags |= RAW_FLAG_UNREADABLE;
        return;
    }
    part->type = RAW_PART_VALUES;
    part->size = sizeof *part + words * 8;
    part->which = which;
    part->length = words;
    c->at += sizeof *part + words * 8;
}

static __always_inline bool send(struct composer* c) {
    struct raw_head* head = (struct raw_head*)c->scratch->record;
    __u32 size = c->at;
    barrier_var(size);
    if (size >= SCRATCH_LIMIT) {
        return 0;
    }
    head->size = size;
    head->flags |= c->flags;
    if (bpf_ringbuf_output(&ring, c->scratch->record, size, BPF_RB_NO_WAKEUP)) {
        count(COUNT_LOST, 1);
        return 0;
    }
    return 1;
}

static __always_inline bool compose(struct composer* c, __u32 fixed) {
    const __u32 cpu = bpf_get_smp_processor_id();
    c->scratch = bpf_map_lookup_elem(&scratches, &cpu);
    c->at = fixed;
    return c->scratch != 0;
}

#endif
