/* SPDX-License-Identifier: MIT */
/* readv, writev, preadv, pwritev, preadv2, pwritev2 with their flags. At offset -1 the last two are the first two. */
#include "expect.h"

static void setup(void) { make_file("data", 100000); }

static struct iovec pieces[3];
static long vector(long a, long b, long c)
{
    pieces[0] = (struct iovec){g_buffer, (size_t)a};
    pieces[1] = (struct iovec){g_buffer + 65536, (size_t)b};
    pieces[2] = (struct iovec){g_buffer + 131072, (size_t)c};
    return a + b + c;
}

static void plain(const char *kind, long nr, const char *name, long a, long b, long c, long offset, long want)
{
    const long size = vector(a, b, c);
    const long got = WANT(CALL3(nr, fd_(name), pieces, 3), want);
    say("%s %s offset=%ld size=%ld flags=0 list=%ld,%ld,%ld result=%ld", kind, on(name), offset, size, a, b, c, got);
}

/* `given` is the offset asked for, `offset` where it goes. */
static void at(const char *kind, long nr, const char *name, long a, long b, long c, long given, long offset, int flags,
               long want)
{
    const long size = vector(a, b, c);
    const long got = WANT(CALL6(nr, fd_(name), pieces, 3, given, 0, flags), want);
    say("%s %s offset=%ld size=%ld flags=%d list=%ld,%ld,%ld result=%ld", kind, on(name), offset, size, flags, a, b, c,
        got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    plain("readv", SYS_readv, "a", 100, 200, 300, 0, 600);
    plain("readv", SYS_readv, "a", 4096, 0, 4096, 600, 8192);
    do_lseek("a", 99000, SEEK_SET, 99000);
    plain("readv", SYS_readv, "a", 900, 900, 900, 99000, 1000);
    at("preadv", SYS_preadv, "a", 1, 2, 3, 50000, 50000, 0, 6);
    at("preadv", SYS_preadv, "a", 1000, 1000, 1000, 99999, 99999, 0, 1);
    at("preadv", SYS_preadv2, "a", 10, 20, 30, 70000, 70000, 0, 60);
    at("preadv", SYS_preadv2, "a", 10, 20, 30, 100, 100, RWF_NOWAIT, 60);
    at("preadv", SYS_preadv2, "a", 10, 20, 30, 100, 100, 0x4000, -EOPNOTSUPP);
    do_lseek("a", 1000, SEEK_SET, 1000);
    at("readv", SYS_preadv2, "a", 10, 20, 30, -1, 1000, 0, 60);
    do_read("a", 40, 1060, 40);
    do_close("a");

    do_open("b", "out", O_CREAT | O_RDWR | O_TRUNC, 0644, ANY_FD);
    plain("writev", SYS_writev, "b", 1000, 2000, 3000, 0, 6000);
    plain("writev", SYS_writev, "b", 1, 0, 1, 6000, 2);
    at("pwritev", SYS_pwritev, "b", 500, 500, 500, 100000, 100000, 0, 1500);
    at("pwritev", SYS_pwritev2, "b", 4096, 4096, 4096, 8192, 8192, RWF_DSYNC, 12288);
    at("pwritev", SYS_pwritev2, "b", 4096, 4096, 4096, 0, 0, RWF_SYNC, 12288);
    at("writev", SYS_pwritev2, "b", 10, 20, 30, -1, 6002, RWF_DSYNC, 60);
    do_lseek("b", 0, SEEK_CUR, 6062);
    do_close("b");
    return 0;
}
