/* SPDX-License-Identifier: MIT */
/* Relative paths: after chdir, fchdir, in children, with dots and links. */
#include "expect.h"

static void setup(void)
{
    if (mkdir(full("one"), 0755) != 0 || mkdir(full("one/two"), 0755) != 0)
        give_up("setup");
    make_file("data", 100);
    make_file("one/data", 200);
    make_file("one/two/data", 300);
    if (mkdir(full("one/goal"), 0755) != 0 || symlink("one/goal", full("there")) != 0)
        give_up("setup");
}

/* `given` is what the call names, `path` what it means. */
static void rel(const char *name, const char *given, const char *path, long want)
{
    say_open(name, path, O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, given, O_RDONLY, 0), want));
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    WANT(CALL1(SYS_chdir, full("")), 0);
    rel("a", "data", "data", ANY_FD);
    do_close("a");
    rel("b", "one/two/data", "one/two/data", ANY_FD);
    do_close("b");
    WANT(CALL1(SYS_chdir, "one"), 0);
    rel("c", "data", "one/data", ANY_FD);
    do_read("c", 1000, 0, 200);
    do_close("c");
    rel("d", "../data", "data", ANY_FD);
    do_close("d");
    rel("e", "./two/../two//data", "one/two/data", ANY_FD);
    do_close("e");
    rel("x", "missing", "one/missing", -ENOENT);
    WANT(CALL1(SYS_chdir, "missing"), -ENOENT);
    do_open("dir", "one/two", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    const int child = do_fork();
    if (child == 0) {
        WANT(CALL1(SYS_fchdir, fd_("dir")), 0);
        rel("f", "data", "one/two/data", ANY_FD);
        do_read("f", 1000, 0, 300);
        do_close("f");
        struct stat st;
        say("stat file=one/data flags=0 result=%ld", WANT(CALL2(SYS_stat, "../data", &st), 0));
        say("mkdir file=one/two/made mode=%d result=%ld", 0700, WANT(CALL2(SYS_mkdir, "made", 0700), 0));
        say("rename file=one/two/made file2=one/moved flags=0 result=%ld",
            WANT(CALL2(SYS_rename, "made", "../moved"), 0));
        _exit(0);
    }
    do_wait(child);
    rel("g", "data", "one/data", ANY_FD); /* the parent's directory is its own */
    do_close("g");
    say_open("h", "one/two/data", O_RDONLY, 0, WANT(CALL4(SYS_openat, fd_("dir"), "data", O_RDONLY, 0), ANY_FD));
    do_close("h");
    /* Back to a directory that has another name by now, and above what a link leads to. */
    do_rename("one/two", "one/away", 0);
    WANT(CALL1(SYS_fchdir, fd_("dir")), 0);
    rel("i", "data", "one/away/data", ANY_FD);
    do_close("i");
    rel("j", "../data", "one/data", ANY_FD);
    do_close("j");
    WANT(CALL1(SYS_chdir, full("")), 0);
    rel("k", "there/../data", "one/data", ANY_FD);
    do_close("k");
    WANT(CALL1(SYS_chdir, "there"), 0);
    rel("l", "../data", "one/data", ANY_FD);
    do_close("l");
    do_close("dir");
    return 0;
}
