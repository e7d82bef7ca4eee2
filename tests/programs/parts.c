/* SPDX-License-Identifier: MIT */
/* What the recorder tells of calls beside their numbers: every descriptor, path, list and number behind a pointer, also
 * of calls that fail or are made wrongly. Nothing is done below the root: the raw records are looked at (check_raw). */
#include "expect.h"

#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

static void setup(void) {}

static char *const g_bad = (char *)16; /* no memory there */

/* "fdWHICH=FD/INODE/SIZE/POSITION/FLAGS/MODE" */
static const char *file(const char *which, int fd, long position)
{
    static char room[8][160];
    static unsigned next;
    char *const out = room[next++ % 8];
    struct stat st;
    if (fstat(fd, &st) != 0)
        give_up("fstat of %d", fd);
    snprintf(out, sizeof room[0], "fd%s=%d/%lu/%ld/%ld/%d/%u", which, fd, (unsigned long)st.st_ino, (long)st.st_size,
             position, (int)CALL3(SYS_fcntl, fd, F_GETFL, 0), st.st_mode);
    return out;
}
/* Memory that holds so many bytes, with its position behind them. */
static int memory(const char *name, long bytes)
{
    const int fd = (int)WANT(CALL2(SYS_memfd_create, name, 0), ANY_FD);
    say("raw memfd_create %s string0=%s result=%d", file("=", fd, 0), name, fd);
    WANT(CALL3(SYS_write, fd, g_buffer, bytes), bytes);
    say("raw write %s result=%ld", file("0", fd, bytes), bytes);
    return fd;
}

/* Any number is one, also 0. */
static void standard_input(int m)
{
    const int kept = (int)WANT(CALL3(SYS_fcntl, 0, F_DUPFD_CLOEXEC, 20), ANY_FD);
    close(0);
    WANT(CALL4(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0), 0);
    say("raw openat %s path1=/dev/null result=0", file("=", 0, 0));
    close(0);
    char far[300] = "/";
    for (int i = 0; i < 100; i++)
        strcat(far, "./");
    strcat(far, "dev/null");
    WANT(CALL4(SYS_openat, AT_FDCWD, far, O_RDONLY, 0), 0);
    say("raw openat %s path1=%s result=0", file("=", 0, 0), far);
    close(0);
    WANT(CALL4(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0), 0);
    say("raw openat %s path1=/ result=0", file("=", 0, 0));
    const int null = (int)WANT(CALL4(SYS_openat, 0, "dev/null", O_RDONLY, 0), ANY_FD);
    say("raw openat %s fd0=0 path1=dev/null result=%d", file("=", null, 0), null);
    WANT(CALL4(SYS_renameat, 0, "no/a", null, "no/b"), -ENOENT);
    say("raw renameat fd0=0 fd2=%d path1=no/a path3=no/b result=%d", null, -ENOENT);
    WANT(CALL5(SYS_renameat2, 0, "no/a", 0, "no/b", 0), -ENOENT);
    say("raw renameat2 fd0=0 fd2=0 path1=no/a path3=no/b result=%d", -ENOENT);
    WANT(CALL4(SYS_renameat, AT_FDCWD, "/no/a", AT_FDCWD, "/no/b"), -ENOENT);
    say("raw renameat path1=/no/a path3=/no/b result=%d", -ENOENT);
    close(null);
    WANT(CALL2(SYS_dup2, m, 0), 0);
    say("raw dup2 %s %s result=0", file("=", 0, 100), file("0", m, 100));
    WANT(CALL3(SYS_read, 0, g_buffer, 10), 0);
    say("raw read %s result=0", file("0", 0, 100));
    WANT(CALL3(SYS_lseek, 0, 30, SEEK_SET), 30);
    say("raw lseek %s result=30", file("0", 0, 30));
    WANT(CALL3(SYS_lseek, m, 0, SEEK_END), 100); /* one open file */
    say("raw lseek %s result=100", file("0", m, 100));
    WANT(CALL2(SYS_dup2, kept, 0), 0);
    say("raw dup2 fd==0 fd0=%d result=0", kept);
    close(kept);
}

