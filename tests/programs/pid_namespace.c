/* SPDX-License-Identifier: MIT */
/* A PID namespace of its own: its processes know each other by other numbers than the recording does. */
#include "expect.h"

#include <sched.h>

static void setup(void)
{
    make_file("data", 100000);
    if (unshare(CLONE_NEWPID) != 0)
        give_up("SKIPPED: no PID namespaces: %s", strerror(errno));
}

/* The number of the process `inside` of the current namespace, as the recording knows it: /proc is that of the initial
 * one, and a process tells of itself there. */
static int outside(void)
{
    char text[32] = "";
    if (readlink("/proc/self", text, sizeof text - 1) <= 0)
        give_up("/proc/self: %s", strerror(errno));
    return atoi(text);
}

static int told[2];

/* A child that tells its number, reads, makes a grandchild if asked to, and ends. */
static int make(int number, int leaves_child)
{
    const int child = do_fork();
    if (child == 0) {
        int self = outside();
        g_say_for = self;
        if (write(told[1], &self, sizeof self) != sizeof self)
            _exit(1);
        do_pread("a", 100, 100 * number, 100);
        if (leaves_child)
            make(number + 1, 0);
        _exit(0);
    }
    return child;
}

static int number_told(void)
{
    int number = 0;
    if (read(told[0], &number, sizeof number) != sizeof number)
        give_up("nobody told a number");
    return number;
}

int main(int argc, char **argv)
{
    begin(argc, argv, "join");
    if (pipe(told) != 0)
        give_up("pipe: %s", strerror(errno));
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    WANT(CALL1(SYS_unshare, CLONE_NEWPID), 0);
    const int init = do_fork(); /* seen from here */
    if (init == 0) {
        g_say_for = outside();
        if (getpid() != 1)
            give_up("not the first process of its namespace");
        const int first = make(0, 0);
        const int first_outside = number_told();
        do_wait(first);
        say("join peer=%d result=%d", first_outside, first);
        const int second = make(1, 0);
        const int second_outside = number_told();
        siginfo_t info;
        WANT(CALL5(SYS_waitid, P_PID, second, &info, WEXITED, NULL), 0);
        say("join peer=%d result=0", second_outside);
        /* One whose parent has ended is a child of the first process. */
        const int third = make(2, 1);
        const int third_outside = number_told(), orphan_outside = number_told();
        do_wait(third);
        say("join peer=%d result=%d", third_outside, third);
        int status = 0;
        const long orphan = CALL4(SYS_wait4, -1, &status, 0, 0);
        if (orphan <= 0 || orphan == orphan_outside || status != 0)
            give_up("the orphan: %ld", orphan);
        say("join peer=%d result=%ld", orphan_outside, orphan);
        _exit(0);
    }
    do_wait(init);
    say("join peer=%d result=%d", init, init);
    do_close("a");
    return 0;
}
