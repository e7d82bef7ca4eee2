/* SPDX-License-Identifier: MIT */
/* Pages of mapped files that calls ask for without a fault of the program: direct reads and writes whose buffer is a
 * mapped file, and the memory of a process. A file each, as a fault may map all that is in memory. */
#include "maps.h"

enum { kWhole = 64 << 10 };

static void setup(void)
{
    make_file("written", kWhole);
    make_file("filled", kWhole);
    make_file("looked_at", kWhole);
    make_file("direct", kWhole);
    if (open(full("direct"), O_RDONLY | O_DIRECT) < 0)
        give_up("SKIPPED: no O_DIRECT on this file system");
}

static char *map_whole(const char *name)
{
    do_open(name, name, O_RDWR, 0, ANY_FD);
    return do_mmap(name, name, 0, kWhole, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void touched(const char *map, int writes)
{
    say("touch map=%s offset=0 size=4096 flags=%d list= result=0", map, writes);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("d", "direct", O_RDWR | O_DIRECT, 0, ANY_FD);
    char *const written = map_whole("written"), *const filled = map_whole("filled"),
               *const looked_at = map_whole("looked_at");
    touched("written", 0);
    say("pwrite %s offset=0 size=4096 flags=0 result=%ld", on("d"),
        WANT(CALL4(SYS_pwrite64, fd_("d"), written, 4096, 0), 4096));
    do_touch("filled", filled, 0, 0);
    do_fstat("d");
    touched("filled", 1); /* the page is there, and becomes written */
    say("pread %s offset=8192 size=4096 flags=0 result=%ld", on("d"),
        WANT(CALL4(SYS_pread64, fd_("d"), filled, 4096, 8192), 4096));
    do_fstat("d");
    /* The same of a vector's buffers. */
    say("touch map=filled offset=8192 size=4096 flags=1 list= result=0");
    say("touch map=filled offset=16384 size=4096 flags=1 list= result=0");
    struct iovec parts[] = {{filled + 8192, 4096}, {filled + 16384, 4096}};
    say("preadv %s offset=0 size=8192 flags=0 list=4096,4096 result=%ld", on("d"),
        WANT(CALL4(SYS_preadv, fd_("d"), parts, 2, 0), 8192));
    struct iovec from = {looked_at, 4096}, to = {g_buffer, 4096};
    WANT(CALL6(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0), 4096);
    touched("looked_at", 0);
    do_munmap("written", written, 0, kWhole);
    do_munmap("filled", filled, 0, kWhole);
    do_munmap("looked_at", looked_at, 0, kWhole);
    do_close("d");
    return 0;
}
