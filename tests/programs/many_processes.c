/* SPDX-License-Identifier: MIT */
/* Short-lived processes, 500 of them, each with calls of its own. */
#include "expect.h"

static void setup(void) { make_file("data", 10000); }

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("shared", "data", O_RDONLY, 0, ANY_FD);
    for (long i = 0; i < 500; i++) {
        const int child = do_fork();
        if (child == 0) {
            do_read("shared", 10, i * 10, 10);
            char own[24];
            snprintf(own, sizeof own, "own%ld", i);
            do_open(own, "data", O_RDONLY, 0, ANY_FD);
            do_pread(own, 10, i, 10);
            do_close(own);
            _exit(0);
        }
        do_wait(child);
    }
    do_close("shared");
    return 0;
}
