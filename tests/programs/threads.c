/* SPDX-License-Identifier: MIT */
/* Threads that share a descriptor: each task its own calls, one position, numbers seen by all. */
#include "expect.h"

#include <pthread.h>

enum { kThreads = 4 };
static pthread_barrier_t turn;

static void setup(void) { make_file("data", 100000); }

static void *work(void *argument)
{
    const long me = (long)(intptr_t)argument;
    char name[24];
    snprintf(name, sizeof name, "own%ld", me);
    for (long round = 0; round < 3; round++)
        for (long who = 0; who < kThreads; who++) {
            if (who == me) {
                do_read("shared", 100, (round * kThreads + me) * 100, 100);
                do_pread("shared", 50, 5000 + me, 50);
                if (round == 0)
                    do_open(name, "data", O_RDONLY, 0, ANY_FD);
                if (round == 2)
                    do_close(name);
            }
            pthread_barrier_wait(&turn);
        }
    return NULL;
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    pthread_t threads[kThreads];
    pthread_barrier_init(&turn, NULL, kThreads);
    do_open("shared", "data", O_RDONLY, 0, ANY_FD);
    for (long i = 0; i < kThreads; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) != 0)
            give_up("no thread");
    for (long i = 0; i < kThreads; i++)
        pthread_join(threads[i], NULL);
    do_read("shared", 100, 3 * kThreads * 100, 100);
    do_close("shared");
    return 0;
}
