/* SPDX-License-Identifier: MIT */
/* SCM_RIGHTS: an open instance reaches another process over a socket, with its position. */
#include "expect.h"

#include <sys/socket.h>

static void setup(void) { make_file("data", 100000); }

static void message(int socket, int fd, int *received)
{
    char byte = 0;
    struct iovec iov = {&byte, 1};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (received == NULL) {
        control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        WANT(CALL3(SYS_sendmsg, socket, &m, 0), 1);
    } else {
        WANT(CALL3(SYS_recvmsg, socket, &m, MSG_CMSG_CLOEXEC), 1);
        if (control.head.cmsg_type != SCM_RIGHTS)
            give_up("no descriptor came");
        memcpy(received, CMSG_DATA(&control.head), sizeof fd);
    }
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    int pair[2];
    WANT(CALL4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const int child = do_fork();
    if (child == 0) {
        int fd = -1;
        message(pair[1], -1, &fd);
        bind_fd("received", "sent", fd);
        do_read("received", 1000, 1000, 1000);
        do_pread("received", 100, 0, 100);
        message(pair[1], -1, &fd);
        bind_fd("made", "made", fd);
        do_write("made", 50, 100, 50);
        do_close("made");
        do_close("received");
        _exit(0);
    }
    do_open("sent", "data", O_RDONLY, 0, ANY_FD);
    do_read("sent", 1000, 0, 1000);
    message(pair[0], fd_("sent"), NULL);
    do_open("made", "new", O_CREAT | O_EXCL | O_RDWR, 0600, ANY_FD);
    do_write("made", 100, 0, 100);
    do_unlink("new", 0);
    message(pair[0], fd_("made"), NULL);
    do_close("made");
    do_wait(child);
    do_read("sent", 1000, 2000, 1000);
    do_close("sent");
    return 0;
}
