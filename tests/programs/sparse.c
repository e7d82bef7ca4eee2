/* SPDX-License-Identifier: MIT */
/* Files with holes: truncated up, written far out, holes looked for, made and asked about. */
#include "expect.h"

#include <linux/falloc.h>

static void setup(void) {}

static void do_fallocate(const char *name, int mode, long offset, long size, long want)
{
    const long got = WANT(CALL4(SYS_fallocate, fd_(name), mode, offset, size), want);
    say("fallocate %s offset=%ld size=%ld flags=%d result=%ld", on(name), offset, size, mode, got);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "holes", O_CREAT | O_EXCL | O_RDWR, 0644, ANY_FD);
    do_ftruncate("a", 1024 * MIB, 0);
    do_pwrite("a", 4096, 512 * MIB, 4096);
    do_pread("a", 4096, 100 * MIB, 4096);
    do_lseek("a", 0, SEEK_DATA, 512 * MIB);
    do_lseek("a", 512 * MIB, SEEK_HOLE, 512 * MIB + 4096);
    do_lseek("a", 600 * MIB, SEEK_DATA, -ENXIO);
    do_lseek("a", 2048 * MIB, SEEK_SET, 2048 * MIB);
    do_write("a", 10, 2048 * MIB, 10);
    do_fstat("a");
    do_fallocate("a", 0, 0, 64 * KIB, 0);
    do_fallocate("a", FALLOC_FL_KEEP_SIZE, 3072 * MIB, 64 * KIB, 0);
    do_fallocate("a", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 512 * MIB, 4096, 0);
    do_fallocate("a", FALLOC_FL_PUNCH_HOLE, 0, 4096, -EOPNOTSUPP);
    do_fallocate("a", 0, -1, 4096, -EINVAL);
    do_ftruncate("a", 100, 0);
    do_close("a");
    say("truncate file=holes size=5000 result=%ld", WANT(CALL2(SYS_truncate, full("holes"), 5000), 0));
    say("truncate file=missing size=5000 result=%ld", WANT(CALL2(SYS_truncate, full("missing"), 5000), -ENOENT));
    do_open("r", "holes", O_RDONLY, 0, ANY_FD);
    do_read("r", 10000, 0, 5000);
    do_ftruncate("r", 1, -EINVAL);
    do_close("r");
    return 0;
}
