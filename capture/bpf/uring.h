/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Requests of io_uring: as submitted (also by the polling thread) and as completed. */
#ifndef REPRISE_CAPTURE_URING_H
#define REPRISE_CAPTURE_URING_H

#include "tasks.h"

#define SETUP_SQE128 (1u << 10)
#define SETUP_NO_SQARRAY (1u << 16)
#define PF_IO_WORKER 0x10
#define NR_URING_ENTER 426

/* User ABI of a request. */
struct uring_sqe {
    __u8 opcode, flags;
    __u16 ioprio;
    __s32 fd;
    __u64 offset, address;
    __u32 length, rw_flags;
    __u64 user_data;
    __u16 buffer, personality;
    __u32 file_index;
};

enum uring_op {
    URING_READV = 1,
    URING_WRITEV = 2,
    URING_FALLOCATE = 17,
    URING_OPENAT = 18,
    URING_CLOSE = 19,
    URING_STATX = 21,
    URING_OPENAT2 = 28,
    URING_RENAMEAT = 35,
    URING_UNLINKAT = 36,
    URING_MKDIRAT = 37,
    URING_SYMLINKAT = 38,
    URING_LINKAT = 39,
};

/* A fixed file of the ring; 0 where the kernel keeps them otherwise (before 6.13). */
static __always_inline struct file* fixed_file(struct io_ring_ctx* ring_context, __u32 number) {
    if (!bpf_core_field_exists(ring_context->file_table.data.nodes)) {
        return 0;
    }
    if (number >= BPF_CORE_READ(ring_context, file_table.data.nr)) {
        return 0;
    }
    struct io_rsrc_node** nodes = BPF_CORE_READ(ring_context, file_table.data.nodes);
    struct io_rsrc_node* node = 0;
    if (bpf_probe_read_kernel(&node, sizeof node, nodes + number) || !node) {
        return 0;
    }
    return (struct file*)(BPF_CORE_READ(node, file_ptr) & ~7ul); /* the low bits are flags */
}

static __always_inline bool read_sqe(struct io_kiocb* request, struct uring_sqe* sqe) {
    struct io_ring_ctx* ring_context = BPF_CORE_READ(request, ctx);
    const __u32 flags = BPF_CORE_READ(ring_context, flags);
    const __u32 mask = BPF_CORE_READ(ring_context, sq_entries) - 1;
    __u32 head = (BPF_CORE_READ(ring_context, cached_sq_head) - 1) & mask;
    __u32* array = BPF_CORE_READ(ring_context, sq_array);
    if (!(flags & SETUP_NO_SQARRAY) && array) {
        bpf_probe_read_kernel(&head, sizeof head, array + head);
        head &= mask;
    }
    const __u64 at = (__u64)BPF_CORE_READ(ring_context, sq_sqes) + ((__u64)head << (flags & SETUP_SQE128 ? 7 : 6));
    return bpf_probe_read_kernel(sqe, sizeof *sqe, (void*)at) == 0;
}

