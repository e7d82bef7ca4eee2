/* SPDX-License-Identifier: MIT */
/* flock, and what fcntl asks and sets. */
#include "expect.h"

#include <sys/file.h>

static void setup(void) { make_file("data", 1000); }

static void do_flock(const char *name, int how, long want)
{
    say("flock %s arg=%d result=%ld", on(name), how, WANT(CALL2(SYS_flock, fd_(name), how), want));
}
static void do_fcntl(const char *name, int command, long argument, long want)
{
    const long got = WANT(CALL3(SYS_fcntl, fd_(name), command, argument), want);
    say("fcntl %s flags=%ld arg=%d result=%ld", on(name), argument, command, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDWR, 0, ANY_FD);
    do_open("b", "data", O_RDWR, 0, ANY_FD);
    do_fstat("a");
    do_flock("a", LOCK_SH, 0);
    do_flock("b", LOCK_SH | LOCK_NB, 0);
    do_flock("a", LOCK_EX | LOCK_NB, -EAGAIN);
    do_flock("b", LOCK_UN, 0);
    do_flock("a", LOCK_EX | LOCK_NB, 0);
    do_flock("b", LOCK_EX | LOCK_NB, -EAGAIN);
    do_flock("a", LOCK_UN, 0);
    do_fcntl("a", F_GETFD, 0, 0);
    do_fcntl("a", F_SETFD, FD_CLOEXEC, 0);
    do_fcntl("a", F_GETFD, 0, FD_CLOEXEC);
    do_fcntl("a", F_GETFL, 0, O_RDWR | 0100000);
    do_fcntl("a", F_SETFL, O_APPEND, 0);
    do_write("a", 10, 1000, 10);
    do_fcntl("a", F_SETFL, 0, 0);
    do_pwrite("a", 10, 0, 10);
    do_write("a", 10, 1010, 10);
    do_close("a");
    do_close("b");
    return 0;
}
