/* SPDX-License-Identifier: MIT
 * Two threads on one mapping of one file.
 *
 *   mapped FILE sequential            each reads half of it, from its begin to its end
 *   mapped FILE together              both read all of it: one waits for what the other has asked for
 *   mapped FILE random COUNT          each reads so many pages anywhere; the second half of the file is advised MADV_RANDOM
 *
 * Prints "span SECONDS busy 0"; marks it "span".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "reprise_marker.h"

enum { PAGE = 4096 };

static const unsigned char *data;
static long pages, count;
static const char *how;

static void *run(void *number) {
    const long me = (long)number;
    unsigned long sum = 0, state = 88172645463325252UL + (unsigned long)me * 977;
    if (strcmp(how, "random") == 0) {
        for (long i = 0; i < count; ++i) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            sum += data[(long)(state % (unsigned long)pages) * PAGE];
        }
    } else {
        const long from = strcmp(how, "together") == 0 ? 0 : me * pages / 2;
        const long to = strcmp(how, "together") == 0 ? pages : (me + 1) * pages / 2;
        for (long at = from * PAGE; at < to * PAGE; at += 64) {
            sum += data[at];
        }
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    struct stat status;
    const int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &status) != 0) {
        fprintf(stderr, "usage: mapped FILE sequential|together|random [COUNT]\n");
        return 1;
    }
    how = argv[2];
    count = argc > 3 ? atol(argv[3]) : 0;
    pages = status.st_size / PAGE;
    struct timespec begin, end;
    const char span[] = "span"; /* in memory that is there: a recorder does not wait for a page of the program */
    reprise_begin(span, 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    void *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    data = map;
    if (strcmp(how, "random") == 0) {
        const long half = pages / 2 * PAGE;
        madvise((char *)map + half, (size_t)(status.st_size - half), MADV_RANDOM);
    }
    pthread_t threads[2];
    for (long i = 0; i < 2; ++i) {
        pthread_create(&threads[i], NULL, run, (void *)i);
    }
    unsigned long sum = 0;
    for (int i = 0; i < 2; ++i) {
        void *part = NULL;
        pthread_join(threads[i], &part);
        sum += (unsigned long)part;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    reprise_end(span, 0);
    printf("span %.6f busy 0 sum %lu\n", (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9, sum);
    return 0;
}
