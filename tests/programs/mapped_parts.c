/* SPDX-License-Identifier: MIT */
/* Parts of a mapping are unmapped, moved, resized: what is left is still the mapping, and its touches are found. */
#include "maps.h"

/* Touches are further apart than what the kernel maps around a fault, so that each is a fault of its own. */
static void setup(void) { make_file("data", 2 * MIB); }

/* A part of the mapping, at `at`; `flags` as of mremap. Returns where it is then. */
static char *do_mremap(const char *map, char *at, long offset, long size, long new_size, int flags, char *to)
{
    const long got = CALL5(SYS_mremap, at, size, new_size, flags, to);
    if (got < 0 && got > -4096)
        give_up("mremap gave %ld", got);
    say("mremap map=%s offset=%ld size=%ld flags=%d arg=%ld result=0", map, offset, new_size, flags, size);
    return (char *)got;
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    /* Room of another kind, so that nothing can grow where it is. */
    char *const room = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    do_open("a", "data", O_RDWR, 0, ANY_FD);
    char *const m = do_mmap("m", "a", 0, 1 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED);
    do_touch("m", m, 0, 0);
    do_touch("m", m, 384 * KIB, 1);
    do_munmap("m", m, 256 * KIB, 256 * KIB); /* from the middle */
    do_touch("m", m, 512 * KIB, 0);
    do_touch("m", m, 128 * KIB, 1);

    char *part = do_mremap("m", m + 512 * KIB, 512 * KIB, 128 * KIB, 128 * KIB, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    do_touch("m", part - 512 * KIB, 608 * KIB, 0);
    do_touch("m", m, 896 * KIB, 0);
    say("msync map=m offset=%ld size=4096 flags=%d result=%ld", 512 * KIB, MS_SYNC,
        WANT(CALL3(SYS_msync, part, 4096, MS_SYNC), 0));
    do_munmap("m", m, 640 * KIB, 384 * KIB); /* at the end */
    part = do_mremap("m", part, 512 * KIB, 128 * KIB, 512 * KIB, MREMAP_MAYMOVE, NULL);
    do_touch("m", part - 512 * KIB, 832 * KIB, 1);
    do_touch("m", part - 512 * KIB, 960 * KIB, 0);
    part = do_mremap("m", part, 512 * KIB, 512 * KIB, 256 * KIB, 0, NULL);
    do_touch("m", part - 512 * KIB, 704 * KIB, 0);

    const int child = do_fork();
    if (child == 0) {
        do_munmap("m", m, 0, 128 * KIB); /* at the start */
        do_touch("m", m, 192 * KIB, 0);
        do_touch("m", part - 512 * KIB, 704 * KIB, 0);
        _exit(0);
    }
    do_wait(child);
    do_touch("m", m, 64 * KIB, 0);
    /* Over all of it; only the first quarter is still there. */
    WANT(CALL2(SYS_munmap, m, 1 * MIB), 0);
    say("munmap map=m offset=0 size=%ld result=0", 256 * KIB);
    do_munmap("m", part - 512 * KIB, 512 * KIB, 256 * KIB);
    do_close("a");
    return 0;
}
