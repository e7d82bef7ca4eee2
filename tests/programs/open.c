/* SPDX-License-Identifier: MIT */
/* open, openat, openat2, creat: what is made, found, refused. */
#include "expect.h"

#include <linux/openat2.h>

static void setup(void)
{
    make_file("data", 10000);
    make_file("other", 100);
    if (mkdir(full("dir"), 0755) != 0 || symlink("data", full("link")) != 0)
        give_up("setup");
    make_file("dir/inside", 5000);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    say_open("a", "data", O_RDONLY, 0, WANT(CALL3(SYS_open, full("data"), O_RDONLY, 0), ANY_FD));
    do_close("a");
    do_open("b", "data", O_RDWR | O_CLOEXEC, 0, ANY_FD);
    do_close("b");
    do_open("new", "new", O_CREAT | O_EXCL | O_WRONLY, 0640, ANY_FD);
    do_open("new2", "new", O_CREAT | O_EXCL | O_WRONLY, 0640, -EEXIST);
    do_open("new3", "new", O_CREAT | O_WRONLY, 0600, ANY_FD);
    do_close("new3");
    do_close("new");
    do_open("cut", "other", O_WRONLY | O_TRUNC, 0, ANY_FD);
    do_close("cut");
    say_open("c", "created", O_CREAT | O_WRONLY | O_TRUNC, 0600, WANT(CALL2(SYS_creat, full("created"), 0600), ANY_FD));
    do_close("c");

    do_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    say_open("e", "dir/inside", O_RDONLY, 0, WANT(CALL4(SYS_openat, fd_("d"), "inside", O_RDONLY, 0), ANY_FD));
    do_fstat("e");
    do_close("e");
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    say_open("f", "dir/inside", O_RDONLY | O_CLOEXEC, 0,
             WANT(CALL4(SYS_openat2, fd_("d"), "inside", &how, sizeof how), ANY_FD));
    do_close("f");
    how = (struct open_how){.flags = O_WRONLY | O_CREAT, .mode = 0604};
    say_open("g", "dir/second", O_WRONLY | O_CREAT, 0604,
             WANT(CALL4(SYS_openat2, fd_("d"), "second", &how, sizeof how), ANY_FD));
    do_close("g");
    do_close("d");
    do_open("p", "dir/inside", O_PATH, 0, ANY_FD);
    do_fstat("p");
    do_close("p");

    do_open("x", "missing", O_RDONLY, 0, -ENOENT);
    do_open("x", "dir/missing", O_RDONLY, 0, -ENOENT);
    do_open("x", "data/below", O_RDONLY, 0, -ENOTDIR);
    do_open("x", "data", O_RDONLY | O_DIRECTORY, 0, -ENOTDIR);
    do_open("x", "dir", O_WRONLY, 0, -EISDIR);
    do_open("x", "link", O_RDONLY | O_NOFOLLOW, 0, -ELOOP);
    return 0;
}
