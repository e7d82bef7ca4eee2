/* SPDX-License-Identifier: MIT
 * Requests in flight whose causes are known, by io_uring (liburing) or by Linux AIO (its system calls):
 *
 *   requests ENGINE PATTERN FILE DEPTH COUNT SIZE THINK_US [OUT]
 *
 * ENGINE is uring or aio. COUNT reads of SIZE bytes at random places of FILE, O_DIRECT, at most DEPTH requests at once; per read the
 * program computes THINK_US microseconds, or sleeps them if negative. PATTERN says what a read waits for:
 *   fixed     any completion: one done, the next of a fixed list of places is read
 *   pipeline  the read DEPTH before it: results are used in the order of submission, as a loader with read-ahead does
 *   stages    the write of the same buffer to OUT, which waits for the read that filled it
 *   batch     all of the batch before: DEPTH at once, wait for all, compute once
 *   looks     as fixed, but it looks for results in memory all the time, and waits in no call (uring only)
 *   chains    its own predecessor: each of DEPTH chains reads where its own data say; which of them get on depends on the storage
 *
 * Prints "span SECONDS busy 0": from before the first submission to the last completion; marks it "span".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "reprise_marker.h"

enum { MOST = 1024, ALIGN = 4096 };

static int depth, use_ring, looks, in_fd, out_fd = -1;
static long count, size, think_us, blocks;
static char* buffers;
static int writes[MOST]; /* whether a slot's request is one */
static long places[MOST];
static unsigned long chain[MOST];

static struct io_uring ring;
static aio_context_t context;
static struct iocb block[MOST];

