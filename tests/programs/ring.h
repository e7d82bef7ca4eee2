/* SPDX-License-Identifier: MIT */
/* The little of io_uring that the programs need, by its system calls. */
#ifndef REPRISE_TESTS_RING_H
#define REPRISE_TESTS_RING_H

#include <linux/io_uring.h>

#include "expect.h"

struct ring {
    int fd;
    _Atomic unsigned *head, *tail, *flags; /* of the submissions */
    unsigned mask, *array;
    _Atomic unsigned *done_head, *done_tail; /* of the completions */
    unsigned done_mask;
    struct io_uring_sqe* requests;
    struct io_uring_cqe* done;
};
static struct ring g_ring;

/* False where the machine has no io_uring. */
UNUSED static int make_ring(unsigned flags) {
    struct io_uring_params p = {.flags = flags, .sq_thread_idle = 1000};
    const long fd = CALL2(SYS_io_uring_setup, 8, &p);
    if (fd < 0) {
        return 0;
    }
    char* const sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE, (int)fd, IORING_OFF_SQ_RING);
    char* const cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_POPULATE, (int)fd, IORING_OFF_CQ_RING);
    void* const sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_POPULATE, (int)fd, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED) {
        give_up("cannot map the ring");
    }
    g_ring = (struct ring){.fd = (int)fd,
                           .head = (void*)(sq + p.sq_off.head),
                           .tail = (void*)(sq + p.sq_off.tail),
                           .flags = (void*)(sq + p.sq_off.flags),
                           .mask = *(unsigned*)(sq + p.sq_off.ring_mask),
                           .array = (void*)(sq + p.sq_off.array),
                           .done_head = (void*)(cq + p.cq_off.head),
                           .done_tail = (void*)(cq + p.cq_off.tail),
                           .done_mask = *(unsigned*)(cq + p.cq_off.ring_mask),
                           .requests = sqes,
                           .done = (void*)(cq + p.cq_off.cqes)};
    bind_fd("ring", "ring", fd);
    return 1;
}

UNUSED static void need_ring(unsigned flags) {
    if (!make_ring(flags)) {
        give_up("SKIPPED: no io_uring here");
    }
    close(g_ring.fd);
}

/* Puts a request into the ring; the kernel has not seen it yet. */
UNUSED static struct io_uring_sqe* request(int code, int fd, const void* at, long size, long offset, int flags) {
    const unsigned tail = *g_ring.tail;
    struct io_uring_sqe* const sqe = &g_ring.requests[tail & g_ring.mask];
    *sqe = (struct io_uring_sqe){.opcode = (unsigned char)code,
                                 .flags = (unsigned char)flags,
                                 .fd = fd,
                                 .addr = (unsigned long)at,
                                 .len = (unsigned)size,
                                 .off = (unsigned long)offset,
                                 .user_data = tail};
    g_ring.array[tail & g_ring.mask] = tail & g_ring.mask;
    *g_ring.tail = tail + 1;
    return sqe;
}

/* Result of the next completion. */
UNUSED static long take_completion(void) {
    while (*g_ring.done_head == *g_ring.done_tail) {
    }
    const long result = g_ring.done[*g_ring.done_head & g_ring.done_mask].res;
    *g_ring.done_head = *g_ring.done_head + 1;
    return result;
}

/* Submits the requests, and waits until so many completions are there that were not taken. */
UNUSED static void enter_for(long requests, long completions) {
    WANT(CALL6(SYS_io_uring_enter, g_ring.fd, requests, completions, IORING_ENTER_GETEVENTS, 0, 0), requests);
}
/* Submits the requests and waits for all of them. What they are is said before the call is. */
UNUSED static void enter(long requests) { enter_for(requests, requests); }
UNUSED static void say_enter(long requests) {
    say("uring_enter %s size=%ld arg=%ld result=%ld", on("ring"), requests, requests, requests);
}

/* Submits one request and waits for it. `fd` is what stands in the request: a descriptor or a fixed file's index. */
UNUSED static void run_one(const char* label, const char* handle, const struct io_uring_sqe* sqe, long size,
                           const char* list, long want) {
    const unsigned own_flags = sqe->opcode == IORING_OP_FALLOCATE ? sqe->len : sqe->rw_flags;
    enter(1);
    say("uring_submit handle=%s fd=%d file=- offset=%ld size=%ld flags=%d arg=%d list=%s request=%s result=0", handle,
        sqe->fd, (long)sqe->off, size, (int)(sqe->flags | own_flags << 8), sqe->opcode, list, label);
    say_enter(1);
    say("uring_complete request=%s size=%ld result=%ld", label, size, WANT(take_completion(), want));
}

#endif