/* Numbers that are none. */
static void no_descriptors(void)
{
    for (int fd = 64; fd <= 4096; fd *= 2) {
        WANT(CALL4(SYS_pread64, fd, g_buffer, 1, 0), -EBADF);
        say("raw pread64 fd0=%dnone result=%d", fd, -EBADF);
    }
    WANT(CALL4(SYS_pread64, -1, g_buffer, 1, 0), -EBADF);
    say("raw pread64 fd0=-1none result=%d", -EBADF);
    WANT(CALL1(SYS_close, 60), -EBADF);
    say("raw close fd0=60none result=%d", -EBADF);
    WANT(CALL3(SYS_readv, -1, NULL, 0), -EBADF);
    say("raw readv result=%d", -EBADF);
    WANT(CALL1(SYS_dup, 1000), -EBADF);
    say("raw dup fd0=1000none result=%d", -EBADF);
    WANT(CALL2(SYS_memfd_create, "flags", 0x40000000), -EINVAL);
    say("raw memfd_create string0=flags result=%d", -EINVAL);
    WANT(CALL3(SYS_eventfd2, 0, 0x40000000, 0), -EINVAL);
    say("raw eventfd2 fd==%dnone result=%d", -EINVAL, -EINVAL);
}

/* Of every length around that of words and of the shortest way; none, or no memory. */
static void paths(void)
{
    char path[4200];
    for (int length = 0; length < 300; length += length < 20 || (length > 120 && length < 135) ? 1 : 40) {
        memset(path, 'p', sizeof path);
        for (int i = 100; i < length; i += 100)
            path[i] = '/';
        path[length] = 0;
        WANT(CALL4(SYS_openat, AT_FDCWD, path, O_RDONLY, 0), -ENOENT);
        if (length < 128)
            say("raw openat fd==%dnone path1=%s result=%d", -ENOENT, path, -ENOENT);
        else
            say("raw openat path1=%s result=%d", path, -ENOENT);
    }
    for (int i = 0; i < 4200; i++)
        path[i] = i % 2 ? '.' : '/';
    path[4095] = 0;
    WANT(CALL2(SYS_access, path, R_OK), 0);
    say("raw access path0=%s result=0", path);
    path[4095] = '.';
    path[4096] = 0;
    WANT(CALL2(SYS_access, path, R_OK), -ENAMETOOLONG);
    say("raw access path0=%s TRUNCATED result=%d", path, -ENAMETOOLONG);
    WANT(CALL4(SYS_openat, AT_FDCWD, g_bad, O_RDONLY, 0), -EFAULT);
    say("raw openat UNREADABLE result=%d", -EFAULT);
    WANT(CALL4(SYS_openat, AT_FDCWD, NULL, O_RDONLY, 0), -EFAULT);
    say("raw openat result=%d", -EFAULT);
    WANT(CALL2(SYS_rename, "/no/x", g_bad), -ENOENT);
    say("raw rename path0=/no/x UNREADABLE result=%d", -ENOENT);
    WANT(CALL2(SYS_symlink, "target", "/no/x"), -ENOENT);
    say("raw symlink path1=/no/x string0=target result=%d", -ENOENT);
    WANT(CALL3(SYS_symlinkat, "target", AT_FDCWD, "/no/x"), -ENOENT);
    say("raw symlinkat path2=/no/x string0=target result=%d", -ENOENT);
    WANT(CALL4(SYS_getxattr, "/no/x", "user.name", g_buffer, 10), -ENOENT);
    say("raw getxattr path0=/no/x string1=user.name result=%d", -ENOENT);
    WANT(CALL3(SYS_execve, "/no/program", NULL, NULL), -ENOENT);
    say("raw execve path0=/no/program result=%d", -ENOENT);
    WANT(CALL3(SYS_readlink, "/no/x", g_buffer, 100), -ENOENT);
    say("raw readlink path0=/no/x result=%d", -ENOENT);
    for (int n = 1; n < 18; n++) {
        memset(g_buffer, 'x', 64); /* no end follows what comes */
        WANT(CALL3(SYS_readlink, "/proc/self/exe", g_buffer, n), n);
        say("raw readlink path0=/proc/self/exe string1=%.*s result=%d", n, g_buffer, n);
    }
}

