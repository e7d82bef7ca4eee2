/* SPDX-License-Identifier: MIT */
/* io_uring with a kernel thread that takes the submissions (SQPOLL): no call of the job shows them. */
#include "ring.h"

static void setup(void)
{
    make_file("data", 1 * MIB);
    need_ring(IORING_SETUP_SQPOLL);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    make_ring(IORING_SETUP_SQPOLL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    for (long i = 0; i < 5; i++) {
        request(IORING_OP_READ, fd_("a"), g_buffer, 4096, i * 10000, 0);
        if ((*g_ring.flags & IORING_SQ_NEED_WAKEUP) != 0)
            give_up("the polling thread sleeps");
        WANT(take_completion(), 4096);
        say("uring_submit handle=a fd=%d file=- offset=%ld size=4096 flags=0 arg=%d list= request=r%ld result=0", fd_("a"),
            i * 10000, IORING_OP_READ, i);
        say("uring_complete request=r%ld size=4096 result=4096", i);
    }
    do_close("a");
    close(g_ring.fd);
    return 0;
}
