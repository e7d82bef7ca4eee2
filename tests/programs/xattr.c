/* SPDX-License-Identifier: MIT */
/* Extended attributes: by path, not following links, by descriptor. */
#include "expect.h"

#include <sys/xattr.h>

static void setup(void)
{
    make_file("data", 100);
    if (setxattr(full("data"), "user.there", "value", 5, 0) != 0 || removexattr(full("data"), "user.there") != 0)
        give_up("SKIPPED: no user attributes on this file system");
    if (symlink("data", full("link")) != 0)
        give_up("setup");
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    const char *const data = full("data");
    do_open("a", "data", O_RDWR, 0, ANY_FD);
    say("setxattr handle=- fd=-1 file=data text=\"user.there\" size=5 flags=0 result=%ld",
        WANT(CALL5(SYS_setxattr, data, "user.there", g_buffer, 5, 0), 0));
    say("getxattr handle=- fd=-1 file=data text=\"user.there\" size=100 flags=0 result=%ld",
        WANT(CALL4(SYS_getxattr, data, "user.there", g_buffer, 100), 5));
    say("getxattr handle=- fd=-1 file=data text=\"user.none\" size=100 flags=0 result=%ld",
        WANT(CALL4(SYS_getxattr, data, "user.none", g_buffer, 100), -ENODATA));
    say("setxattr handle=- fd=-1 file=data text=\"user.new\" size=20 flags=0 result=%ld",
        WANT(CALL5(SYS_setxattr, data, "user.new", g_buffer, 20, 0), 0));
    say("setxattr %s file=- text=\"user.fd\" size=30 flags=0 result=%ld", on("a"),
        WANT(CALL5(SYS_fsetxattr, fd_("a"), "user.fd", g_buffer, 30, 0), 0));
    say("getxattr %s file=- text=\"user.fd\" size=0 flags=0 result=%ld", on("a"),
        WANT(CALL4(SYS_fgetxattr, fd_("a"), "user.fd", g_buffer, 0), 30));
    say("getxattr handle=- fd=-1 file=data text=\"user.new\" size=3 flags=1 result=%ld",
        WANT(CALL4(SYS_lgetxattr, data, "user.new", g_buffer, 3), -ERANGE));
    struct stat st;
    say("stat file=link flags=%d result=%ld", AT_SYMLINK_NOFOLLOW, WANT(CALL2(SYS_lstat, full("link"), &st), 0));
    say("setxattr handle=- fd=-1 file=link text=\"user.x\" size=3 flags=1 result=%ld",
        WANT(CALL5(SYS_lsetxattr, full("link"), "user.x", g_buffer, 3, 0), -EPERM));
    say("listxattr handle=- fd=-1 file=data size=1000 flags=0 result=%ld",
        WANT(CALL3(SYS_listxattr, data, g_buffer, 1000), 28));
    say("listxattr handle=- fd=-1 file=data size=1000 flags=1 result=%ld",
        WANT(CALL3(SYS_llistxattr, data, g_buffer, 1000), 28));
    say("listxattr %s file=- size=2 flags=0 result=%ld", on("a"),
        WANT(CALL3(SYS_flistxattr, fd_("a"), g_buffer, 2), -ERANGE));
    say("removexattr handle=- fd=-1 file=data text=\"user.new\" flags=0 result=%ld",
        WANT(CALL2(SYS_removexattr, data, "user.new"), 0));
    say("removexattr handle=- fd=-1 file=data text=\"user.new\" flags=1 result=%ld",
        WANT(CALL2(SYS_lremovexattr, data, "user.new"), -ENODATA));
    say("removexattr %s file=- text=\"user.fd\" flags=0 result=%ld", on("a"),
        WANT(CALL2(SYS_fremovexattr, fd_("a"), "user.fd"), 0));
    do_close("a");
    return 0;
}
