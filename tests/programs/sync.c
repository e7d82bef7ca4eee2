/* SPDX-License-Identifier: MIT */
/* fsync, fdatasync, sync_file_range, syncfs, sync; posix_fadvise, readahead. */
#include "expect.h"

static void setup(void) { make_file("data", 1 * MIB); }

static void do_fadvise(const char *name, long offset, long size, int advice, long want)
{
    const long got = WANT(CALL4(SYS_fadvise64, fd_(name), offset, size, advice), want);
    say("fadvise %s offset=%ld size=%ld arg=%d result=%ld", on(name), offset, size, advice, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "out", O_CREAT | O_RDWR, 0644, ANY_FD);
    do_write("a", 256 * KIB, 0, 256 * KIB);
    do_fsync("a");
    do_write("a", 10, 256 * KIB, 10);
    say("fdatasync %s result=%ld", on("a"), WANT(CALL1(SYS_fdatasync, fd_("a")), 0));
    say("sync_file_range %s offset=4096 size=8192 flags=%d result=%ld", on("a"), SYNC_FILE_RANGE_WRITE,
        WANT(CALL4(SYS_sync_file_range, fd_("a"), 4096, 8192, SYNC_FILE_RANGE_WRITE), 0));
    say("sync_file_range %s offset=-1 size=8192 flags=%d result=%ld", on("a"), SYNC_FILE_RANGE_WRITE,
        WANT(CALL4(SYS_sync_file_range, fd_("a"), -1, 8192, SYNC_FILE_RANGE_WRITE), -EINVAL));
    say("syncfs %s result=%ld", on("a"), WANT(CALL1(SYS_syncfs, fd_("a")), 0));
    do_close("a");
    do_open("r", "data", O_RDONLY, 0, ANY_FD);
    do_fadvise("r", 0, 0, POSIX_FADV_SEQUENTIAL, 0);
    do_fadvise("r", 4096, 65536, POSIX_FADV_WILLNEED, 0);
    do_fadvise("r", 0, 0, POSIX_FADV_DONTNEED, 0);
    do_fadvise("r", 0, 0, 99, -EINVAL);
    say("readahead %s offset=131072 size=65536 result=%ld", on("r"),
        WANT(CALL3(SYS_readahead, fd_("r"), 131072, 65536), 0));
    do_close("r");
    do_open("w", "data", O_WRONLY, 0, ANY_FD);
    say("readahead %s offset=0 size=65536 result=%ld", on("w"), WANT(CALL3(SYS_readahead, fd_("w"), 0, 65536), -EBADF));
    do_close("w");
    say("syncfs handle=- fd=-1 result=%ld", WANT(CALL0(SYS_sync), 0));
    return 0;
}
