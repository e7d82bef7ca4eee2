/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Requests of io_uring: as submitted (also by the polling thread) and as completed. */
#ifndef REPRISE_CAPTURE_URING_H
#define REPRISE_CAPTURE_URING_H

#include "tasks.h"

#define SETUP_SQE128 (1u << 10)
#define SETUP_NO_SQARRAY (1u << 16)
#define PF_IO_WORKER 0x10
#define NR_URING_ENTER 426
#define FIXED_FILE 1            /* IOSQE_FIXED_FILE, REQ_F_FIXED_FILE */
#define FIXED_SOURCE (1u << 31) /* SPLICE_F_FD_IN_FIXED */

/* User ABI of a request, as far as it is used. */
struct uring_sqe {
    __u8 opcode, flags;
    __u16 ioprio;
    __s32 fd;
    __u64 offset, address;
    __u32 length, rw_flags;
    __u64 user_data;
    __u16 buffer, personality;
    __u32 file_index;
} __attribute__((may_alias));

enum uring_op {
    URING_READV = 1,
    URING_WRITEV = 2,
    URING_FALLOCATE = 17,
    URING_OPENAT = 18,
    URING_CLOSE = 19,
    URING_STATX = 21,
    URING_MADVISE = 25,
    URING_OPENAT2 = 28,
    URING_SPLICE = 30,
    URING_TEE = 33,
    URING_RENAMEAT = 35,
    URING_UNLINKAT = 36,
    URING_MKDIRAT = 37,
    URING_SYMLINKAT = 38,
    URING_LINKAT = 39,
};

/* As word_at(). */
static __always_inline __u32 half_at(const void* address) {
    __u32 half = 0;
    if (use_cast) {
        return CAST(address, io_uring)->head;
    }
    bpf_probe_read_kernel(&half, sizeof half, address);
    return half;
}

/* A fixed file of the ring; 0 where the kernel keeps them otherwise (before 6.13). */
static __always_inline __u64 fixed_file(struct io_ring_ctx* ring_context, __u32 number) {
    if (!bpf_core_field_exists(ring_context->file_table.data.nodes) || number >= ring_context->file_table.data.nr) {
        return 0;
    }
    const __u64 node = word_at((void*)ring_context->file_table.data.nodes + (__u64)number * sizeof(void*));
    const struct io_rsrc_node* at = (const struct io_rsrc_node*)node;
    return node ? word_at(&at->file_ptr) & ~7ull : 0; /* the low bits are flags */
}

static __always_inline bool read_sqe(struct io_ring_ctx* ring_context, struct uring_sqe* sqe) {
    const __u32 flags = ring_context->flags;
    const __u32 mask = ring_context->sq_entries - 1;
    __u32 head = (ring_context->cached_sq_head - 1) & mask;
    const void* array = ring_context->sq_array;
    if (!(flags & SETUP_NO_SQARRAY) && array) {
        head = half_at(array + (__u64)head * 4) & mask;
    }
    const __u64 at = word_at(&ring_context->sq_sqes) + ((__u64)head << (flags & SETUP_SQE128 ? 7 : 6));
    if (!use_cast) {
        return bpf_probe_read_kernel(sqe, sizeof *sqe, (void*)at) == 0;
    }
    __u64* words = (__u64*)sqe;
#pragma unroll
    for (unsigned i = 0; i < sizeof *sqe / sizeof *words; ++i) {
        words[i] = word_at((void*)(at + i * sizeof *words));
    }
    return 1;
}

/* Files and disks that were told of late: requests name the same few again and again. */
#define TOLD_FILES 4096
struct told_file {
    __u64 file, inode;
    __u32 device, generation, flags, pad;
};
static struct told_file told_files[TOLD_FILES];

static __always_inline struct told_file* told_slot(__u64 file) {
    return &told_files[(file >> 6 ^ file >> 18) & (TOLD_FILES - 1)];
}
static __always_inline bool is_told(__u64 number) {
    const struct told_file* slot = told_slot(number);
    if (!use_cast || slot->file != number) {
        return 0;
    }
    struct file* file = CAST((void*)number, file);
    struct inode* inode = file->f_inode;
    struct super_block* super = inode ? inode->i_sb : 0;
    return super && slot->inode == inode->i_ino && slot->generation == inode->i_generation &&
           slot->device == super->s_dev && slot->flags == file->f_flags;
}
/* Once the record is on its way. */
static __always_inline void note_told(const struct raw_fd* fd) {
    const __u32 type = fd->mode & S_IFMT;
    if (type == S_IFREG || type == S_IFBLK) {
        struct told_file* slot = told_slot(fd->file);
        slot->file = 0;
        slot->inode = fd->inode;
        slot->device = fd->device;
        slot->generation = fd->generation;
        slot->flags = fd->flags;
        slot->file = fd->file;
    }
}

