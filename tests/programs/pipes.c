/* SPDX-License-Identifier: MIT */
/* Messages: pipes, socket pairs, eventfds, with the bytes moved before. Anonymous memory (memfd) is a file. */
#include "expect.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

static void setup(void) {}

static void made(const char *first, const char *second, const int *fds, int flags, int arg)
{
    bind_fd(first, first, fds[0]);
    bind_fd(second, second, fds[1]);
    say("pipe handle=%s fd=%d handle2=%s fd2=%d flags=%d arg=%d result=0", first, fds[0], second, fds[1], flags, arg);
}
static void do_send(const char *name, long nr, long size, long offset)
{
    const long got = WANT(CALL6(nr, fd_(name), g_buffer, size, 0, 0, 0), size);
    say("send %s offset=%ld size=%ld result=%ld", on(name), offset, size, got);
}
static void do_receive(const char *name, long nr, long size, long offset, long want)
{
    const long got = WANT(CALL6(nr, fd_(name), g_buffer, size, 0, 0, 0), want);
    say("receive %s offset=%ld size=%ld result=%ld", on(name), offset, size, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, "pipe send receive memfd");
    int fds[2], ready[2];
    WANT(CALL2(SYS_pipe2, fds, O_CLOEXEC), 0);
    made("r", "w", fds, O_CLOEXEC, 1);
    WANT(CALL4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, ready), 0);
    made("s", "t", ready, SOCK_STREAM, 2);
    do_send("w", SYS_write, 30, 0);
    do_send("s", SYS_sendto, 7, 0);
    const int child = do_fork();
    if (child == 0) {
        do_receive("r", SYS_read, 20, 0, 20);
        do_receive("r", SYS_read, 20, 20, 10);
        do_receive("t", SYS_recvfrom, 100, 0, 7);
        do_send("t", SYS_write, 3, 0);
        _exit(0);
    }
    do_wait(child);
    do_receive("s", SYS_read, 100, 0, 3);
    do_send("s", SYS_write, 1, 7);
    struct iovec both[2] = {{g_buffer, 5}, {g_buffer, 6}};
    say("send %s offset=30 size=11 result=%ld", on("w"), WANT(CALL3(SYS_writev, fd_("w"), both, 2), 11));
    say("receive %s offset=30 size=11 result=%ld", on("r"), WANT(CALL3(SYS_readv, fd_("r"), both, 2), 11));
    WANT(CALL3(SYS_fcntl, fd_("r"), F_SETFL, O_NONBLOCK), 0);
    do_receive("r", SYS_read, 100, 41, -EAGAIN);

    const long event = WANT(CALL2(SYS_eventfd2, 0, EFD_CLOEXEC), ANY_FD);
    bind_fd("e", "e", event);
    say("pipe handle=e fd=%ld handle2=- fd2=-1 flags=%d arg=3 result=%ld", event, EFD_CLOEXEC, event);
    memset(g_buffer, 0, 8);
    g_buffer[0] = 1;
    do_send("e", SYS_write, 8, 0);
    do_receive("e", SYS_read, 8, 0, 8);

    const long memory = WANT(CALL2(SYS_memfd_create, "block", 0), ANY_FD);
    bind_fd("m", "m", memory);
    say("pipe handle=m fd=%ld handle2=- fd2=-1 flags=0 arg=4 result=%ld", memory, memory);
    do_write("m", 5000, 0, 5000);
    do_pread("m", 5000, 1000, 4000);
    do_ftruncate("m", 100, 0);
    return 0;
}
