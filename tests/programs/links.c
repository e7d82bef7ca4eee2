/* SPDX-License-Identifier: MIT */
/* link, symlink, readlink. */
#include "expect.h"

static void setup(void)
{
    make_file("data", 5000);
    if (mkdir(full("dir"), 0755) != 0 || symlink("data", full("old")) != 0)
        give_up("setup");
}

static void do_readlink(const char *path, long size, long want)
{
    const long got = WANT(CALL3(SYS_readlink, full(path), g_buffer, size), want);
    say("readlink file=%s size=%ld result=%ld", path, size, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    say("link file=data file2=second flags=0 result=%ld", WANT(CALL2(SYS_link, full("data"), full("second")), 0));
    say("link file=data file2=second flags=0 result=%ld", WANT(CALL2(SYS_link, full("data"), full("second")), -EEXIST));
    say("link file=missing file2=third flags=0 result=%ld",
        WANT(CALL2(SYS_link, full("missing"), full("third")), -ENOENT));
    say("link file=data file2=dir/fourth flags=0 result=%ld",
        WANT(CALL5(SYS_linkat, AT_FDCWD, full("data"), fd_("d"), "fourth", 0), 0));
    do_open("s", "second", O_RDWR, 0, ANY_FD);
    do_read("s", 10000, 0, 5000);
    do_write("s", 10, 5000, 10);
    do_close("s");

    say("symlink file=soft text=\"data\" result=%ld", WANT(CALL2(SYS_symlink, "data", full("soft")), 0));
    say("symlink file=soft text=\"data\" result=%ld", WANT(CALL2(SYS_symlink, "data", full("soft")), -EEXIST));
    say("symlink file=dir/up text=\"../data\" result=%ld", WANT(CALL3(SYS_symlinkat, "../data", fd_("d"), "up"), 0));
    do_readlink("soft", 100, 4);
    do_readlink("soft", 2, 2);
    do_readlink("old", 4095, 4);
    do_readlink("data", 100, -EINVAL);
    do_readlink("missing", 100, -ENOENT);
    say("readlink file=dir/up size=50 result=%ld", WANT(CALL4(SYS_readlinkat, fd_("d"), "up", g_buffer, 50), 7));
    say_open("v", "data", O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, full("dir/up"), O_RDONLY, 0), ANY_FD));
    do_read("v", 10, 0, 10);
    do_close("v");
    do_unlink("soft", 0);
    do_unlink("second", 0);
    do_stat("data", 0);

    /* A file that has no name until it is whole. */
    char magic[64];
    do_open("t", "dir", O_TMPFILE | O_RDWR, 0600, ANY_FD);
    do_write("t", 300, 0, 300);
    snprintf(magic, sizeof magic, "/proc/self/fd/%d", fd_("t"));
    say("link file=dir file2=dir/whole flags=%d result=%ld", AT_SYMLINK_FOLLOW,
        WANT(CALL5(SYS_linkat, AT_FDCWD, magic, fd_("d"), "whole", AT_SYMLINK_FOLLOW), 0));
    do_close("t");
    do_open("w", "dir/whole", O_RDONLY, 0, ANY_FD);
    do_read("w", 1000, 0, 300);
    do_close("w");

    /* Through a link of its own, by the name that it has now. */
    say("symlink file=way text=\"dir\" result=%ld", WANT(CALL2(SYS_symlink, "dir", full("way")), 0));
    say("rename file=way file2=path flags=0 result=%ld", WANT(CALL2(SYS_rename, full("way"), full("path")), 0));
    say_open("p", "dir/whole", O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, full("path/whole"), O_RDONLY, 0), ANY_FD));
    do_read("p", 1000, 0, 300);
    do_close("p");
    /* A directory that is renamed under its descriptor. */
    say("rename file=dir file2=place flags=0 result=%ld", WANT(CALL2(SYS_rename, full("dir"), full("place")), 0));
    say_open("n", "*", O_WRONLY | O_CREAT, 0600,
             WANT(CALL4(SYS_openat, fd_("d"), "late", O_WRONLY | O_CREAT, 0600), ANY_FD));
    do_write("n", 10, 0, 10);
    do_close("n");
    say_open("l", "*", O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, full("place/late"), O_RDONLY, 0), ANY_FD));
    do_read("l", 100, 0, 10);
    do_close("l");
    do_close("d");
    return 0;
}
