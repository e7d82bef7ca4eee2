/* SPDX-License-Identifier: MIT */
/* Pages of a shared mapping that are read first and written later, again after they reached the storage, and by a child.
 * Its own memory, which a fork makes fault in the same way, is nobody's concern. */
#include "maps.h"

#include <sys/vfs.h>

enum { kApart = 128 << 10, kTouches = 4, kWhole = 1 << 20 };

static void setup(void)
{
    struct statfs storage;
    make_file("data", 2 * MIB);
    make_file("other", 2 * MIB);
    if (statfs(full("data"), &storage) != 0 || storage.f_type == 0x01021994)
        give_up("SKIPPED: tmpfs maps pages writable at once");
}

static void do_msync(const char *map, char *at)
{
    say("msync map=%s offset=0 size=%d flags=%d result=%ld", map, kWhole, MS_SYNC,
        WANT(CALL3(SYS_msync, at, kWhole, MS_SYNC), 0));
}

static void touch_all(const char *map, char *at, int writes)
{
    for (long i = 0; i < kTouches; i++)
        do_touch(map, at, i * kApart + 1234, writes);
}

int main(int argc, char **argv)
{
    static char own[64 * 4096];
    begin(argc, argv, NULL);
    memset(own, 1, sizeof own);
    do_open("a", "data", O_RDWR, 0, ANY_FD);
    char *const at = do_mmap("data", "a", 0, kWhole, PROT_READ | PROT_WRITE, MAP_SHARED);
    touch_all("data", at, 0);
    do_msync("data", at);
    touch_all("data", at, 1);
    for (long i = 0; i < kTouches; i++)
        *(volatile char *)(at + i * kApart) = 2; /* written already: no fault */
    do_msync("data", at);
    touch_all("data", at, 1);
    const int child = do_fork();
    if (child == 0) {
        memset(own, 2, sizeof own);
        do_touch("data", at, 0, 0);
        do_pread("a", 1, 4096, 1);
        do_touch("data", at, 0, 1);
        do_munmap("data", at, 0, kWhole);
        _exit(0);
    }
    do_wait(child);
    memset(own, 3, sizeof own);
    /* Made writable later, and moved. */
    do_open("b", "other", O_RDWR, 0, ANY_FD);
    char *const other = do_mmap("other", "b", 4096, kWhole, PROT_READ, MAP_SHARED);
    do_touch("other", other, kApart, 0);
    say("mprotect map=other offset=0 size=%d mode=%d result=%ld", kWhole, PROT_READ | PROT_WRITE,
        WANT(CALL3(SYS_mprotect, other, kWhole, PROT_READ | PROT_WRITE), 0));
    do_touch("other", other, kApart, 1);
    do_munmap("other", other, 0, kWhole);
    do_munmap("data", at, 0, kWhole);
    do_close("b");
    do_close("a");
    return 0;
}
