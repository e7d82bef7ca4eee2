/* SPDX-License-Identifier: MIT */
/* Unlinked but open; deleted and made again; O_TMPFILE. */
#include "expect.h"

static void setup(void)
{
    make_file("gone", 10000);
    if (mkdir(full("dir"), 0755) != 0)
        give_up("setup");
    make_file("dir/x", 10);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "gone", O_RDWR, 0, ANY_FD);
    do_unlink("gone", 0);
    do_unlink("gone#1", -ENOENT);
    do_read("a", 4096, 0, 4096);
    do_pwrite("a", 4096, 10000, 4096);
    do_fstat("a");
    do_open("b", "gone#1", O_CREAT | O_EXCL | O_RDWR, 0644, ANY_FD);
    do_write("b", 100, 0, 100);
    do_read("a", 20000, 4096, 10000);
    do_close("a");
    do_close("b");
    do_unlink("gone#1", 0);
    do_open("c", "gone#2", O_CREAT | O_RDWR, 0644, ANY_FD);
    do_write("c", 7, 0, 7);
    do_close("c");
    do_stat("gone#2", 0);
    do_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    say("unlink file=dir/x result=%ld", WANT(CALL3(SYS_unlinkat, fd_("d"), "x", 0), 0));
    do_close("d");
    do_open("t", "dir", O_TMPFILE | O_RDWR, 0600, ANY_FD);
    do_write("t", 5000, 0, 5000);
    do_pread("t", 5000, 0, 5000);
    do_close("t");
    return 0;
}
