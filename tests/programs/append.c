/* SPDX-License-Identifier: MIT */
/* O_APPEND: writes go to the end, whoever moved it; RWF_APPEND. */
#include "expect.h"

static void setup(void) { make_file("log", 1000); }

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "log", O_WRONLY | O_APPEND, 0, ANY_FD);
    do_open("b", "log", O_WRONLY | O_APPEND, 0, ANY_FD);
    do_fstat("a");
    do_write("a", 100, 1000, 100);
    do_write("b", 50, 1100, 50);
    do_write("a", 1, 1150, 1);
    do_lseek("a", 0, SEEK_SET, 0);
    do_write("a", 10, 1151, 10);
    do_ftruncate("b", 500, 0);
    do_write("a", 10, 500, 10);
    do_lseek("a", 0, SEEK_CUR, 510);
    do_close("a");
    do_close("b");
    do_open("n", "new", O_CREAT | O_EXCL | O_WRONLY | O_APPEND, 0644, ANY_FD);
    do_write("n", 4096, 0, 4096);
    do_write("n", 4096, 4096, 4096);
    do_close("n");
    return 0;
}