static void fail(const char* what, long code) {
    fprintf(stderr, "requests: %s: %s\n", what, strerror((int)code));
    exit(1);
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void think(void) {
    if (think_us < 0) {
        usleep((useconds_t)-think_us);
    } else if (think_us > 0) {
        for (double until = now(CLOCK_THREAD_CPUTIME_ID) + (double)think_us * 1e-6; now(CLOCK_THREAD_CPUTIME_ID) < until;) {
        }
    }
}

static unsigned long mixed(unsigned long x) { /* a step of splitmix64 */
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static char* buffer_of(int slot) { return buffers + slot * size; }

/* The engine: put a request, submit what was put, take results. */

static void set_up(void) {
    if (use_ring) {
        const int code = io_uring_queue_init((unsigned)depth, &ring, 0);
        if (code < 0) {
            fail("io_uring_queue_init", -code);
        }
    } else if (syscall(SYS_io_setup, depth, &context) != 0) {
        fail("io_setup", errno);
    }
}

static int put_count;
static struct iocb* put_list[MOST];

static void put(int slot, int is_write) {
    const int fd = is_write ? out_fd : in_fd;
    const long offset = places[slot] * size;
    writes[slot] = is_write;
    if (use_ring) {
        struct io_uring_sqe* sqe = io_uring_get_sqe(&ring);
        if (is_write) {
            io_uring_prep_write(sqe, fd, buffer_of(slot), (unsigned)size, (unsigned long)offset);
        } else {
            io_uring_prep_read(sqe, fd, buffer_of(slot), (unsigned)size, (unsigned long)offset);
        }
        io_uring_sqe_set_data64(sqe, (unsigned long)slot);
        return;
    }
    block[slot] = (struct iocb){.aio_data = (unsigned)slot,
                                .aio_lio_opcode = is_write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
                                .aio_fildes = (unsigned)fd,
                                .aio_buf = (unsigned long)buffer_of(slot),
                                .aio_nbytes = (unsigned long)size,
                                .aio_offset = offset};
    put_list[put_count++] = &block[slot];
}

static void submit(void) {
    if (use_ring) {
        const int code = io_uring_submit(&ring);
        if (code < 0) {
            fail("io_uring_submit", -code);
        }
        return;
    }
    for (int sent = 0; sent < put_count;) {
        const long n = syscall(SYS_io_submit, context, put_count - sent, put_list + sent);
        if (n <= 0) {
            fail("io_submit", errno);
        }
        sent += (int)n;
    }
    put_count = 0;
}

static void expect(long result) {
    if (result != size) {
        fail("a request", result < 0 ? -result : EIO);
    }
}

/* Slots whose request is done; waits for at least `least` of them. */
static int take(int least, int* slots) {
    int n = 0;
    if (use_ring) {
        struct io_uring_cqe* done;
        while (looks && io_uring_cq_ready(&ring) < (unsigned)least) {
        }
        int code = io_uring_wait_cqe_nr(&ring, &done, (unsigned)least);
        while (code == -EINTR) {
            code = io_uring_wait_cqe_nr(&ring, &done, (unsigned)least);
        }
        if (code < 0) {
            fail("io_uring_wait_cqe_nr", -code);
        }
        unsigned head;
        io_uring_for_each_cqe(&ring, head, done) {
            expect(done->res);
            slots[n++] = (int)io_uring_cqe_get_data64(done);
        }
        io_uring_cq_advance(&ring, (unsigned)n);
        return n;
    }
    static struct io_event events[MOST];
    do {
        n = (int)syscall(SYS_io_getevents, context, least, depth, events, NULL);
    } while (n < 0 && errno == EINTR);
    if (n < least) {
        fail("io_getevents", errno);
    }
    for (int i = 0; i < n; ++i) {
        expect((long)events[i].res);
        slots[i] = (int)events[i].data;
    }
    return n;
}

/* The patterns. `issued` reads so far. */

static long issued;
static int slots[MOST];

static void read_next(int slot) {
    places[slot] = (long)(mixed((unsigned long)issued++) % (unsigned long)blocks);
    put(slot, 0);
}

static void first_reads(void) {
    for (int slot = 0; slot < depth && issued < count; ++slot) {
        chain[slot] = (unsigned long)slot;
        read_next(slot);
    }
    submit();
}

static void fixed(void) {
    first_reads();
    for (long done = 0; done < count;) {
        const int n = take(1, slots);
        for (int i = 0; i < n; ++i, ++done) {
            think();
            if (issued < count) {
                read_next(slots[i]);
                submit();
            }
        }
    }
}

static void looking(void) {
    looks = 1;
    fixed();
}

static void pipeline(void) {
    int ready[MOST] = {0};
    first_reads();
    for (long used = 0; used < count; ++used) {
        const int mine = (int)(used % depth);
        while (!ready[mine]) {
            for (int n = take(1, slots); n > 0; --n) {
                ready[slots[n - 1]] = 1;
            }
        }
        think();
        ready[mine] = 0;
        if (issued < count) {
            read_next(mine);
            submit();
        }
    }
}

static void stages(void) {
    first_reads();
    for (long written = 0; written < count;) {
        const int n = take(1, slots);
        for (int i = 0; i < n; ++i) {
            if (!writes[slots[i]]) {
                think();
                put(slots[i], 1);
                submit();
            } else if (++written < count && issued < count) {
                read_next(slots[i]);
                submit();
            }
        }
    }
}

static void batch(void) {
    for (long done = 0; done < count;) {
        first_reads();
        const int all = (int)(issued - done);
        while (done < issued) {
            done += take((int)(issued - done), slots);
        }
        if (all > 0) {
            think();
        }
    }
}

static void chains(void) {
    first_reads();
    for (long done = 0; done < count;) {
        const int n = take(1, slots);
        for (int i = 0; i < n; ++i, ++done) {
            const int slot = slots[i];
            unsigned long word;
            memcpy(&word, buffer_of(slot), sizeof word);
            think();
            if (issued < count) {
                ++issued;
                chain[slot] = mixed(chain[slot] ^ word);
                places[slot] = (long)(chain[slot] % (unsigned long)blocks);
                put(slot, 0);
                submit();
            }
        }
    }
}

static const struct {
    const char* name;
    void (*run)(void);
} patterns[] = {{"fixed", fixed}, {"pipeline", pipeline}, {"stages", stages}, {"batch", batch}, {"looks", looking}, {"chains", chains}};

static void (*pattern_named(const char* name))(void) {
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; ++i) {
        if (strcmp(name, patterns[i].name) == 0) {
            return patterns[i].run;
        }
    }
    return NULL;
}

static void open_files(const char* in, const char* out) {
    struct stat st;
    in_fd = open(in, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (in_fd < 0 || fstat(in_fd, &st) != 0) {
        fail(in, errno);
    }
    blocks = st.st_size / size;
    if (blocks < 1) {
        fail(in, EINVAL);
    }
    if (out != NULL) {
        out_fd = open(out, O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, 0644);
        /* Its size does not change: what a write waits for is this program's business, not the file system's. */
        if (out_fd < 0 || ftruncate(out_fd, blocks * size) != 0) {
            fail(out, errno);
        }
    }
    if (posix_memalign((void**)&buffers, ALIGN, (size_t)(depth * size)) != 0) {
        fail("buffers", ENOMEM);
    }
    memset(buffers, 1, (size_t)(depth * size));
}

int main(int argc, char** argv) {
    void (*const run)(void) = argc >= 8 ? pattern_named(argv[2]) : NULL;
    depth = run ? atoi(argv[4]) : 0;
    count = run ? atol(argv[5]) : 0;
    size = run ? atol(argv[6]) : 0;
    if (depth < 1 || depth > MOST || count < 1 || size < 512 || (run == stages) != (argc == 9) || (run == looking && strcmp(argv[1], "uring") != 0)) {
        fprintf(stderr, "usage: requests uring|aio fixed|pipeline|stages|batch|looks|chains FILE DEPTH COUNT SIZE THINK_US [OUT]\n"
                        "OUT is for stages\n");
        return 2;
    }
    use_ring = strcmp(argv[1], "uring") == 0;
    think_us = atol(argv[7]);
    open_files(argv[3], run == stages ? argv[8] : NULL);
    set_up();
    reprise_begin("span", 0);
    const double begin = now(CLOCK_MONOTONIC);
    run();
    reprise_end("span", 0);
    printf("span %.6f busy 0\n", now(CLOCK_MONOTONIC) - begin);
    return 0;
}
