/* SPDX-License-Identifier: MIT */
/* rename, renameat, renameat2; over a file that is open; checkpoints as jobs write them. */
#include "expect.h"

#include <linux/fs.h>

static void setup(void)
{
    make_file("current", 8192);
    make_file("a", 100);
    make_file("b", 200);
}

static void do_renameat2(const char *from, const char *to, int flags, long want)
{
    const long got = WANT(CALL5(SYS_renameat2, AT_FDCWD, full(from), AT_FDCWD, full(to), flags), want);
    say("rename file=%s file2=%s flags=%d result=%ld", from, to, flags, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("reader", "current", O_RDONLY, 0, ANY_FD);
    do_read("reader", 4096, 0, 4096);
    do_open("writer", "temporary", O_CREAT | O_EXCL | O_WRONLY, 0644, ANY_FD);
    do_write("writer", 20000, 0, 20000);
    do_fsync("writer");
    do_rename("temporary", "current#1", 0);
    do_read("reader", 8192, 4096, 4096); /* still the old file */
    do_write("writer", 10, 20000, 10);   /* by whatever name */
    do_close("writer");
    do_close("reader");
    do_open("again", "current#1", O_RDONLY, 0, ANY_FD);
    do_fstat("again");
    do_read("again", 30000, 0, 20010);
    do_close("again");
    do_stat("temporary#1", -ENOENT);

    do_renameat2("a", "b", RENAME_NOREPLACE, -EEXIST);
    do_rename("missing", "b", -ENOENT);
    do_renameat2("a", "b", RENAME_EXCHANGE, 0);
    do_stat("a#1", 0);
    do_stat("b#1", 0);
    say("rename file=a#1 file2=c flags=0 result=%ld",
        WANT(CALL4(SYS_renameat, AT_FDCWD, full("a"), AT_FDCWD, full("c")), 0));
    do_open("c", "c", O_RDONLY, 0, ANY_FD);
    do_read("c", 1000, 0, 200);
    do_close("c");
    return 0;
}
