/* SPDX-License-Identifier: MIT */
/* The stat family, statx, access, statfs. */
#include "expect.h"

#include <linux/stat.h>
#include <sys/statfs.h>

static void setup(void)
{
    make_file("data", 12345);
    if (mkdir(full("dir"), 0755) != 0 || symlink("data", full("link")) != 0 || symlink("nowhere", full("lost")) != 0)
        give_up("setup");
    make_file("dir/inside", 10);
}

static void do_lstat(const char *path, long want)
{
    struct stat st;
    say("stat file=%s flags=%d result=%ld", path, AT_SYMLINK_NOFOLLOW, WANT(CALL2(SYS_lstat, full(path), &st), want));
}
static void do_statx(const char *path, int flags, unsigned mask, long want)
{
    static char room[256];
    const long got = WANT(CALL5(SYS_statx, AT_FDCWD, full(path), flags, mask, room), want);
    say("statx handle=- fd=-1 file=%s flags=%d arg=%u result=%ld", path, flags, mask, got);
}
static void do_access(const char *path, int mode, long want)
{
    say("access file=%s flags=0 mode=%d result=%ld", path, mode, WANT(CALL2(SYS_access, full(path), mode), want));
}

int main(int argc, char **argv)
{
    struct stat st;
    static char room[256];
    struct statfs fs;
    begin(argc, argv, NULL);
    do_stat("data", 0);
    do_stat("dir", 0);
    do_stat("link", 0);
    do_stat("lost", -ENOENT);
    do_stat("missing", -ENOENT);
    do_stat("data/below", -ENOTDIR);
    do_lstat("link", 0);
    do_lstat("missing", -ENOENT);
    do_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    say("stat file=dir/inside flags=0 result=%ld", WANT(CALL4(SYS_newfstatat, fd_("d"), "inside", &st, 0), 0));
    say("stat file=link flags=%d result=%ld", AT_SYMLINK_NOFOLLOW,
        WANT(CALL4(SYS_newfstatat, AT_FDCWD, full("link"), &st, AT_SYMLINK_NOFOLLOW), 0));
    do_fstat("a");
    do_fstat("d");
    say("fstat %s result=%ld", on("a"), WANT(CALL4(SYS_newfstatat, fd_("a"), "", &st, AT_EMPTY_PATH), 0));

    do_statx("data", 0, STATX_BASIC_STATS, 0);
    do_statx("link", AT_SYMLINK_NOFOLLOW, STATX_SIZE, 0);
    do_statx("link", 0, STATX_ALL, 0);
    do_statx("missing", 0, STATX_BASIC_STATS, -ENOENT);
    say("statx handle=- fd=-1 file=dir/inside flags=0 arg=%u result=%ld", STATX_MTIME,
        WANT(CALL5(SYS_statx, fd_("d"), "inside", 0, STATX_MTIME, room), 0));
    say("statx %s file=- flags=%d arg=%u result=%ld", on("a"), AT_EMPTY_PATH, STATX_BASIC_STATS,
        WANT(CALL5(SYS_statx, fd_("a"), "", AT_EMPTY_PATH, STATX_BASIC_STATS, room), 0));

    do_access("data", F_OK, 0);
    do_access("data", R_OK | W_OK, 0);
    do_access("data", X_OK, -EACCES);
    do_access("missing", R_OK, -ENOENT);
    do_access("lost", R_OK, -ENOENT);
    say("access file=dir/inside flags=0 mode=%d result=%ld", R_OK,
        WANT(CALL3(SYS_faccessat, fd_("d"), "inside", R_OK), 0));
    say("access file=data flags=%d mode=%d result=%ld", AT_EACCESS, R_OK,
        WANT(CALL4(SYS_faccessat2, AT_FDCWD, full("data"), R_OK, AT_EACCESS), 0));

    say("statfs handle=- fd=-1 file=data result=%ld", WANT(CALL2(SYS_statfs, full("data"), &fs), 0));
    say("statfs handle=- fd=-1 file=missing result=%ld", WANT(CALL2(SYS_statfs, full("missing"), &fs), -ENOENT));
    say("statfs %s file=- result=%ld", on("a"), WANT(CALL2(SYS_fstatfs, fd_("a"), &fs), 0));
    do_close("a");
    do_close("d");
    return 0;
}
