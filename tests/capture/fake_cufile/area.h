/* SPDX-License-Identifier: MIT */
/* What the stand-in for libcufile shares with the process that stands in for the driver: requests, and the memory of
 * the accelerator. */
#ifndef REPRISE_TESTS_AREA_H
#define REPRISE_TESTS_AREA_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 128
#define MEMORY (8L << 20)
enum { FREE, FILLED, ASKED, TAKEN, DONE };

struct slot {
    _Atomic int state;
    int pid, fd, writes;
    long offset, size, memory; /* bytes; memory: from the begin of the area's */
    long result;
};
struct area {
    _Atomic int asked, done; /* how often; waited for */
    struct slot slots[SLOTS];
    char memory[MEMORY] __attribute__((aligned(4096)));
};

static inline void wake_all(_Atomic int* word) {
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, 0, 0, 0);
}
static inline void wait_while(_Atomic int* word, int value) { syscall(SYS_futex, word, FUTEX_WAIT, value, 0, 0, 0); }

#endif