static __always_inline void fill_uring(struct raw_uring* record, struct io_ring_ctx* ring_context, __u64 request) {
    record->ring = (__u64)ring_context;
    record->request = request;
    record->taken = ring_context->rings->cq.head;
    record->completed = ring_context->cached_cq_tail;
}

static __always_inline void add_file(struct composer* c, __u64 file, int fd, __u32 which) {
    struct raw_part* part = place(c);
    if (!part) {
        return;
    }
    struct raw_fd* out = (struct raw_fd*)(part + 1);
    fill_part_fd(part, out, (struct file*)file, fd, which);
    if (which == RAW_WHICH_RESULT) {
        fill_cached(out, (struct file*)file);
    }
    remember_file(out);
    c->at += sizeof *part + sizeof *out;
}

/* Sends a record whose first part may be of its file. */
static __always_inline void send_uring(struct composer* c, bool tells) {
    if (send(c) && tells) {
        note_told((const struct raw_fd*)(c->scratch->record + sizeof(struct raw_uring) + sizeof(struct raw_part)));
    }
}

/* Requests that stand for calls tell their files each time. */
#define CALLS                                                                                            \
    (1ull << URING_OPENAT | 1ull << URING_CLOSE | 1ull << URING_STATX | 1ull << URING_OPENAT2 |          \
     1ull << URING_RENAMEAT | 1ull << URING_UNLINKAT | 1ull << URING_MKDIRAT | 1ull << URING_SYMLINKAT | \
     1ull << URING_LINKAT | 1ull << URING_SPLICE | 1ull << URING_TEE)
#define WITH_PARTS (CALLS | 1ull << URING_READV | 1ull << URING_WRITEV | 1ull << URING_FALLOCATE)
static __always_inline bool is_in(__u64 codes, __u8 opcode) { return opcode < 64 && codes >> opcode & 1; }

static __always_inline void add_parts(struct composer* c, struct raw_uring* record, const struct uring_sqe* sqe,
                                      struct io_ring_ctx* ring_context) {
    switch (record->opcode) {
        case URING_READV:
        case URING_WRITEV:
            bpf_probe_read_user(&record->address, sizeof record->address, (void*)sqe->address);
            add_iovec(c, sqe->address, sqe->length, 1);
            break;
        case URING_FALLOCATE: {
            struct raw_part* part = begin_part(c, RAW_PART_VALUES, 1, 8, 1);
            if (part) {
                *(__u64*)(part + 1) = sqe->address; /* the length; sqe->length is the mode */
            }
            break;
        }
        case URING_CLOSE: record->result = sqe->file_index; break;
        case URING_SPLICE:
        case URING_TEE:
            record->result = sqe->file_index; /* there: the descriptor that it reads from */
            if (sqe->rw_flags & FIXED_SOURCE) {
                add_file(c, fixed_file(ring_context, sqe->file_index), -1, 2);
            } else {
                add_fd(c, sqe->file_index, 2);
            }
            break;
        case URING_OPENAT2: add_values(c, sqe->offset, 2, 3); /* fall through */
        case URING_OPENAT: record->result = sqe->file_index;  /* fall through */
        case URING_STATX:
        case URING_UNLINKAT:
        case URING_MKDIRAT: add_path(c, sqe->address, 1); break;
        case URING_RENAMEAT:
        case URING_LINKAT:
            if ((__s32)sqe->length >= 0) {
                add_fd(c, sqe->length, 2); /* fall through */
            }
        case URING_SYMLINKAT:
            add_path(c, sqe->address, 1);
            add_path(c, sqe->offset, 3);
            break;
        default: break;
    }
}

static __always_inline void fill_submit(struct raw_uring* record, struct io_kiocb* request, const struct uring_sqe* sqe,
                                        __u64 file, const struct task_state* state) {
    record->sqpoll = !state->enter || state->nr != NR_URING_ENTER;
    record->behind = record->sqpoll ? request->ctx->rings->sq.tail - request->ctx->cached_sq_head : 0;
    record->pad = 0;
    asm volatile("" ::: "memory"); /* what the job takes it moves before it puts more in line */
    fill_uring(record, request->ctx, (__u64)request);
    record->user_data = sqe->user_data;
    record->offset = sqe->offset;
    record->file = file;
    record->address = sqe->address;
    record->length = sqe->length;
    record->fd = sqe->fd;
    record->result = 0;
    record->flags = sqe->flags;
    record->rw_flags = sqe->rw_flags;
    record->opcode = request->opcode;
    record->buffer = sqe->buffer;
}

/* The file of a request, as far as it is known: a fixed one may come by a request before this one. */
static __always_inline __u64 submitted_file(struct io_ring_ctx* ring_context, const struct uring_sqe* sqe) {
    if (sqe->flags & FIXED_FILE) {
        return fixed_file(ring_context, sqe->fd);
    }
    return number_of_file(bpf_get_current_task_btf(), sqe->fd);
}

