/* SPDX-License-Identifier: MIT */
/* Files that are written by memory. The page cache may hold them in folios of many pages: of those the first write maps
 * all, and the others fault no more. */
#include "maps.h"

enum { kSize = 8 << 20, kPage = 4096, kFew = 64 << 10, kHuge = 2 << 20, kOdd = kSize - 3 * kPage - 100 };

static void setup(void)
{
    make_file("there", kSize);
    make_file("holes", 4096);
    if (truncate(full("holes"), kSize) != 0)
        give_up("no holes");
}

static char *do_begin(const char *name, int flags, int fresh)
{
    do_open(name, name, flags, fresh ? 0644 : 0, ANY_FD);
    if (fresh)
        do_ftruncate(name, kSize, 0);
    return do_mmap(name, name, 0, L(kSize), PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void do_end(const char *name, char *at)
{
    say("msync map=%s offset=0 size=%d flags=%d result=%ld", name, kSize, MS_SYNC,
        WANT(CALL3(SYS_msync, at, kSize, MS_SYNC), 0));
    do_munmap(name, at, 0, L(kSize));
    do_close(name);
}

/* Every page was written to, whatever faulted. */
static void wrote_all(const char *name, long size)
{
    for (long at = 0; at < size; at += kPage)
        say("touch map=%s offset=%ld size=4096 flags=1 list= result=0", name, at);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    char *at = do_begin("whole", O_RDWR | O_CREAT | O_TRUNC, 1);
    memset(at, 3, kSize);
    wrote_all("whole", kSize);
    do_end("whole", at);

    at = do_begin("pages", O_RDWR | O_CREAT | O_TRUNC, 1);
    for (long i = 0; i < kSize; i += kPage)
        at[i + 17] = 3;
    wrote_all("pages", kSize);
    do_end("pages", at);

    at = do_begin("there", O_RDWR, 0);
    for (long i = kSize - kPage; i >= 0; i -= kPage) /* backwards */
        at[i] = 3;
    wrote_all("there", kSize);
    do_end("there", at);

    at = do_begin("holes", O_RDWR, 0);
    for (long i = 0; i < kSize; i += kFew)
        do_touch("holes", at, i + 5, 1);
    do_end("holes", at);

    /* Folios that reach beyond the mapping, on either side. */
    do_open("part", "part", O_RDWR | O_CREAT | O_TRUNC, 0644, ANY_FD);
    do_ftruncate("part", kSize, 0);
    at = do_mmap("part", "part", 5 * kPage, 999 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED);
    memset(at, 3, 999 * kPage);
    wrote_all("part", 999 * kPage);
    do_munmap("part", at, 0, 999 * kPage);
    do_close("part");

    /* An end within a folio. */
    do_open("odd", "odd", O_RDWR | O_CREAT | O_TRUNC, 0644, ANY_FD);
    do_ftruncate("odd", kOdd, 0);
    at = do_mmap("odd", "odd", 0, kOdd, PROT_READ | PROT_WRITE, MAP_SHARED);
    memset(at, 3, kOdd);
    wrote_all("odd", kOdd);
    do_munmap("odd", at, 0, (L(kOdd) + kPage - 1) & -kPage);
    do_close("odd");

    /* Huge pages, where the file system has them. */
    char *const room = mmap(NULL, kSize + kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at = (char *)(((uintptr_t)room + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
    do_open("huge", "huge", O_RDWR | O_CREAT | O_TRUNC, 0644, ANY_FD);
    do_ftruncate("huge", kSize, 0);
    if (munmap(room, kSize + kHuge) != 0 ||
        CALL6(SYS_mmap, at, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_("huge"), 0) != L(at))
        give_up("no room");
    say("mmap %s offset=0 size=%d flags=%d mode=%d map=huge result=0", on("huge"), kSize, MAP_SHARED,
        PROT_READ | PROT_WRITE);
    const long advised = CALL3(SYS_madvise, at, kSize, MADV_HUGEPAGE);
    say("madvise map=huge offset=0 size=%d arg=%d result=%ld", kSize, MADV_HUGEPAGE, advised);
    for (long i = 0; i < kSize / 2; i += kPage)
        at[i] = 3;
    for (long i = 0; i < kSize / 2; i += kPage)
        say("touch map=huge offset=%ld size=4096 flags=1 list= result=0", i);
    do_end("huge", at);
    return 0;
}
