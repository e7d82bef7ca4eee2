/* SPDX-License-Identifier: MIT
 * Reader threads hand files to a consumer through a bounded ring: mutex and condition variables, which make no system call
 * while nobody has to wait.
 *
 *   ring DIR COMPUTE SLEEP     readers take the files of DIR in turn; per file the consumer computes and sleeps so many seconds
 *
 * Prints "span SECONDS busy SECONDS": from before the threads start until they have ended; marks it "span".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reprise_marker.h"

enum { READERS = 2, RING = 8, CHUNK = 128 * 1024 };

static char **names;
static int count, next_name;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static char *ring[RING];
static long sizes[RING];
static int head, filled;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *read_files(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&names_lock);
        int mine = next_name < count ? next_name++ : -1;
        pthread_mutex_unlock(&names_lock);
        if (mine < 0) {
            return NULL;
        }
        int fd = open(names[mine], O_RDONLY);
        long size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
        if (size < 0) {
            fail(names[mine]);
        }
        char *data = malloc((size_t)size + 1);
        long got = 0;
        while (got < size) {
            ssize_t n = pread(fd, data + got, CHUNK, got);
            if (n <= 0) {
                fail(names[mine]);
            }
            got += n;
        }
        close(fd);
        pthread_mutex_lock(&lock);
        while (filled == RING) {
            pthread_cond_wait(&not_full, &lock);
        }
        ring[(head + filled) % RING] = data;
        sizes[(head + filled) % RING] = size;
        ++filled;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *folder) {
    if (chdir(folder) != 0) {
        fail(folder);
    }
    DIR *directory = opendir(".");
    names = calloc(100000, sizeof *names);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL && count < 100000;) {
        if (entry->d_name[0] != '.') {
            names[count++] = strdup(entry->d_name);
        }
    }
    closedir(directory);
    qsort(names, (size_t)count, sizeof *names, compare);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: ring DIR COMPUTE SLEEP\n");
        return 2;
    }
    double compute = atof(argv[2]), busy = 0;
    long sleep_us = (long)(atof(argv[3]) * 1e6);
    unsigned sum = 0;
    list(argv[1]);
    reprise_begin("span", 0);
    double begin = now(CLOCK_MONOTONIC);
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; ++i) {
        pthread_create(&readers[i], NULL, read_files, NULL);
    }
    for (int i = 0; i < count; ++i) {
        pthread_mutex_lock(&lock);
        while (filled == 0) {
            pthread_cond_wait(&not_empty, &lock);
        }
        char *data = ring[head];
        long size = sizes[head];
        head = (head + 1) % RING;
        --filled;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
        for (double until = now(CLOCK_THREAD_CPUTIME_ID) + compute; now(CLOCK_THREAD_CPUTIME_ID) < until;) {
            for (long k = 0; k < size; k += 64) {
                sum += (unsigned char)data[k];
            }
        }
        free(data);
        if (sleep_us > 0) {
            double start = now(CLOCK_MONOTONIC);
            reprise_begin("accelerator", i);
            usleep((useconds_t)sleep_us);
            reprise_end("accelerator", i);
            busy += now(CLOCK_MONOTONIC) - start;
        }
    }
    for (int i = 0; i < READERS; ++i) {
        pthread_join(readers[i], NULL);
    }
    reprise_end("span", 0);
    printf("span %.6f busy %.6f sum %u\n", now(CLOCK_MONOTONIC) - begin, busy, sum);
    return 0;
}