/* What calls fill in or are asked in structures. */
static const char *stat_part(int which, const struct stat *st)
{
    static char room[160];
    const unsigned long device = (unsigned long)major(st->st_dev) << 20 | minor(st->st_dev);
    snprintf(room, sizeof room, "stat%d=%lu/%lu/%ld/%u/%lu", which, (unsigned long)st->st_ino, device,
             (long)st->st_size, st->st_mode, (unsigned long)st->st_nlink);
    return room;
}
static void structures(int m)
{
    static const char *const names[] = {"/", "/dev/null", "/proc/self/exe", "/etc", "/usr/bin"};
    struct stat st;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        WANT(CALL2(SYS_stat, names[i], &st), 0);
        say("raw stat path0=%s %s result=0", names[i], stat_part(1, &st));
        static char room[256];
        WANT(CALL5(SYS_statx, AT_FDCWD, names[i], 0, 0x7ff, room), 0);
        say("raw statx path1=%s %s result=0", names[i], stat_part(4, &st));
    }
    WANT(CALL2(SYS_stat, "/no/x", &st), -ENOENT);
    say("raw stat path0=/no/x result=%d", -ENOENT);
    WANT(CALL2(SYS_stat, "/", g_bad), -EFAULT);
    say("raw stat path0=/ result=%d", -EFAULT);
    WANT(CALL5(SYS_statx, AT_FDCWD, "/no/x", 0, 0x7ff, g_buffer), -ENOENT);
    say("raw statx path1=/no/x result=%d", -ENOENT);

    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_NO_SYMLINKS};
    const int null = (int)WANT(CALL4(SYS_openat2, AT_FDCWD, "/dev/null", &how, sizeof how), ANY_FD);
    say("raw openat2 %s path1=/dev/null values2=%d,0,%d result=%d", file("=", null, 0), O_RDONLY | O_CLOEXEC,
        RESOLVE_NO_SYMLINKS, null);
    close(null);
    WANT(CALL4(SYS_openat2, AT_FDCWD, "/no/x", g_bad, sizeof how), -EFAULT);
    say("raw openat2 path1=/no/x UNREADABLE result=%d", -EFAULT);
    WANT(CALL4(SYS_openat2, AT_FDCWD, "/no/x", NULL, sizeof how), -EFAULT);
    say("raw openat2 path1=/no/x result=%d", -EFAULT);

    long from = 10, to = 200;
    const int n = memory("n", 50);
    WANT(CALL4(SYS_sendfile, n, m, &from, 20), 20);
    say("raw sendfile %s %s values2=30 result=20", file("0", n, 70), file("1", m, 100));
    WANT(CALL4(SYS_sendfile, n, m, NULL, 20), 0);
    say("raw sendfile %s %s result=0", file("0", n, 70), file("1", m, 100));
    long got = CALL6(SYS_copy_file_range, m, &from, n, &to, 30, 0);
    say("raw copy_file_range fd0=%d fd2=%d values1=%ld values3=%ld result=%ld", m, n, from, to, got);
    got = CALL6(SYS_copy_file_range, m, NULL, n, &to, 30, 0);
    say("raw copy_file_range fd0=%d fd2=%d values3=%ld result=%ld", m, n, to, got);
    got = CALL6(SYS_copy_file_range, m, &from, n, NULL, 30, 0);
    say("raw copy_file_range fd0=%d fd2=%d values1=%ld result=%ld", m, n, from, got);
    close(n);
}

static void vectors(int m)
{
    static struct iovec all[1026];
    static char list[8000];
    for (int i = 0; i < 1026; i++)
        all[i] = (struct iovec){g_buffer, (size_t)(i % 7)};
    WANT(CALL3(SYS_lseek, m, 0, SEEK_SET), 0);
    WANT(CALL3(SYS_readv, m, all, 0), 0);
    say("raw readv %s result=0", file("0", m, 0));
    WANT(CALL3(SYS_readv, m, all, 4), 6);
    say("raw readv %s list1=0,1,2,3 result=6", file("0", m, 6));
    WANT(CALL4(SYS_preadv, m, all, 1024, 0), 100);
    int used = 0;
    for (int i = 0; i < 1024; i++)
        used += sprintf(list + used, "%s%d", i ? "," : "", i % 7);
    say("raw preadv fd0=%d list1=%s result=100", m, list);
    WANT(CALL4(SYS_preadv, m, all, 1025, 0), -EINVAL);
    say("raw preadv fd0=%d list1=%s TRUNCATED result=%d", m, list, -EINVAL);
    WANT(CALL4(SYS_preadv, m, g_bad, 2, 0), -EFAULT);
    say("raw preadv fd0=%d UNREADABLE result=%d", m, -EFAULT);
    WANT(CALL4(SYS_preadv, m, NULL, 2, 0), -EFAULT);
    say("raw preadv fd0=%d result=%d", m, -EFAULT);
    WANT(CALL6(SYS_preadv2, m, all + 5, 2, 90, 0, 0), 10);
    say("raw preadv2 fd0=%d list1=5,6 result=10", m);
    WANT(CALL6(SYS_pwritev2, m, all + 5, 2, 0, 0, 0), 11);
    say("raw pwritev2 fd0=%d list1=5,6 result=11", m);
}

