/* SPDX-License-Identifier: MIT */
/* Marks by the C header; with "cost", prints what a mark costs; with "untouched", sets one whose name lies on a page that the
 * program has not touched, which a recorder could not read, and says whether it is there when the mark is set. */
#include "reprise_marker.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* By the page's entry in /proc/self/pagemap. */
static int in_place(const char *at)
{
    const long page = sysconf(_SC_PAGESIZE);
    uint64_t entry = 0;
    const int fd = open("/proc/self/pagemap", O_RDONLY);
    const off_t offset = (off_t)((uintptr_t)at / (uintptr_t)page * sizeof entry);
    const int read_it = pread(fd, &entry, sizeof entry, offset) == (ssize_t)sizeof entry;
    close(fd);
    return read_it ? (int)(entry >> 63U) : -1;
}

static int untouched(void)
{
    FILE *file = tmpfile();
    if (!file || fputs("far away", file) < 0 || fflush(file) != 0)
        return 1;
    const char *name = (const char *)mmap(NULL, 16, PROT_READ, MAP_SHARED, fileno(file), 0);
    if (name == MAP_FAILED)
        return 1;
    const int before = in_place(name);
    reprise_mark(name, 1);
    printf("in place: %d, then %d\n", before, in_place(name));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "untouched") == 0)
        return untouched();
    if (argc > 1) {
        enum { kMarks = 100000 };
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (long i = 0; i < kMarks; i++)
            reprise_mark("cost", i);
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
        printf("a mark costs %.0f ns\n", ns / kMarks);
        return 0;
    }
    errno = ENOENT;
    reprise_begin("step", 12);
    reprise_mark("checkpoint", -3);
    reprise_end("step", 12);
    return errno == ENOENT ? 0 : 1;
}
