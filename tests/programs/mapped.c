/* SPDX-License-Identifier: MIT */
/* Mapped files: touched pages, advice, flushes, protection, growth, and a child that inherits the mapping. */
#include "maps.h"

/* More than the kernel maps around a fault, so that each touch is a fault of its own; and mappings that are too small
 * for a huge page. */
enum { kApart = 128 << 10, kTouches = 4, kWhole = 1 << 20 };

static void setup(void)
{
    make_file("data", 2 * MIB);
    make_file("shared", 2 * MIB);
}

static void do_madvise(const char *map, char *at, long offset, long size, int advice, long want)
{
    const long got = WANT(CALL3(SYS_madvise, at + offset, size, advice), want);
    say("madvise map=%s offset=%ld size=%ld arg=%d result=%ld", map, offset, size, advice, got);
}
int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    char *const private = do_mmap("private", "a", 0, L(kWhole), PROT_READ, MAP_PRIVATE);
    do_close("a");
    do_madvise("private", private, 0, L(kWhole), MADV_RANDOM, 0);
    for (long i = 0; i < kTouches; i++)
        do_touch("private", private, i * kApart + 12345, 0);

    do_open("b", "shared", O_RDWR, 0, ANY_FD);
    char *const shared = do_mmap("shared", "b", 4096, kWhole, PROT_READ | PROT_WRITE, MAP_SHARED);
    do_touch("shared", shared, 0, 1);
    do_touch("shared", shared, kApart, 1);
    say("msync map=shared offset=0 size=%ld flags=%d result=%ld", 512 * KIB, MS_SYNC,
        WANT(CALL3(SYS_msync, shared, 512 * KIB, MS_SYNC), 0));
    say("mprotect map=shared offset=4096 size=8192 mode=%d result=%ld", PROT_READ,
        WANT(CALL3(SYS_mprotect, shared + 4096, 8192, PROT_READ), 0));

    const int child = do_fork();
    if (child == 0) {
        do_touch("private", private, 5 * kApart, 0);
        do_touch("shared", shared, 2 * kApart, 1);
        do_munmap("private", private, 0, L(kWhole));
        do_pread("b", 1, 4096, 1);
        _exit(0);
    }
    do_wait(child);
    do_touch("private", private, 6 * kApart, 0);
    do_munmap("shared", shared, 512 * KIB, 128 * KIB); /* a hole in the middle */
    do_touch("shared", shared, 3 * kApart, 0);
    do_munmap("shared", shared, 0, 512 * KIB);
    do_munmap("shared", shared, 640 * KIB, 384 * KIB);

    char *grown = do_mmap("grown", "b", 0, 256 * KIB, PROT_READ, MAP_SHARED);
    const long moved = CALL5(SYS_mremap, grown, 256 * KIB, 1 * MIB, MREMAP_MAYMOVE, 0);
    if (moved < 0 && moved > -4096)
        give_up("mremap gave %ld", moved);
    say("mremap map=grown offset=0 size=%ld flags=%d arg=%ld result=0", 1 * MIB, MREMAP_MAYMOVE, 256 * KIB);
    grown = (char *)moved;
    do_touch("grown", grown, 3 * kApart, 0);
    do_madvise("grown", grown, 1, 4095, MADV_WILLNEED, -EINVAL);
    do_madvise("grown", grown, 0, 256 * KIB, MADV_WILLNEED, 0);
    do_munmap("grown", grown, 0, 1 * MIB);
    do_munmap("private", private, 0, L(kWhole));
    /* No DAX: programs ask, and do without. */
    say("mmap %s offset=0 size=4096 flags=%d mode=%d map=- result=%ld", on("b"), 0x80003, PROT_READ | PROT_WRITE,
        WANT(CALL6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, 0x80003 /* SHARED_VALIDATE, SYNC */, fd_("b"), 0),
             -EOPNOTSUPP));
    do_ftruncate("b", 9 * MIB, 0);
    do_close("b");
    return 0;
}
