/* SPDX-License-Identifier: MIT */
/* Pages of mapped files that come without a fault: locked ones, and those asked for. What brings pages in is an madvise
 * of the op log; what locks later faults, or unlocks, is nothing. */
#include "maps.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define MLOCK_ONFAULT_ 1
#define MCL_CURRENT_ 1
#define MCL_FUTURE_ 2

enum { kWhole = 1 << 20 };

static void setup(void)
{
    make_file("data", kWhole);
    if (mlock(g_buffer, 2 * kWhole) != 0)
        give_up("SKIPPED: too little memory may be locked");
}

static void say_populated(const char *map, long offset, long size, int advice)
{
    say("madvise map=%s offset=%ld size=%ld arg=%d result=0", map, offset, size, advice);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDWR, 0, ANY_FD);
    char *const at = do_mmap("data", "a", 0, kWhole, PROT_READ | PROT_WRITE, MAP_SHARED);
    WANT(CALL3(SYS_madvise, at, 256 * KIB, MADV_POPULATE_READ), 0);
    say_populated("data", 0, 256 * KIB, MADV_POPULATE_READ);
    WANT(CALL3(SYS_madvise, at + 256 * KIB, 256 * KIB, MADV_POPULATE_WRITE), 0);
    say_populated("data", 256 * KIB, 256 * KIB, MADV_POPULATE_WRITE);
    WANT(CALL2(SYS_mlock, at + 512 * KIB + 100, 8192), 0);
    say_populated("data", 512 * KIB, 3 * 4096, MADV_POPULATE_READ);
    WANT(CALL3(SYS_mlock2, at + 600 * KIB, 8192, 0), 0);
    say_populated("data", 600 * KIB, 8192, MADV_POPULATE_READ);
    WANT(CALL3(SYS_mlock2, at + 640 * KIB, 8192, MLOCK_ONFAULT_), 0);
    WANT(CALL2(SYS_mlock, g_buffer, 8192), 0); /* memory of its own */
    WANT(CALL2(SYS_munlock, at, kWhole), 0);
    WANT(CALL1(SYS_mlockall, MCL_FUTURE_), 0);
    char *const later = (char *)CALL6(SYS_mmap, 0, 64 * KIB, PROT_READ, MAP_SHARED, fd_("a"), 0);
    if (later == MAP_FAILED)
        give_up("cannot map");
    say("mmap %s offset=0 size=%ld flags=%d mode=%d map=later result=0", on("a"), 64 * KIB, MAP_SHARED | MAP_POPULATE,
        PROT_READ);
    WANT(CALL0(SYS_munlockall), 0);
    do_munmap("later", later, 0, 64 * KIB);
    char *const last = do_mmap("last", "a", 0, 64 * KIB, PROT_READ, MAP_SHARED);
    do_munmap("last", last, 0, 64 * KIB);
    do_munmap("data", at, 0, kWhole);
    do_close("a");
    return 0;
}
