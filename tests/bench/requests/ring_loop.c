/* SPDX-License-Identifier: MIT
 * The least that keeps reads in flight: cached 4 KiB reads at random places, one thread, liburing, nothing else. As fio does, it
 * submits whenever BATCH requests are ready, and takes what is done when DEPTH are in flight.
 *
 *   ring_loop FILE DEPTH COUNT BATCH      prints nanoseconds per request: processor time of the thread, and the clock's
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SIZE = 4096 };

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(const char* what) {
    fprintf(stderr, "ring_loop: %s\n", what);
    exit(1);
}

int main(int argc, char** argv) {
    const unsigned depth = argc == 5 ? (unsigned)atoi(argv[2]) : 0, batch = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
    const long count = argc == 5 ? atol(argv[3]) : 0;
    struct io_uring ring;
    struct stat st;
    if (depth < 1 || count < 1 || batch < 1) {
        fail("usage: ring_loop FILE DEPTH COUNT BATCH");
    }
    const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < SIZE || io_uring_queue_init(depth, &ring, 0) != 0) {
        fail("cannot open the file or make the ring");
    }
    const unsigned long blocks = (unsigned long)st.st_size / SIZE;
    char* const buffers = aligned_alloc(SIZE, (size_t)depth * SIZE);
    unsigned* const unused = malloc(depth * sizeof *unused);
    memset(buffers, 1, (size_t)depth * SIZE);
    for (unsigned i = 0; i < depth; ++i) {
        unused[i] = i;
    }
    unsigned in_flight = 0, ready = 0;
    unsigned long random = 88172645463325252;
    long issued = 0, done = 0;
    const double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    while (done < count) {
        while (in_flight < depth && issued < count) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17; /* xorshift64 */
            struct io_uring_sqe* const sqe = io_uring_get_sqe(&ring);
            const unsigned slot = unused[depth - ++in_flight];
            io_uring_prep_read(sqe, fd, buffers + (size_t)slot * SIZE, SIZE, random % blocks * SIZE);
            io_uring_sqe_set_data64(sqe, slot);
            ++issued;
            if (++ready == batch) {
                io_uring_submit(&ring);
                ready = 0;
            }
        }
        if (ready > 0) {
            io_uring_submit(&ring);
            ready = 0;
        }
        struct io_uring_cqe* cqe;
        if (io_uring_wait_cqe(&ring, &cqe) != 0) {
            fail("cannot wait");
        }
        unsigned head, n = 0;
        io_uring_for_each_cqe(&ring, head, cqe) {
            if (cqe->res != SIZE) {
                fail("a read failed");
            }
            unused[depth - in_flight--] = (unsigned)cqe->user_data;
            ++n;
        }
        io_uring_cq_advance(&ring, n);
        done += n;
    }
    printf("%.1f %.1f\n", (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count, (now(CLOCK_MONOTONIC) - wall) / (double)count);
    return 0;
}
