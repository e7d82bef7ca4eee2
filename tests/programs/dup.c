/* SPDX-License-Identifier: MIT */
/* dup, dup2, dup3, F_DUPFD, close_range: one open instance, many numbers, one position. */
#include "expect.h"

#include <linux/close_range.h>

static void setup(void) { make_file("data", 100000); }

static void do_dup(const char *from, const char *to, long got, int fd2, int flags, int arg)
{
    if (got < 0)
        give_up("dup gave %ld", got);
    bind_fd(to, handle_(from), got);
    say("dup %s fd2=%d flags=%d arg=%d result=%ld", on(from), fd2, flags, arg, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    const int a = fd_("a");
    do_dup("a", "b", CALL1(SYS_dup, a), -1, 0, 1);
    do_read("a", 1000, 0, 1000);
    do_read("b", 1000, 1000, 1000);
    do_dup("a", "c", CALL2(SYS_dup2, a, 50), 50, 0, 2);
    do_close("a");
    do_read("c", 1000, 2000, 1000);
    do_dup("c", "d", CALL3(SYS_dup3, 50, 60, O_CLOEXEC), 60, O_CLOEXEC, 3);
    do_dup("d", "e", CALL3(SYS_fcntl, 60, F_DUPFD, 70), 70, 0, 4);
    do_dup("e", "f", CALL3(SYS_fcntl, 70, F_DUPFD_CLOEXEC, 70), 70, O_CLOEXEC, 4);
    do_read("f", 1000, 3000, 1000);
    say("dup %s fd2=70 flags=0 arg=2 result=%ld", on("e"), WANT(CALL2(SYS_dup2, 70, 70), 70)); /* does nothing */
    say("dup %s fd2=70 flags=0 arg=3 result=%ld", on("e"), WANT(CALL3(SYS_dup3, 70, 70, 0), -EINVAL));

    /* dup2 closes what it lands on; that is part of the call. */
    do_open("x", "data", O_RDONLY, 0, ANY_FD);
    do_dup("e", "x", CALL2(SYS_dup2, 70, fd_("x")), fd_("x"), 0, 2);
    do_read("x", 1000, 4000, 1000);
    do_lseek("b", 0, SEEK_CUR, 5000);

    WANT(CALL3(SYS_close_range, 60, 69, 0), 0);
    say("close %s result=0", on("d"));
    WANT(CALL3(SYS_close_range, 70, ~0U, CLOSE_RANGE_CLOEXEC), 0);
    do_read("e", 1000, 5000, 1000);
    WANT(CALL3(SYS_close_range, 50, ~0U, 0), 0);
    say("close %s result=0", on("c"));
    say("close %s result=0", on("e"));
    say("close %s result=0", on("f"));
    do_close("x");
    do_close("b");
    return 0;
}