/* Requests that a call submits one right after the other have one time. */
static __always_inline __u64 submit_time(struct task_state* state, __u32 sequence) {
    if (!state->enter || state->submit_sequence + 1 != sequence || state->submit_time < state->enter) {
        state->submit_time = bpf_ktime_get_ns();
    }
    state->submit_sequence = sequence;
    return state->submit_time;
}

SEC(HOOK "io_uring_submit_req")
int BPF_PROG(uring_submit, struct io_kiocb* request) {
    TYPED(request, io_kiocb);
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) {
        return 0;
    }
    struct io_ring_ctx* ring_context = request->ctx;
    struct uring_sqe sqe = {};
    const bool read = read_sqe(ring_context, &sqe);
    const __u64 file = submitted_file(ring_context, &sqe);
    const bool tells = file && (is_in(CALLS, sqe.opcode) || !is_told(file));
    const __u32 sequence = state->sequence++;
    const __u64 now = submit_time(state, sequence); /* after what others told */
    if (read && !tells && !is_in(WITH_PARTS, sqe.opcode)) {
        struct raw_uring* record = RESERVE(raw_uring);
        if (record) {
            fill_head(&record->head, RAW_URING_SUBMIT, sizeof *record, sequence, now);
            fill_submit(record, request, &sqe, file, state);
            SUBMIT(record);
        }
        return 0;
    }
    struct composer c = {};
    if (!compose(&c, sizeof(struct raw_uring))) {
        return 0;
    }
    struct raw_uring* record = (struct raw_uring*)c.scratch->record;
    fill_head(&record->head, RAW_URING_SUBMIT, 0, sequence, now);
    fill_submit(record, request, &sqe, file, state);
    if (!read) {
        c.flags |= RAW_FLAG_UNREADABLE;
    }
    if (tells) {
        add_file(&c, file, sqe.fd, 0);
    }
    add_parts(&c, record, &sqe, ring_context);
    send_uring(&c, tells);
    return 0;
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

static __always_inline void fill_complete(struct raw_uring* record, struct io_ring_ctx* ring_context, __u64 request,
                                          const struct io_uring_cqe* cqe, __u64 file, __u8 opcode) {
    fill_uring(record, ring_context, request);
    record->user_data = cqe->user_data;
    record->offset = 0;
    record->file = file;
    record->address = 0;
    record->length = 0;
    record->fd = -1;
    record->result = cqe->res;
    record->flags = cqe->flags;
    record->rw_flags = 0;
    record->opcode = opcode;
    record->sqpoll = 0;
    record->buffer = 0;
}

SEC(HOOK "io_uring_complete")
int BPF_PROG(uring_complete, struct io_ring_ctx* ring_context, void* request, struct io_uring_cqe* cqe) {
    TYPED(ring_context, io_ring_ctx);
    TYPED(cqe, io_uring_cqe);
    struct task_state* state = state_of(bpf_get_current_task_btf());
    if (!state) {
        return 0;
    }
    struct io_kiocb* done = request;
    __u64 file = 0, flags = 0;
    __u8 opcode = 0;
    if (request) {
        file = word_at(&done->file);
        opcode = use_cast ? CAST(request, io_kiocb)->opcode : BPF_CORE_READ(done, opcode);
        flags = use_cast ? CAST(request, io_kiocb)->flags : BPF_CORE_READ(done, flags);
    }
    /* The submission told that of a descriptor. */
    const bool tells = flags & FIXED_FILE && file && !is_told(file);
    const __s32 result = cqe->res;
    const bool opened = request && result >= 0 && (opcode == URING_OPENAT || opcode == URING_OPENAT2);
    const bool told = request && result == 0 && opcode == URING_STATX;
    const __u64 now = bpf_ktime_get_ns();
    const __u32 sequence = state->sequence++;
    if (!tells && !opened && !told) {
        struct raw_uring* record = RESERVE(raw_uring);
        if (record) {
            fill_head(&record->head, RAW_URING_COMPLETE, sizeof *record, sequence, now);
            fill_complete(record, ring_context, (__u64)request, cqe, file, opcode);
            SUBMIT(record);
        }
        return 0;
    }
    struct composer c = {};
    if (!compose(&c, sizeof(struct raw_uring))) {
        return 0;
    }
    struct raw_uring* record = (struct raw_uring*)c.scratch->record;
    fill_head(&record->head, RAW_URING_COMPLETE, 0, sequence, now);
    fill_complete(record, ring_context, (__u64)request, cqe, file, opcode);
    if (tells) {
        add_file(&c, file, -1, 0);
    }
    if (opened) {
        add_opened(&c, ring_context, request, result);
    }
    if (told) {
        struct io_statx* asked = request;
        if (bpf_core_field_exists(asked->buffer)) {
            add_statx(&c, (__u64)BPF_CORE_READ(asked, buffer), 4);
        }
    }
    send_uring(&c, tells);
    return 0;
}

#endif
