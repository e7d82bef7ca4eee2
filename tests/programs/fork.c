/* SPDX-License-Identifier: MIT */
/* fork: the child shares positions, not numbers. */
#include "expect.h"

static void setup(void) { make_file("data", 100000); }

int main(int argc, char **argv)
{
    begin(argc, argv, "spawn join exit");
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "data", O_RDONLY, 0, ANY_FD);
    do_read("a", 1000, 0, 1000);
    const int child = do_fork();
    if (child == 0) {
        do_read("a", 1000, 1000, 1000);
        do_close("b");
        do_open("c", "data", O_RDONLY, 0, ANY_FD); /* takes b's number */
        do_read("c", 500, 0, 500);
        const int grandchild = do_fork();
        if (grandchild == 0) {
            do_read("c", 500, 500, 500);
            do_close("a");
            say("exit arg=0 result=0");
            _exit(0);
        }
        say("spawn peer=%d flags=17 result=%d", grandchild, grandchild);
        siginfo_t info;
        WANT(CALL5(SYS_waitid, P_PID, grandchild, &info, WEXITED, NULL), 0);
        say("join peer=%d result=0", grandchild);
        do_read("c", 500, 1000, 500);
        do_read("a", 1000, 2000, 1000);
        say("exit arg=0 result=0");
        _exit(0);
    }
    say("spawn peer=%d flags=17 result=%d", child, child);
    do_wait(child);
    say("join peer=%d result=%d", child, child);
    do_read("a", 1000, 3000, 1000);
    do_read("b", 1000, 0, 1000);
    do_close("b");
    do_close("a");
    say("exit arg=0 result=0");
    _exit(0);
}
