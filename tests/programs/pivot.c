/* SPDX-License-Identifier: MIT */
/* A job that makes itself a root of its own, as containers do: unshare, mount, pivot_root; and goes back with setns. The log
 * names files as its mount namespace sees them at that time. */
#include "expect.h"

#include <sched.h>
#include <sys/mount.h>

/* The new root has a directory of the same name as the outer one has, so that it belongs to the program as well. */
static void make_directories(const char *below, const char *path)
{
    char room[2 * PATH_MAX];
    snprintf(room, sizeof room, "%s%s", below, path);
    for (char *slash = room + strlen(below) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = 0;
        mkdir(room, 0755);
        *slash = '/';
    }
    if (mkdir(room, 0755) != 0)
        give_up("cannot make %s: %s", room, strerror(errno));
}

/* Into a mount namespace whose root is new/; the former one is below /put. */
static void pivot(void)
{
    WANT(CALL1(SYS_unshare, CLONE_NEWNS), 0);
    WANT(CALL5(SYS_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0), 0);
    WANT(CALL5(SYS_mount, full("new"), full("new"), 0, MS_BIND, 0), 0);
    WANT(CALL1(SYS_chdir, full("new")), 0);
    WANT(CALL2(SYS_pivot_root, ".", "put"), 0);
}

static void setup(void)
{
    if (geteuid() != 0)
        give_up("SKIPPED: not root");
    if (mkdir(full("new"), 0755) != 0 || mkdir(full("new/put"), 0755) != 0 || mkdir(full("real"), 0755) != 0)
        give_up("setup");
    make_file("real/data", 300);
    char root[PATH_MAX];
    strcpy(root, full("new"));
    make_directories(root, full("inner/dir"));
    char name[PATH_MAX + 64];
    snprintf(name, sizeof name, "new%s/inner/data", g_root);
    make_file(name, 100);
    snprintf(name, sizeof name, "new%s/inner/dir/data", g_root);
    make_file(name, 200);
    const int child = fork();
    if (child == 0) {
        pivot();
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        give_up("SKIPPED: no pivot_root here");
}

static void rel(const char *name, const char *given, const char *path, long want)
{
    say_open(name, path, O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, given, O_RDONLY, 0), want));
}
/* By a path relative to the root. */
static const char *from_root(const char *path) { return full(path) + 1; }

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    const int child = do_fork();
    if (child == 0) {
        const int outside = (int)WANT(CALL4(SYS_openat, AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC, 0), ANY_FD);
        do_open("before", "real/data", O_RDONLY, 0, ANY_FD);
        pivot();
        do_open("a", "inner/data", O_RDONLY, 0, ANY_FD);
        do_read("a", 1000, 0, 100);
        do_close("a");
        rel("b", from_root("inner/dir/data"), "inner/dir/data", ANY_FD); /* the directory is the new root now */
        do_read("b", 1000, 0, 200);
        do_close("b");
        WANT(CALL1(SYS_chdir, full("inner/dir")), 0);
        rel("c", "../data", "inner/data", ANY_FD);
        do_close("c");
        const int inside = do_fork(); /* inherits all of it */
        if (inside == 0) {
            rel("d", "data", "inner/dir/data", ANY_FD);
            do_close("d");
            WANT(CALL2(SYS_setns, outside, 0), 0);
            rel("e", from_root("real/data"), "real/data", ANY_FD);
            do_read("e", 1000, 0, 300);
            do_close("e");
            _exit(0);
        }
        do_wait(inside);
        do_read("before", 1000, 0, 300);
        WANT(CALL2(SYS_setns, outside, CLONE_NEWNS), 0);
        WANT(CALL1(SYS_chdir, full("real")), 0);
        rel("f", "data", "real/data", ANY_FD);
        do_close("f");
        do_close("before");
        _exit(0);
    }
    do_wait(child);
    do_stat("real/data", 0);
    return 0;
}
