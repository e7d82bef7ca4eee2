/* SPDX-License-Identifier: MIT */
/* read, write, pread, pwrite, lseek: positions, ends of files, refusals. */
#include "expect.h"

static void setup(void)
{
    make_file("data", 100000);
    if (mkdir(full("dir"), 0755) != 0)
        give_up("setup");
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_read("a", 4096, 0, 4096);
    do_read("a", 10000, 4096, 10000);
    do_pread("a", 4096, 50000, 4096);
    do_read("a", 100, 14096, 100);
    do_lseek("a", 99990, SEEK_SET, 99990);
    do_read("a", 4096, 99990, 10);
    do_read("a", 4096, 100000, 0);
    do_lseek("a", -50, SEEK_CUR, 99950);
    do_lseek("a", -1000, SEEK_END, 99000);
    do_read("a", 0, 99000, 0);
    do_read("a", 2000, 99000, 1000);
    do_pread("a", 4096, 99999, 1);
    do_pread("a", 4096, 200000, 0);
    do_pread("a", 4096, -1, -EINVAL);
    do_lseek("a", -1, SEEK_SET, -EINVAL);
    do_lseek("a", 0, 77, -EINVAL);
    do_write("a", 10, 100000, -EBADF);
    do_close("a");

    do_open("b", "out", O_CREAT | O_RDWR | O_TRUNC, 0644, ANY_FD);
    do_write("b", 5000, 0, 5000);
    do_write("b", 3000, 5000, 3000);
    do_pwrite("b", 1 * MIB, 1 * MIB, 1 * MIB);
    do_write("b", 1, 8000, 1);
    do_lseek("b", 0, SEEK_END, 2 * MIB);
    do_write("b", 10, 2 * MIB, 10);
    do_pread("b", 2 * MIB, 0, 2 * MIB);
    do_fstat("b");
    do_close("b");

    do_open("w", "out", O_WRONLY, 0, ANY_FD);
    do_read("w", 10, 0, -EBADF);
    do_pread("w", 10, 0, -EBADF);
    do_close("w");
    do_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    do_read("d", 10, 0, -EISDIR);
    do_close("d");
    return 0;
}
