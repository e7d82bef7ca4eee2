/* SPDX-License-Identifier: MIT */
/* chroot: absolute paths of the job are below its new root. The log names files as the world outside does. */
#include "expect.h"

static void setup(void)
{
    if (geteuid() != 0)
        give_up("SKIPPED: not root");
    if (mkdir(full("jail"), 0755) != 0 || mkdir(full("jail/dir"), 0755) != 0)
        give_up("setup");
    make_file("jail/data", 100);
    make_file("jail/dir/data", 200);
}

static void rel(const char *name, const char *given, const char *path, long want)
{
    say_open(name, path, O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, given, O_RDONLY, 0), want));
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("before", "jail/data", O_RDONLY, 0, ANY_FD);
    const int child = do_fork();
    if (child == 0) {
        WANT(CALL1(SYS_chroot, full("jail")), 0);
        WANT(CALL1(SYS_chdir, "/"), 0);
        rel("a", "/data", "jail/data", ANY_FD);
        do_read("a", 1000, 0, 100);
        do_close("a");
        rel("b", "dir/data", "jail/dir/data", ANY_FD);
        do_read("b", 1000, 0, 200);
        do_close("b");
        rel("x", "/jail/data", "jail/jail/data", -ENOENT);
        /* What an absolute link holds leads from the new root. */
        say("symlink file=jail/soft text=\"%s\" result=%ld", full("jail/data"), WANT(CALL2(SYS_symlink, "/data", "/soft"), 0));
        rel("s", "/soft", "jail/data", ANY_FD);
        do_read("s", 1000, 0, 100);
        do_close("s");
        do_read("before", 1000, 0, 100);
        _exit(0);
    }
    do_wait(child);
    do_open("c", "jail/dir/data", O_RDONLY, 0, ANY_FD);
    do_close("c");
    do_close("before");
    return 0;
}
