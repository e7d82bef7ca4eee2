/* SPDX-License-Identifier: MIT */
/* Files that come to share blocks: FICLONE of a whole file, FICLONERANGE of a part, one that is refused, and other
 * ioctls, which are nothing. The script mounts a file system that can. */
#include "expect.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

#define CLONES (1L << 34) /* of the op log: kCopyClones */

static void setup(void)
{
    make_file("data", 300000);
    make_file("part", 1 * MIB);
    const int from = open(full("data"), O_RDONLY), to = open(full("probe"), O_RDWR | O_CREAT, 0644);
    if (from < 0 || to < 0 || ioctl(to, FICLONE, from) != 0)
        give_up("SKIPPED: this file system shares no blocks");
    unlink(full("probe"));
}

static void say_clone(const char *from, long offset, const char *to, long offset2, long bytes)
{
    say("copy_file_range %s offset=%ld handle2=%s fd2=%d offset2=%ld size=%ld flags=%ld result=%ld", on(from), offset,
        handle_(to), fd_(to), offset2, bytes, CLONES, bytes);
}

static void do_clone_range(const char *from, long offset, long bytes, const char *to, long offset2, long want)
{
    struct file_clone_range range = {fd_(from), (unsigned long)offset, (unsigned long)bytes, (unsigned long)offset2};
    WANT(CALL3(SYS_ioctl, fd_(to), FICLONERANGE, &range), want);
}

int main(int argc, char **argv)
{
    int waiting = 0;
    begin(argc, argv, NULL);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "copy", O_RDWR | O_CREAT, 0644, ANY_FD);
    do_fstat("a"); /* as cp does: strace shows no other size */
    WANT(CALL3(SYS_ioctl, fd_("b"), FICLONE, fd_("a")), 0);
    say_clone("a", 0, "b", 0, 300000);
    do_fstat("b");
    do_read("b", 1000, 0, 1000); /* no position moved */
    do_read("a", 1000, 0, 1000);
    WANT(CALL3(SYS_ioctl, fd_("a"), FIONREAD, &waiting), 0);
    do_open("p", "part", O_RDWR, 0, ANY_FD);
    do_fstat("p");
    do_clone_range("p", 64 * KIB, 128 * KIB, "b", 512 * KIB, 0);
    say_clone("p", 64 * KIB, "b", 512 * KIB, 128 * KIB);
    do_clone_range("p", 1, 4096, "b", 0, -EINVAL); /* half a block: the program must copy */
    do_clone_range("p", 512 * KIB, 0, "b", 1 * MIB, 0); /* to the end */
    say_clone("p", 512 * KIB, "b", 1 * MIB, 512 * KIB);
    do_fstat("b");
    do_close("p");
    do_close("b");
    do_close("a");
    return 0;
}
