/* SPDX-License-Identifier: MIT */
/* io_uring with a kernel thread that takes the submissions (SQPOLL): no call of the job shows them. */
#include "ring.h"

#include <dirent.h>

#define TAKEN_BY_THREAD (1L << 40) /* kUringPolled */

static void setup(void)
{
    make_file("other", 8192);
    make_file("data", 1 * MIB);
    need_ring(IORING_SETUP_SQPOLL);
}

/* The thread of this process that is not its first. */
static long polling_thread(void)
{
    DIR *const tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        if (entry->d_name[0] != '.' && atol(entry->d_name) != getpid())
            return atol(entry->d_name);
    give_up("no polling thread");
}

/* It sleeps when it has had nothing to do for a while. */
static void wake_poller(void)
{
    if ((*g_ring.flags & IORING_SQ_NEED_WAKEUP) == 0)
        return;
    WANT(CALL6(SYS_io_uring_enter, g_ring.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, 0, 0), 0);
    say("uring_enter %s size=0 arg=0 result=0", on("ring"));
}

/* The request of a call, and that it was done. */
static void say_call(int code, const char *label)
{
    say("uring_submit handle=- fd=-1 file=- offset=0 size=0 flags=%ld arg=%d list= request=%s result=0", TAKEN_BY_THREAD,
        code, label);
}
static void say_called(const char *label) { say("uring_complete request=%s size=0 result=0", label); }

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    make_ring(IORING_SETUP_SQPOLL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    const long poller = polling_thread();
    for (long i = 0; i < 5; i++) {
        request(IORING_OP_READ, fd_("a"), g_buffer, 4096, i * 10000, 0);
        wake_poller();
        WANT(take_completion(), 4096);
        g_say_for = poller; /* it submits, and nobody calls anything */
        say("uring_submit handle=a fd=%d file=- offset=%ld size=4096 flags=%ld arg=%d list= request=r%ld result=0", fd_("a"),
            i * 10000, TAKEN_BY_THREAD, IORING_OP_READ, i);
        say("uring_complete request=r%ld size=4096 result=4096", i);
        g_say_for = 0;
    }
    /* Opened by the thread, used by this task, closed by the thread. */
    request(IORING_OP_OPENAT, AT_FDCWD, full("other"), 0, 0, 0);
    wake_poller();
    const long opened = WANT(take_completion(), ANY_FD);
    g_say_for = poller;
    say_call(IORING_OP_OPENAT, "o0");
    say_open("o", "other", O_RDONLY, 0, opened);
    say_called("o0");
    g_say_for = 0;
    do_pread("o", 4096, 1000, 4096);
    request(IORING_OP_CLOSE, fd_("o"), 0, 0, 0, 0);
    wake_poller();
    const long closed = WANT(take_completion(), 0);
    g_say_for = poller;
    say_call(IORING_OP_CLOSE, "o1");
    say("close %s result=%ld", on("o"), closed);
    say_called("o1");
    g_say_for = 0;
    do_close("a");
    close(g_ring.fd);
    return 0;
}
