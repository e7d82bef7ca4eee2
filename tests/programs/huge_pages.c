/* SPDX-License-Identifier: MIT */
/* Mapped files in huge pages: one fault maps 2 MiB at once. The script mounts a tmpfs that gives them. */
#include "maps.h"

enum { kHuge = 2 << 20, kTouches = 4 };

/* Whether the file that is mapped here is so by huge pages. */
static int mapped_huge(void)
{
    FILE *const in = fopen("/proc/self/smaps", "r");
    char line[4096];
    long most = 0, kib = 0;
    while (in != NULL && fgets(line, sizeof line, in) != NULL)
        if (sscanf(line, "ShmemPmdMapped: %ld", &kib) == 1 && kib > most)
            most = kib;
    if (in != NULL)
        fclose(in);
    return most >= kHuge / 1024;
}

static char *aligned(void)
{
    /* Where a mapping may lie in huge pages: at a multiple of their size. */
    char *const room = mmap(NULL, (kTouches + 1) * L(kHuge), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        give_up("no room");
    char *const at = (char *)(((uintptr_t)room + kHuge - 1) & ~(uintptr_t)(kHuge - 1));
    if (munmap(room, (kTouches + 1) * L(kHuge)) != 0)
        give_up("no room");
    return at;
}

static void setup(void)
{
    make_file("data", kTouches * L(kHuge));
    const int fd = open(full("data"), O_RDWR);
    char *const at = mmap(aligned(), kTouches * L(kHuge), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        give_up("cannot map");
    *(volatile char *)at = 1;
    if (!mapped_huge())
        give_up("SKIPPED: this kernel maps tmpfs in small pages here");
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    char *const at = aligned();
    do_open("d", "data", O_RDWR, 0, ANY_FD);
    const long got = CALL6(SYS_mmap, at, kTouches * L(kHuge), PROT_READ | PROT_WRITE, MAP_SHARED, fd_("d"), 0);
    if (got != L(at))
        give_up("mmap gave %ld", got);
    say("mmap %s offset=0 size=%ld flags=%d mode=%d map=data result=0", on("d"), kTouches * L(kHuge),
        MAP_SHARED, PROT_READ | PROT_WRITE);
    for (long i = 0; i < kTouches; i++)
        do_touch("data", at, i * kHuge + 123456, i % 2 == 0);
    (void)*(volatile char *)(at + kHuge - 1); /* the same huge page: no fault */
    do_munmap("data", at, 0, kTouches * L(kHuge));
    do_close("d");
    return 0;
}
