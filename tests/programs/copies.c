/* SPDX-License-Identifier: MIT */
/* sendfile, copy_file_range, splice: both ends, given offsets and positions. */
#include "expect.h"

#include <sys/sendfile.h>

static void setup(void)
{
    make_file("data", 200000);
    make_file("target", 1000);
}

static void ends(const char *kind, const char *from, long offset, const char *to, long offset2, long size, int flags,
                 long got)
{
    char more[32] = "";
    if (flags >= 0)
        snprintf(more, sizeof more, " flags=%d", flags);
    say("%s %s offset=%ld handle2=%s fd2=%d offset2=%ld size=%ld%s result=%ld", kind, on(from), offset, handle_(to),
        fd_(to), offset2, size, more, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "target", O_RDWR, 0, ANY_FD);
    long offset = 5000, offset2 = 100;
    ends("sendfile", "a", 5000, "b", 0, 10000, -1, WANT(CALL4(SYS_sendfile, fd_("b"), fd_("a"), &offset, 10000), 10000));
    ends("sendfile", "a", 0, "b", 10000, 500, -1, WANT(CALL4(SYS_sendfile, fd_("b"), fd_("a"), 0, 500), 500));
    do_read("a", 10, 500, 10);
    offset = 190000;
    ends("sendfile", "a", 190000, "b", 10500, 50000, -1,
         WANT(CALL4(SYS_sendfile, fd_("b"), fd_("a"), &offset, 50000), 10000));
    offset = 8192;
    ends("copy_file_range", "a", 8192, "b", 100, 4096, 0,
         WANT(CALL6(SYS_copy_file_range, fd_("a"), &offset, fd_("b"), &offset2, 4096, 0), 4096));
    ends("copy_file_range", "a", 510, "b", 20500, 100, 0,
         WANT(CALL6(SYS_copy_file_range, fd_("a"), 0, fd_("b"), 0, 100, 0), 100));
    do_lseek("b", 0, SEEK_CUR, 20600);

    int pair[2];
    WANT(CALL2(SYS_pipe2, pair, 0), 0);
    bind_fd("out", "out", pair[0]);
    bind_fd("in", "in", pair[1]);
    offset = 4096;
    ends("splice", "a", 4096, "in", 0, 8192, 0, WANT(CALL6(SYS_splice, fd_("a"), &offset, pair[1], 0, 8192, 0), 8192));
    offset2 = 40960;
    ends("splice", "out", 0, "b", 40960, 4096, 0, WANT(CALL6(SYS_splice, pair[0], 0, fd_("b"), &offset2, 4096, 0), 4096));
    ends("splice", "out", 4096, "b", 20600, 4096, 0, WANT(CALL6(SYS_splice, pair[0], 0, fd_("b"), 0, 4096, 0), 4096));
    ends("splice", "a", 610, "in", 8192, 100, 0, WANT(CALL6(SYS_splice, fd_("a"), 0, pair[1], 0, 100, 0), 100));
    close(pair[0]);
    close(pair[1]);
    do_fstat("b");
    do_close("b");
    do_close("a");
    return 0;
}
