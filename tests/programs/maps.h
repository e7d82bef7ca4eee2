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
UNUSED static void do_touch(const char* map, char* at, long offset, int writes) {
    volatile char* const byte = at + offset;
    if (writes) {
        *byte = 1;
    } else {
        (void)*byte;
    }
    say("touch map=%s offset=%ld size=4096 flags=%d list= result=0", map, offset & ~4095L, writes);
}

#endif
