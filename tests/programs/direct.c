/* SPDX-License-Identifier: MIT */
/* O_DIRECT, and what it refuses. */
#include "expect.h"

static void setup(void)
{
    make_file("data", 1 * MIB);
    if (open(full("data"), O_RDONLY | O_DIRECT) < 0)
        give_up("SKIPPED: no O_DIRECT on this file system");
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY | O_DIRECT, 0, ANY_FD);
    do_read("a", 64 * KIB, 0, 64 * KIB);
    do_pread("a", 4096, 512 * KIB, 4096);
    do_pread("a", 4096, 1 * MIB, 0);
    do_pread("a", 4096, 100, -EINVAL);
    /* As programs find out how buffers must lie. */
    const long odd = WANT(CALL4(SYS_pread64, fd_("a"), g_buffer + 1, 4096, 0), -EINVAL);
    say("pread %s offset=0 size=4096 flags=0 result=%ld", on("a"), odd);
    const struct iovec pieces[2] = {{g_buffer + 1, 512}, {g_buffer + 513, 3584}};
    const long odd_list = WANT(CALL5(SYS_preadv, fd_("a"), pieces, 2, 0, 0), -EINVAL);
    say("preadv %s offset=0 size=4096 list=512,3584 flags=0 result=%ld", on("a"), odd_list);
    do_close("a");
    do_open("b", "out", O_CREAT | O_RDWR | O_DIRECT, 0644, ANY_FD);
    do_write("b", 64 * KIB, 0, 64 * KIB);
    do_pwrite("b", 4096, 128 * KIB, 4096);
    do_pwrite("b", 100, 0, -EINVAL);
    do_pread("b", 256 * KIB, 0, 132 * KIB);
    do_close("b");
    return 0;
}