static void pairs(void)
{
    int two[2];
    WANT(CALL2(SYS_pipe2, two, O_NONBLOCK), 0);
    say("raw pipe2 %s %s result=0", file("=", two[0], 0), file("=2", two[1], 0));
    close(two[0]);
    close(two[1]);
    WANT(CALL2(SYS_pipe2, two, 0x40000000), -EINVAL);
    say("raw pipe2 result=%d", -EINVAL);
    WANT(CALL4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, two), 0);
    struct stat a, b;
    fstat(two[0], &a);
    fstat(two[1], &b);
    say("raw socketpair %s/0/%lu %s/0/%lu result=0", file("=", two[0], 0), (unsigned long)b.st_ino,
        file("=2", two[1], 0), (unsigned long)a.st_ino);
    close(two[1]);
    WANT(CALL2(SYS_shutdown, two[0], SHUT_WR), 0);
    say("raw shutdown %s/0/0 result=0", file("0", two[0], 0));
    close(two[0]);
    const int net = (int)WANT(CALL3(SYS_socket, AF_INET, SOCK_DGRAM, 0), ANY_FD);
    say("raw socket %s/0/0 result=%d", file("=", net, 0), net);
    close(net);
    const int epoll = (int)WANT(CALL1(SYS_epoll_create1, 0), ANY_FD);
    const int event = (int)WANT(CALL2(SYS_eventfd2, 0, 0), ANY_FD);
    struct epoll_event add = {.events = EPOLLIN};
    WANT(CALL4(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, event, &add), 0);
    say("raw epoll_ctl %s/%d result=0", file("0", epoll, 0), 8);
    close(event);
    close(epoll);
}

/* --- messages that carry descriptors */