SEC(HOOK "io_uring_submit_req")
int BPF_PROG(uring_submit, struct io_kiocb* request) {
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) {
        return 0;
    }
    struct composer c = {};
    struct uring_sqe sqe = {};
    if (!compose(&c, sizeof(struct raw_uring))) {
        return 0;
    }
    const bool read = read_sqe(request, &sqe);
    struct raw_uring* record = (struct raw_uring*)c.scratch->record;
    fill_head(&record->head, RAW_URING_SUBMIT, 0, state->sequence++, bpf_ktime_get_ns());
    if (!read) {
        c.flags |= RAW_FLAG_UNREADABLE;
    }
    record->ring = (__u64)BPF_CORE_READ(request, ctx);
    record->request = (__u64)request;
    record->user_data = BPF_CORE_READ(request, cqe.user_data);
    record->offset = sqe.offset;
    record->file = 0;
    record->length = sqe.length;
    record->fd = sqe.fd;
    record->result = 0;
    record->flags = sqe.flags;
    record->opcode = BPF_CORE_READ(request, opcode);
    record->sqpoll = !state->enter || state->nr != NR_URING_ENTER;
    record->rw_flags = sqe.rw_flags;
    if (!(sqe.flags & 1) && sqe.fd >= 0) { /* IOSQE_FIXED_FILE: an index, the file is told at completion */
        add_fd(&c, sqe.fd, 0);
        record->file = (__u64)c.last;
    }
    switch (record->opcode) {
        case URING_READV:
        case URING_WRITEV: add_iovec(&c, sqe.address, sqe.length, 1); break;
        case URING_FALLOCATE: {
            struct raw_part* part = begin_part(&c, RAW_PART_VALUES, 1, 8, 1);
            if (part) {
                *(__u64*)(part + 1) = sqe.address; /* the length; sqe.length is the mode */
            }
            break;
        }
        case URING_CLOSE: record->result = sqe.file_index; break;
        case URING_OPENAT2: add_values(&c, sqe.offset, 2, 3); /* fall through */
        case URING_OPENAT: record->result = sqe.file_index;   /* fall through */
        case URING_STATX:
        case URING_UNLINKAT:
        case URING_MKDIRAT: add_path(&c, sqe.address, 1); break;
        case URING_RENAMEAT:
        case URING_LINKAT:
            if ((__s32)sqe.length >= 0) {
                add_fd(&c, sqe.length, 2); /* fall through */
            }
        case URING_SYMLINKAT:
            add_path(&c, sqe.address, 1);
            add_path(&c, sqe.offset, 3);
            break;
        default: break;
    }
    send(&c);
    return 0;
}

static __always_inline void add_file(struct composer* c, struct file* file, int fd, __u32 which) {
    struct raw_part* part = place(c);
    if (!part) {
        return;
    }
    struct raw_fd* out = (struct raw_fd*)(part + 1);
    fill_part_fd(part, out, file, fd, which);
    if (which == RAW_WHICH_RESULT) {
        fill_cached(out, file);
    }
    remember_file(out);
    c->at += sizeof *part + sizeof *out;
}

/* What an open made: a descriptor, or a fixed file in a slot that the request names or leaves to the kernel. */
static __always_inline void add_opened(struct composer* c, struct io_ring_ctx* ring_context, struct io_open* open,
                                       __s32 result) {
    const __u32 slot = bpf_core_field_exists(open->file_slot) ? BPF_CORE_READ(open, file_slot) : 0;
    if (slot) {
        add_file(c, fixed_file(ring_context, slot == ~0u ? (__u32)result : slot - 1), -1, RAW_WHICH_RESULT);
    } else {
        add_fd(c, result, RAW_WHICH_RESULT);
    }
}

SEC(HOOK "io_uring_complete")
int BPF_PROG(uring_complete, struct io_ring_ctx* ring_context, void* request, struct io_uring_cqe* cqe) {
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) {
        return 0;
    }
    struct composer c = {};
    if (!compose(&c, sizeof(struct raw_uring))) {
        return 0;
    }
    struct raw_uring* record = (struct raw_uring*)c.scratch->record;
    fill_head(&record->head, RAW_URING_COMPLETE, 0, state->sequence++, bpf_ktime_get_ns());
    struct io_kiocb* done = request;
    record->ring = (__u64)ring_context;
    record->request = (__u64)request;
    record->user_data = BPF_CORE_READ(cqe, user_data);
    record->offset = 0;
    record->file = request ? (__u64)BPF_CORE_READ(done, file) : 0;
    record->length = 0;
    record->fd = -1;
    record->result = BPF_CORE_READ(cqe, res);
    record->flags = BPF_CORE_READ(cqe, flags);
    record->opcode = request ? BPF_CORE_READ(done, opcode) : 0;
    record->sqpoll = 0;
    record->rw_flags = 0;
    const __s32 result = record->result;
    const __u16 opcode = record->opcode;
    if (record->file) {
        add_file(&c, (struct file*)record->file, -1, 0);
    }
    if (request && result >= 0 && (opcode == URING_OPENAT || opcode == URING_OPENAT2)) {
        add_opened(&c, ring_context, request, result);
    }
    if (request && result == 0 && opcode == URING_STATX) {
        struct io_statx* asked = request;
        if (bpf_core_field_exists(asked->buffer)) {
            add_statx(&c, (__u64)BPF_CORE_READ(asked, buffer), 4);
        }
    }
    send(&c);
    return 0;
}

#endif
