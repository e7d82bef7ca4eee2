/* SPDX-License-Identifier: MIT */
/* A job that forks twice into the background: its parents end before it does its work. */
#include "expect.h"

#include <sys/prctl.h>
#include <time.h>

static void setup(void) { make_file("data", 1000); }

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_read("a", 100, 0, 100);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that this program's end is the end of all */
    const int child = do_fork();
    if (child == 0) {
        do_read("a", 100, 100, 100);
        if (do_fork() == 0) {
            CALL0(SYS_setsid);
            const struct timespec pause = {0, 50 * 1000 * 1000};
            nanosleep(&pause, NULL);
            do_read("a", 100, 200, 100);
            do_open("out", "out", O_CREAT | O_EXCL | O_WRONLY, 0644, ANY_FD);
            do_write("out", 10, 0, 10);
            do_close("out");
            do_close("a");
            _exit(0);
        }
        _exit(0);
    }
    do_wait(child);
    int status = 0;
    if (CALL4(SYS_wait4, -1, &status, 0, 0) <= 0 || status != 0)
        give_up("the job in the background failed: %d", status);
    do_read("a", 100, 300, 100);
    do_close("a");
    return 0;
}