struct control {
    char room[1024];
    size_t used;
};
/* A head with so many bytes behind it; returns where those are. */
static void *head(struct control *c, int type, size_t bytes)
{
    struct cmsghdr *const at = (struct cmsghdr *)(void *)(c->room + c->used);
    at->cmsg_level = SOL_SOCKET;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(bytes);
    c->used += CMSG_SPACE(bytes);
    return CMSG_DATA(at);
}
static void add_fds(struct control *c, const int *fds, size_t n)
{
    memcpy(head(c, SCM_RIGHTS, n * sizeof *fds), fds, n * sizeof *fds);
}
static void add_identity(struct control *c)
{
    const struct ucred me = {getpid(), getuid(), getgid()};
    memcpy(head(c, SCM_CREDENTIALS, sizeof me), &me, sizeof me);
}
static struct iovec g_bytes[2] = {{g_buffer, 1}, {g_buffer, 2}};
static struct msghdr message(struct control *c)
{
    return (struct msghdr){.msg_iov = g_bytes, .msg_iovlen = 2, .msg_control = c->room, .msg_controllen = c->used};
}
static void close_passed(const struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR((struct msghdr *)m, c))
        for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < (c->cmsg_len - sizeof *c) / sizeof(int); i++)
            close(((int *)(void *)CMSG_DATA(c))[i]);
}
/* Says the descriptors "fdsentN=" or "fdreceivedN=" that lie in a message, from number `first` on. */
static const char *passed(const char *way, const struct msghdr *m, int *first)
{
    static char room[2][4000];
    static unsigned next;
    char *const out = room[next++ % 2];
    int used = 0;
    out[0] = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR((struct msghdr *)m, c))
        for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < (c->cmsg_len - sizeof *c) / sizeof(int); i++, ++*first)
            if (*first < 32)
                used += sprintf(out + used, " fd%s%d=%d", way, *first, ((int *)(void *)CMSG_DATA(c))[i]);
    return out;
}
/* Sent over a[0], received over a[1]; `cut`: more descriptors than are told. */
static void pass(const int *a, struct control *c, const char *cut)
{
    struct control room = {.used = sizeof room.room};
    struct msghdr out = message(c), in = message(&room);
    int sent = 0, received = 0;
    WANT(CALL3(SYS_sendmsg, a[0], &out, 0), 3);
    say("raw sendmsg fd0=%d list1=1,2%s%s result=3", a[0], passed("sent", &out, &sent), cut);
    WANT(CALL3(SYS_recvmsg, a[1], &in, 0), 3);
    say("raw recvmsg fd0=%d list1=1,2%s%s result=3", a[1], passed("received", &in, &received), cut);
    close_passed(&in);
}
static void messages(const int *fds)
{
    int a[2], on = 1;
    WANT(CALL4(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, a), 0);
    struct control c = {.used = 0};
    pass(a, &c, "");
    add_fds(&c, fds, 3);
    pass(a, &c, "");
    setsockopt(a[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    c.used = 0;
    add_identity(&c);
    add_fds(&c, fds, 1);
    pass(a, &c, "");
    c.used = 0;
    for (int i = 0; i < 3; i++)
        add_identity(&c);
    add_fds(&c, fds, 2);
    pass(a, &c, "");
    int many[33];
    for (int i = 0; i < 33; i++)
        many[i] = fds[i % 4];
    c.used = 0;
    add_fds(&c, many, 32);
    pass(a, &c, "");
    c.used = 0;
    add_fds(&c, many, 33);
    pass(a, &c, " TRUNCATED");
    /* Wrong heads, no descriptor, no memory. */
    c.used = 0;
    const int none = 900;
    add_fds(&c, &none, 1);
    struct msghdr m = message(&c);
    WANT(CALL3(SYS_sendmsg, a[0], &m, 0), -EBADF);
    say("raw sendmsg fd0=%d list1=1,2 fdsent0=900none result=%d", a[0], -EBADF);
    struct cmsghdr *const first = (struct cmsghdr *)(void *)c.room;
    for (size_t wrong = 0; wrong < 50; wrong += wrong == 15 ? 10 : 5) {
        first->cmsg_len = wrong;
        if (wrong >= sizeof *first && wrong <= c.used)
            continue;
        WANT(CALL3(SYS_sendmsg, a[0], &m, 0), -EINVAL);
        say("raw sendmsg fd0=%d list1=1,2 result=%d", a[0], -EINVAL);
    }
    first->cmsg_len = sizeof *first;
    first->cmsg_type = SCM_CREDENTIALS + 50;
    WANT(CALL3(SYS_sendmsg, a[0], &m, 0), -EINVAL);
    say("raw sendmsg fd0=%d list1=1,2 result=%d", a[0], -EINVAL);
    WANT(CALL3(SYS_sendmsg, a[0], g_bad, 0), -EFAULT);
    say("raw sendmsg fd0=%d UNREADABLE result=%d", a[0], -EFAULT);
    m = (struct msghdr){.msg_iov = NULL};
    WANT(CALL3(SYS_sendmsg, a[0], &m, 0), 0);
    say("raw sendmsg fd0=%d result=0", a[0]);
    close(a[0]);
    close(a[1]);
}
/* Several by one call: the numbers of the descriptors go on. */
static void many_messages(const int *fds)
{
    int a[2];
    WANT(CALL4(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, a), 0);
    struct control sent[4] = {{.used = 0}}, received[4];
    struct mmsghdr out[4], in[4];
    static char list[4][2][4000];
    int n[2] = {0, 0};
    add_fds(&sent[0], fds, 2);
    add_fds(&sent[2], fds + 1, 3);
    add_fds(&sent[3], fds, 1);
    for (int i = 0; i < 4; i++) {
        received[i].used = sizeof received[i].room;
        out[i] = (struct mmsghdr){.msg_hdr = message(&sent[i])};
        in[i] = (struct mmsghdr){.msg_hdr = message(&received[i])};
        out[i].msg_hdr.msg_iovlen = (size_t)(i % 2 + 1);
        strcpy(list[i][0], passed("sent", &out[i].msg_hdr, &n[0]));
    }
    WANT(CALL4(SYS_sendmmsg, a[0], out, 4, 0), 4);
    say("raw sendmmsg fd0=%d list1=1,3,1,3%s%s%s%s result=4", a[0], list[0][0], list[1][0], list[2][0], list[3][0]);
    WANT(CALL5(SYS_recvmmsg, a[1], in, 4, 0, NULL), 4);
    for (int i = 0; i < 4; i++)
        strcpy(list[i][1], passed("received", &in[i].msg_hdr, &n[1]));
    say("raw recvmmsg fd0=%d list1=1,3,1,3%s%s%s%s result=4", a[1], list[0][1], list[1][1], list[2][1], list[3][1]);
    for (int i = 0; i < 4; i++)
        close_passed(&in[i].msg_hdr);
    static struct mmsghdr most[300];
    for (int i = 0; i < 300; i++)
        most[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = g_bytes, .msg_iovlen = 1}};
    WANT(CALL4(SYS_sendmmsg, a[0], most, 4, MSG_DONTWAIT), 4);
    say("raw sendmmsg fd0=%d list1=1,1,1,1 result=4", a[0]);
    WANT(CALL4(SYS_sendmmsg, a[0], most, 0, 0), 0);
    say("raw sendmmsg fd0=%d result=0", a[0]);
    WANT(CALL4(SYS_sendmmsg, 900, most, 2, 0), -EBADF);
    say("raw sendmmsg fd0=900none result=%d", -EBADF);
    close(a[0]);
    close(a[1]);
}

/* --- requests that are not waited for at once */

/* Eight with all buffers there can be, of which a record holds six. */
static void more_than_a_record(aio_context_t context, int m)
{
    static struct iovec empty[1024];
    static struct iocb large[8];
    static char list[2048], parts[15000];
    struct iocb *pointers[8];
    struct io_event done[8];
    int used = 0;
    for (int i = 0; i < 1024; i++)
        memcpy(list + 2L * i, i < 1023 ? "0," : "0", 2);
    for (int i = 0; i < 8; i++) {
        pointers[i] = &large[i];
        large[i] = (struct iocb){.aio_data = 12, .aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = (unsigned)m,
                                 .aio_buf = (unsigned long)empty, .aio_nbytes = 1024, .aio_offset = 6};
        if (i < 6)
            used += sprintf(parts + used, " iocb2=7/%d/6/1024/0/12%s list2=%s", m, i ? "" : " FD", list);
    }
    char *const at = strstr(parts, "FD");
    WANT(CALL3(SYS_io_submit, context, 8, pointers), 8);
    say("raw io_submit%.*sfd2=%d%s TRUNCATED result=8", (int)(at - parts), parts, m, at + 2);
    WANT(CALL5(SYS_io_getevents, context, 8, 8, done, NULL), 8);
    for (int i = 0; i < 6; i++)
        say("aio_submit handle=m fd=%d offset=6 size=0 flags=0 arg=7 list=%s request=%d result=0", m, list, 4 + i);
    say("aio_reap size=8 arg=8 result=8");
    for (int i = 0; i < 6; i++)
        say("aio_complete request=%d size=0 result=0", 4 + i);
    used = 0;
    for (int i = 0; i < 8; i++)
        used += sprintf(parts + used, " event3=0/12");
    say("raw io_getevents%s result=8", parts);
}

static void requests(int m, int n)
{
    static struct iovec vector[2] = {{g_buffer, 10}, {g_buffer, 20}};
    aio_context_t context = 0;
    if (CALL2(SYS_io_setup, 8, &context) != 0)
        return;
    const unsigned long to = (unsigned long)g_buffer, list_at = (unsigned long)vector;
    struct iocb b[4] = {
        {.aio_data = 11, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = to, .aio_nbytes = 40, .aio_offset = 5},
        {.aio_data = 12, .aio_lio_opcode = IOCB_CMD_PREADV, .aio_buf = list_at, .aio_nbytes = 2, .aio_offset = 6},
        {.aio_data = 13, .aio_lio_opcode = IOCB_CMD_PWRITEV, .aio_buf = list_at, .aio_nbytes = 1, .aio_offset = 7},
        {.aio_data = 14, .aio_lio_opcode = IOCB_CMD_PREAD, .aio_buf = to, .aio_nbytes = 4, .aio_offset = 8},
    };
    b[3].aio_rw_flags = RWF_DSYNC;
    for (int i = 0; i < 4; i++)
        b[i].aio_fildes = (unsigned)(i == 2 ? n : m);
    struct iocb *all[5] = {&b[0], &b[1], &b[2], &b[3], (struct iocb *)(void *)g_bad};
    struct io_event done[8];
    WANT(CALL3(SYS_io_submit, context, 5, all), 4);
    say("raw io_submit iocb2=0/%d/5/40/0/11 fd2=%d iocb2=7/%d/6/2/0/12 list2=10,20 iocb2=8/%d/7/1/0/13 fd2=%d "
        "list2=10 iocb2=0/%d/8/4/2/14 fd2=%d result=4",
        m, m, m, n, n, m, m);
    say("aio_submit handle=m fd=%d offset=5 size=40 flags=0 arg=0 list= request=0 result=0", m);
    say("aio_submit handle=m fd=%d offset=6 size=30 flags=0 arg=7 list=10,20 request=1 result=0", m);
    say("aio_submit handle=n fd=%d offset=7 size=10 flags=0 arg=8 list=10 request=2 result=0", n);
    say("aio_submit handle=m fd=%d offset=8 size=4 flags=2 arg=0 list= request=3 result=0", m);
    WANT(CALL5(SYS_io_getevents, context, 4, 8, done, NULL), 4);
    say("aio_reap size=8 arg=4 result=4");
    for (int i = 0; i < 4; i++)
        say("aio_complete request=%d size=%d result=%d", (int)done[i].data - 11, (int)done[i].res, (int)done[i].res);
    char list[400] = "";
    for (int i = 0; i < 4; i++)
        sprintf(list + strlen(list), " event3=%ld/%ld", (long)done[i].res, (long)done[i].data);
    say("raw io_getevents%s result=4", list);
    more_than_a_record(context, m);
    WANT(CALL3(SYS_io_submit, context, 1, all + 4), -EFAULT);
    say("raw io_submit result=%d", -EFAULT);
    WANT(CALL5(SYS_io_getevents, context, 0, 8, done, NULL), 0);
    say("aio_reap size=8 arg=0 result=0");
    say("raw io_getevents result=0");
    CALL1(SYS_io_destroy, context);
}

/* --- processes */

static void children(void)
{
    siginfo_t info;
    int pid = do_fork();
    if (pid == 0)
        _exit(7);
    WANT(CALL5(SYS_waitid, P_PID, pid, &info, WEXITED, NULL), 0);
    say("raw waitid values2=%d,%d,7 result=0", pid, CLD_EXITED);
    pid = do_fork();
    if (pid == 0)
        for (;;)
            pause();
    WANT(CALL5(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG, NULL), 0);
    say("raw waitid values2=0,0,0 result=0");
    kill(pid, SIGKILL);
    WANT(CALL5(SYS_waitid, P_PID, pid, &info, WEXITED, NULL), 0);
    say("raw waitid values2=%d,%d,%d result=0", pid, CLD_KILLED, SIGKILL);
    WANT(CALL5(SYS_waitid, P_PID, pid, &info, WEXITED, NULL), -ECHILD);
    say("raw waitid result=%d", -ECHILD);
    struct clone_args how = {.flags = CLONE_FS, .exit_signal = SIGCHLD};
    pid = (int)WANT(CALL2(SYS_clone3, &how, sizeof how), ANY_FD);
    if (pid == 0)
        _exit(0);
    say("raw clone3 values0=%d result=%d", CLONE_FS, pid);
    WANT(CALL5(SYS_waitid, P_PID, pid, NULL, WEXITED, NULL), 0);
    say("raw waitid result=0");
    WANT(CALL5(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0), 1); /* not recorded */
    WANT(CALL5(SYS_prctl, PR_SET_NAME, "other", 0, 0, 0), 0);
    say("raw prctl string1=other result=0");
    WANT(CALL5(SYS_prctl, PR_SET_NAME, "named", 0, 0, 0), 0);
    say("raw prctl string1=named result=0");
}

/* Asleep inside a call that is not recorded. */
static void unknown_call(void)
{
    const int queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0)
        return;
    struct {
        long type;
        char byte;
    } text = {1, 'x'};
    const int pid = do_fork();
    if (pid == 0) {
        usleep(20000);
        _exit(msgsnd(queue, &text, 1, 0) != 0);
    }
    WANT(msgrcv(queue, &text, 1, 0, 0), 1);
    msgctl(queue, IPC_RMID, NULL);
    do_wait(pid);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    const int m = memory("m", 100), n = memory("n", 7);
    standard_input(m);
    no_descriptors();
    paths();
    structures(m);
    vectors(m);
    pairs();
    const int fds[4] = {m, n, 1, 2};
    messages(fds);
    many_messages(fds);
    requests(m, n);
    children();
    unknown_call();
    close(n);
    close(m);
    return 0;
}
