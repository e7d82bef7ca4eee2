/* SPDX-License-Identifier: MIT */
/* Mapped files of tmpfs, as loaders pass tensors: new pages written one after the other, by two processes, and read. The
 * script mounts the file system. */
#include "maps.h"

enum { kPages = 64, kPage = 4096, kApart = 128 << 10 };

static void setup(void)
{
    make_file("data", 2 * MIB);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    do_open("t", "tensor", O_RDWR | O_CREAT | O_EXCL, 0600, ANY_FD);
    do_ftruncate("t", 1 * MIB, 0);
    char *const tensor = do_mmap("tensor", "t", 0, 1 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (long i = 0; i < kPages; i++)
        do_touch("tensor", tensor, i * kPage, 1);
    for (long i = 2 * kPages; i > kPages; i--)
        do_touch("tensor", tensor, i * kPage, 1);
    const int child = do_fork();
    if (child == 0) {
        for (long i = 200; i < 210; i++)
            do_touch("tensor", tensor, i * kPage, 1);
        _exit(0);
    }
    do_wait(child);
    do_touch("tensor", tensor, 240 * kPage, 0); /* a hole: the file grows by reading */
    do_munmap("tensor", tensor, 0, 1 * MIB);

    do_open("d", "data", O_RDONLY, 0, ANY_FD);
    char *const data = do_mmap("data", "d", 0, 2 * MIB, PROT_READ, MAP_SHARED);
    for (long i = 0; i < 8; i++)
        do_touch("data", data, i * kApart, 0);
    /* Touched by the kernel, inside a call. */
    const long got = WANT(CALL4(SYS_pwrite64, fd_("t"), data + 9 * kApart, 100, 0), 100);
    say("touch map=data offset=%ld size=4096 flags=0 list= result=0", 9L * kApart);
    say("pwrite %s offset=0 size=100 flags=0 result=%ld", on("t"), got);
    do_munmap("data", data, 0, 2 * MIB);
    do_close("d");
    do_close("t");
    return 0;
}
