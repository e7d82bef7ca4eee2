/* SPDX-License-Identifier: MIT
 * A loader of small files whose every call goes through one ring of io_uring: open, statx, read, close.
 *
 *   ring_files DIR DEPTH THINK_US     all files of DIR in the order of their names, DEPTH at a time; per file THINK_US
 * microseconds of computing between the read and the close
 *
 * Which file gets on next depends on the storage. Prints "span SECONDS busy 0"; marks it "span". */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "reprise_marker.h"

enum { MOST = 256, BYTES = 1 << 17 };
enum step { OPENS, LOOKS, READS, CLOSES };

struct slot {
    enum step step;
    int fd;
    const char* name;
    struct statx stat;
    char* data;
};

static struct io_uring ring;
static struct slot slots[MOST];
static struct dirent** names;
static int directory, count, issued;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void ask(struct slot* slot, enum step step) {
    struct io_uring_sqe* const sqe = io_uring_get_sqe(&ring);
    slot->step = step;
    switch (step) {
        case OPENS: io_uring_prep_openat(sqe, directory, slot->name, O_RDONLY | O_CLOEXEC, 0); break;
        case LOOKS: io_uring_prep_statx(sqe, slot->fd, "", AT_EMPTY_PATH, STATX_SIZE, &slot->stat); break;
        case READS: io_uring_prep_read(sqe, slot->fd, slot->data, BYTES, 0); break;
        case CLOSES: io_uring_prep_close(sqe, slot->fd); break;
    }
    io_uring_sqe_set_data(sqe, slot);
    io_uring_submit(&ring);
}

static int next_file(struct slot* slot) {
    while (issued < count && names[issued]->d_name[0] == '.') {
        ++issued;
    }
    if (issued == count) {
        return 0;
    }
    slot->name = names[issued++]->d_name;
    ask(slot, OPENS);
    return 1;
}

int main(int argc, char** argv) {
    const int depth = argc == 4 ? atoi(argv[2]) : 0;
    if (depth < 1 || depth > MOST) {
        fprintf(stderr, "usage: ring_files DIR DEPTH THINK_US\n");
        return 2;
    }
    const double think = atof(argv[3]) * 1e-6;
    directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    count = scandir(argv[1], &names, NULL, alphasort);
    if (directory < 0 || count < 0 || io_uring_queue_init((unsigned)depth, &ring, 0) < 0) {
        perror(argv[1]);
        return 1;
    }
    int busy = 0;
    reprise_begin("span", 0);
    const double begin = now(CLOCK_MONOTONIC);
    for (int i = 0; i < depth; ++i) {
        slots[i].data = malloc(BYTES);
        busy += next_file(&slots[i]);
    }
    while (busy > 0) {
        struct io_uring_cqe* done = NULL;
        if (io_uring_wait_cqe(&ring, &done) < 0) {
            continue;
        }
        struct slot* const slot = io_uring_cqe_get_data(done);
        const int result = done->res;
        io_uring_cqe_seen(&ring, done);
        if (result < 0) {
            fprintf(stderr, "ring_files: %s: %s\n", slot->name, strerror(-result));
            return 1;
        }
        switch (slot->step) {
            case OPENS:
                slot->fd = result;
                ask(slot, LOOKS);
                break;
            case LOOKS: ask(slot, READS); break;
            case READS:
                for (double until = now(CLOCK_THREAD_CPUTIME_ID) + think; now(CLOCK_THREAD_CPUTIME_ID) < until;) {
                }
                ask(slot, CLOSES);
                break;
            case CLOSES: busy -= !next_file(slot); break;
        }
    }
    reprise_end("span", 0);
    printf("span %.6f busy 0\n", now(CLOCK_MONOTONIC) - begin);
    return 0;
}
