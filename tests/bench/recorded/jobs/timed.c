/* SPDX-License-Identifier: MIT */
/* timed FILE COMMAND...: runs the command and writes to FILE how long it took from its start to its end, and the processor
 * time of it and its children: "WALL CPU" in seconds. A recording follows it and the command alike. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

int main(int argc, char** argv) {
    if (argc < 3) {
        return 2;
    }
    const double begin = now();
    const pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return 1;
    }
    const double took = now() - begin;
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    FILE* out = fopen(argv[1], "w");
    if (!out) {
        return 1;
    }
    fprintf(out, "%.6f %.6f\n", took, seconds(used.ru_utime) + seconds(used.ru_stime));
    fclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
