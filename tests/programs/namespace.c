/* SPDX-License-Identifier: MIT */
/* A mount namespace of its own, with a directory bound to another name: files are those of the directory that is bound. */
#include "expect.h"

#include <sched.h>
#include <sys/mount.h>

static void setup(void)
{
    if (mkdir(full("real"), 0755) != 0 || mkdir(full("seen"), 0755) != 0)
        give_up("setup");
    make_file("real/data", 100);
    if (unshare(CLONE_NEWNS) != 0)
        give_up("SKIPPED: no mount namespaces: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    const int child = do_fork();
    if (child == 0) {
        WANT(CALL1(SYS_unshare, CLONE_NEWNS), 0);
        WANT(CALL5(SYS_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0), 0);
        WANT(CALL5(SYS_mount, full("real"), full("seen"), 0, MS_BIND, 0), 0);
        say_open("a", "real/data", O_RDONLY, 0,
                 WANT(CALL4(SYS_openat, AT_FDCWD, full("seen/data"), O_RDONLY, 0), ANY_FD));
        do_read("a", 1000, 0, 100);
        do_close("a");
        say_open("b", "real/new", O_CREAT | O_EXCL | O_WRONLY, 0644,
                 WANT(CALL4(SYS_openat, AT_FDCWD, full("seen/new"), O_CREAT | O_EXCL | O_WRONLY, 0644), ANY_FD));
        do_write("b", 10, 0, 10);
        do_close("b");
        _exit(0);
    }
    do_wait(child);
    do_stat("real/data", 0);
    return 0;
}
