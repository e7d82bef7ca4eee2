/* SPDX-License-Identifier: MIT */
/* chmod and time stamps, by path and by descriptor. */
#include "expect.h"

#include <sys/time.h>
#include <utime.h>

static void setup(void)
{
    make_file("data", 100);
    if (mkdir(full("dir"), 0755) != 0)
        give_up("setup");
    make_file("dir/inside", 100);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDWR, 0, ANY_FD);
    do_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    say("chmod handle=- fd=-1 file=data mode=%d result=%ld", 0600, WANT(CALL2(SYS_chmod, full("data"), 0600), 0));
    say("chmod handle=- fd=-1 file=missing mode=%d result=%ld", 0600,
        WANT(CALL2(SYS_chmod, full("missing"), 0600), -ENOENT));
    say("chmod %s file=- mode=%d result=%ld", on("a"), 0640, WANT(CALL2(SYS_fchmod, fd_("a"), 0640), 0));
    say("chmod handle=- fd=-1 file=dir/inside mode=%d result=%ld", 0400,
        WANT(CALL3(SYS_fchmodat, fd_("d"), "inside", 0400), 0));
    struct timespec times[2] = {{1000, 1}, {2000, 2}};
    struct timeval both[2] = {{1000, 1}, {2000, 2}};
    struct utimbuf old = {1000, 2000};
    say("utimens handle=- fd=-1 file=data flags=0 result=%ld",
        WANT(CALL4(SYS_utimensat, AT_FDCWD, full("data"), times, 0), 0));
    say("utimens %s file=- flags=0 result=%ld", on("a"), WANT(CALL4(SYS_utimensat, fd_("a"), 0, times, 0), 0));
    say("utimens handle=- fd=-1 file=data flags=0 result=%ld", WANT(CALL2(SYS_utimes, full("data"), both), 0));
    say("utimens handle=- fd=-1 file=data flags=0 result=%ld", WANT(CALL2(SYS_utime, full("data"), &old), 0));
    say("utimens handle=- fd=-1 file=missing flags=0 result=%ld",
        WANT(CALL4(SYS_utimensat, AT_FDCWD, full("missing"), times, 0), -ENOENT));
    say("chown handle=- fd=-1 file=data flags=0 result=%ld", WANT(CALL3(SYS_chown, full("data"), -1, -1), 0));
    say("chown handle=- fd=-1 file=data flags=%d result=%ld", AT_SYMLINK_NOFOLLOW,
        WANT(CALL3(SYS_lchown, full("data"), -1, getgid()), 0));
    say("chown %s file=- flags=0 result=%ld", on("a"), WANT(CALL3(SYS_fchown, fd_("a"), getuid(), -1), 0));
    say("chown handle=- fd=-1 file=dir/inside flags=0 result=%ld",
        WANT(CALL5(SYS_fchownat, fd_("d"), "inside", -1, -1, 0), 0));
    say("chown handle=- fd=-1 file=missing flags=0 result=%ld",
        WANT(CALL3(SYS_chown, full("missing"), -1, -1), -ENOENT));
    do_close("d");
    do_close("a");
    return 0;
}
