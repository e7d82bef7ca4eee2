/* SPDX-License-Identifier: MIT */
/* Marks by the C header; prints what a mark costs. */
#include "reprise_marker.h"

#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
    (void)argv;
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
