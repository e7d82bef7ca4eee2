/* SPDX-License-Identifier: MIT */
/* mkdir, rmdir, getdents: made, listed, refused, removed, moved with what is below. */
#include "expect.h"

static void setup(void)
{
    if (mkdir(full("old"), 0755) != 0)
        give_up("setup");
    make_file("old/one", 1);
    make_file("old/two", 2);
    make_file("file", 3);
}

static void do_getdents(const char *name, long size, int empty)
{
    const long got = CALL3(SYS_getdents64, fd_(name), g_buffer, size);
    if (got < 0 || (got == 0) != empty)
        give_up("getdents64 gave %ld", got);
    say("getdents %s size=%ld result=%ld", on(name), size, got);
}
static void do_rmdir(const char *path, long want)
{
    say("rmdir file=%s result=%ld", path, WANT(CALL1(SYS_rmdir, full(path)), want));
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_mkdir("new", 0750, 0);
    do_mkdir("new", 0750, -EEXIST);
    do_mkdir("file/x", 0750, -ENOTDIR);
    do_mkdir("nowhere/x", 0750, -ENOENT);
    do_open("n", "new", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    say("mkdir file=new/deep mode=%d result=%ld", 0700, WANT(CALL3(SYS_mkdirat, fd_("n"), "deep", 0700), 0));
    do_close("n");
    do_stat("old/one", 0); /* a listing tells no names: a replay has those that the job uses */
    do_stat("old/two", 0);
    do_open("o", "old", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, ANY_FD);
    do_getdents("o", 32768, 0);
    do_getdents("o", 32768, 1);
    do_close("o");
    do_open("f", "file", O_RDONLY, 0, ANY_FD);
    say("getdents %s size=100 result=%ld", on("f"), WANT(CALL3(SYS_getdents64, fd_("f"), g_buffer, 100), -ENOTDIR));
    do_mkdir("file", 0750, -EEXIST); /* a file is in the way, and stays one */
    do_close("f");
    do_open("g", "file", O_RDONLY, 0, ANY_FD);
    do_close("g");

    do_rmdir("new", -ENOTEMPTY);
    do_rmdir("missing", -ENOENT);
    do_rmdir("file", -ENOTDIR);
    do_open("x", "new/deep/file", O_CREAT | O_EXCL | O_WRONLY, 0600, ANY_FD);
    do_write("x", 100, 0, 100);
    do_rename("new/deep", "moved", 0);
    do_write("x", 100, 100, 100);
    do_close("x");
    do_open("y", "moved/file", O_RDONLY, 0, ANY_FD);
    do_read("y", 1000, 0, 200);
    do_close("y");
    do_stat("new/deep/file#1", -ENOENT);
    do_unlink("moved", -EISDIR);
    do_unlink("moved/file", 0);
    say("rmdir file=moved result=%ld", WANT(CALL3(SYS_unlinkat, AT_FDCWD, full("moved"), AT_REMOVEDIR), 0));
    do_rmdir("new", 0);
    do_stat("new#1", -ENOENT);
    return 0;
}
