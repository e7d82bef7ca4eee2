// SPDX-License-Identifier: MIT
// Steps of 10 ms that end with MPI_Barrier. usage: barrier STEPS; rank 0 prints the median time at the barrier, in ns.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int order(const void *a, const void *b) {
    const long long x = *(const long long *)a, y = *(const long long *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    const int steps = argc > 1 ? atoi(argv[1]) : 0;
    long long *wait = calloc(steps > 0 ? steps : 1, sizeof *wait);
    int rank;
    if (steps <= 0 || wait == NULL) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    prctl(PR_SET_TIMERSLACK, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < steps; ++i) {
        const long long end = now() + 10000000;
        const struct timespec until = {end / 1000000000LL, end % 1000000000LL};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        const long long here = now();
        MPI_Barrier(MPI_COMM_WORLD);
        wait[i] = now() - here;
    }
    qsort(wait, steps, sizeof *wait, order);
    if (rank == 0) printf("%lld\n", wait[steps / 2]);
    MPI_Finalize();
    return 0;
}
