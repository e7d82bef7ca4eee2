/* SPDX-License-Identifier: MIT */
/* Mappings of files and touches of their pages, for the programs that map. */
#ifndef REPRISE_TESTS_MAPS_H
#define REPRISE_TESTS_MAPS_H

#include "expect.h"

UNUSED static char* do_mmap(const char* map, const char* name, long offset, long size, int protection, int flags) {
    const long at = CALL6(SYS_mmap, 0, size, protection, flags, fd_(name), offset);
    if (at < 0 && at > -4096) {
        give_up("mmap gave %ld", at);
    }
    say("mmap %s offset=%ld size=%ld flags=%d mode=%d map=%s result=0", on(name), offset, size, flags, protection, map);
    return (char*)at;
}
UNUSED static void do_munmap(const char* map, char* at, long offset, long size) {
    const long got = WANT(CALL2(SYS_munmap, at + offset, size), 0);
    say("munmap map=%s offset=%ld size=%ld result=%ld", map, offset, size, got);
}

/* Pages that a write to one of them may map along: of 2 MiB on both sides. */
enum { kAlong = 512 };
struct mapped_pages {
    unsigned long long page[2 * kAlong + 1]; /* bit 63: it is mapped */
};
UNUSED static void look_at_pages(const char* at, struct mapped_pages* pages) {
    const int file = open("/proc/self/pagemap", O_RDONLY);
    if (file < 0 || pread(file, pages, sizeof *pages, (L(at) / 4096 - kAlong) * 8) != sizeof *pages) {
        give_up("/proc/self/pagemap does not tell");
    }
    close(file);
}
UNUSED static int was_mapped(const struct mapped_pages* pages, int page) { return (int)(pages->page[page] >> 63); }

/* A write to a page that is not mapped may map those beside it, and is told of as a write to all of them. */
UNUSED static void do_touch(const char* map, char* at, long offset, int writes) {
    static struct mapped_pages before, after;
    volatile char* const byte = at + offset;
    int first = kAlong, last = kAlong;
    if (writes) {
        look_at_pages(at + offset, &before);
        *byte = 1;
        look_at_pages(at + offset, &after);
    } else {
        (void)*byte;
    }
    while (writes && first > 0 && was_mapped(&after, first - 1) && !was_mapped(&before, first - 1)) {
        --first;
    }
    while (writes && last < 2 * kAlong && was_mapped(&after, last + 1) && !was_mapped(&before, last + 1)) {
        ++last;
    }
    for (int page = first; page <= last; page++) {
        say("touch map=%s offset=%ld size=4096 flags=%d list= result=0", map,
            (offset & ~4095L) + 4096L * (page - kAlong), writes);
    }
}

#endif
