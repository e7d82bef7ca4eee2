/* SPDX-License-Identifier: MIT */
/* sendmmsg and recvmmsg: several messages by one call, one of them with an open instance. */
#include "expect.h"

#include <sys/socket.h>

enum { kMessages = 3 };

static void setup(void) { make_file("data", 100000); }

static void made(const char *first, const char *second, const int *fds, int arg)
{
    bind_fd(first, first, fds[0]);
    bind_fd(second, second, fds[1]);
    say("pipe handle=%s fd=%d handle2=%s fd2=%d flags=%d arg=2 result=0", first, fds[0], second, fds[1], arg);
}

/* Room for messages of up to 1000 bytes; the second one's control data are `control`. */
static void prepare(struct mmsghdr *all, struct iovec *iov, const long *sizes, void *control, size_t room)
{
    memset(all, 0, kMessages * sizeof *all);
    for (int i = 0; i < kMessages; i++) {
        iov[i] = (struct iovec){g_buffer + i * 1000, (size_t)sizes[i]};
        all[i].msg_hdr.msg_iov = &iov[i];
        all[i].msg_hdr.msg_iovlen = 1;
    }
    all[1].msg_hdr.msg_control = control;
    all[1].msg_hdr.msg_controllen = room;
}

int main(int argc, char **argv)
{
    begin(argc, argv, "pipe send receive");
    int pair[2];
    WANT(CALL4(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    made("s", "t", pair, SOCK_DGRAM);
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct mmsghdr all[kMessages];
    struct iovec iov[kMessages];
    const int child = do_fork();
    if (child == 0) {
        prepare(all, iov, (long[]){1000, 1000, 1000}, &control, sizeof control);
        const long got = WANT(CALL5(SYS_recvmmsg, fd_("t"), all, kMessages, MSG_WAITALL, NULL), kMessages);
        if (got != kMessages || control.head.cmsg_type != SCM_RIGHTS)
            give_up("no descriptor came");
        int fd = -1;
        memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
        say("receive %s offset=0 size=160 result=160", on("t"));
        bind_fd("passed", "sent", fd);
        do_read("passed", 1000, 1000, 1000);
        do_close("passed");
        _exit(0);
    }
    do_open("sent", "data", O_RDONLY, 0, ANY_FD);
    do_read("sent", 1000, 0, 1000);
    prepare(all, iov, (long[]){100, 10, 50}, &control, sizeof control);
    memset(&control, 0, sizeof control);
    control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    const int fd = fd_("sent");
    memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    WANT(CALL4(SYS_sendmmsg, fd_("s"), all, kMessages, 0), kMessages);
    say("send %s offset=0 size=160 result=160", on("s"));
    do_wait(child);
    do_close("sent");
    WANT(CALL5(SYS_recvmmsg, fd_("s"), all, kMessages, MSG_DONTWAIT, NULL), -EAGAIN);
    say("receive %s offset=0 size=0 result=%d", on("s"), -EAGAIN);
    return 0;
}
