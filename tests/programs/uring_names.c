/* SPDX-License-Identifier: MIT */
/* io_uring: opens, closes and calls on names, also of files that have a number of the ring and no descriptor. */
#include "ring.h"

#include <linux/stat.h>

struct how {
    unsigned long flags, mode, resolve;
};

static void setup(void)
{
    make_file("data", 1 * MIB);
    make_file("old", 5000);
    if (mkdir(full("dir"), 0755) != 0)
        give_up("setup");
    make_file("dir/inside", 10);
    if (!make_ring(0))
        give_up("SKIPPED: no io_uring here");
    char room[sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op)] = {0};
    struct io_uring_probe *const probe = (void *)room;
    if (CALL4(SYS_io_uring_register, g_ring.fd, IORING_REGISTER_PROBE, probe, 256) < 0 ||
        probe->last_op < IORING_OP_LINKAT)
        give_up("SKIPPED: io_uring makes no links here");
    close(g_ring.fd);
}

/* The one request, submitted and done. Its call is said next, and then completed(). */
static char g_label[16];
static long g_result;
static long done(long want)
{
    static int number;
    const struct io_uring_sqe asked = g_ring.requests[(*g_ring.tail - 1) & g_ring.mask];
    enter(1);
    const long got = WANT(take_completion(), want);
    snprintf(g_label, sizeof g_label, "c%d", number++);
    g_result = got < 0 ? got : 0;
    say("uring_submit handle=- fd=-1 file=- offset=0 size=0 flags=%d arg=%d list= request=%s result=0", asked.flags,
        asked.opcode, g_label);
    say_enter(1);
    return got;
}
static void completed(void) { say("uring_complete request=%s size=0 result=%ld", g_label, g_result); }
/* Of a file without a descriptor: nothing but the call, where it was submitted. */
static long direct_done(long want)
{
    enter(1);
    return WANT(take_completion(), want);
}
static struct io_uring_sqe *openat_(int directory, const char *path, int flags, int mode)
{
    struct io_uring_sqe *const sqe = request(IORING_OP_OPENAT, directory, path, mode, 0, 0);
    sqe->open_flags = (unsigned)flags;
    return sqe;
}
static void ring_open(const char *name, const char *path, int flags, int mode, long want)
{
    openat_(AT_FDCWD, full(path), flags, mode);
    const long got = done(want);
    say_open(name, path, flags, mode, got);
    completed();
}
static void ring_close(const char *name)
{
    request(IORING_OP_CLOSE, fd_(name), 0, 0, 0, 0);
    const long got = done(0);
    say("close %s result=%ld", on(name), got);
    completed();
    slot_(name, 0)->name[0] = 0;
}
/* Into a number of the ring, which it returns; `number` -1: one that the kernel chooses. */
static int direct_open(const char *name, const char *path, int number)
{
    openat_(AT_FDCWD, full(path), O_RDONLY, 0)->file_index = number < 0 ? IORING_FILE_INDEX_ALLOC : (unsigned)number + 1;
    const long got = direct_done(number < 0 ? ANY_FD : 0);
    say("open file=%s handle=%s flags=0 mode=0 result=%ld", path, name, got);
    say_enter(1);
    return number < 0 ? (int)got : number;
}
static void direct_close(const char *name, int number)
{
    request(IORING_OP_CLOSE, 0, 0, 0, 0, 0)->file_index = (unsigned)number + 1;
    const long got = direct_done(0);
    say("close handle=%s fd=%d result=%ld", name, number, got);
    say_enter(1);
}
static void ring_statx(const char *path, int flags, unsigned mask, long want)
{
    static char room[256];
    request(IORING_OP_STATX, AT_FDCWD, full(path), mask, (long)room, 0)->statx_flags = (unsigned)flags;
    const long got = done(want);
    say("statx handle=- fd=-1 file=%s flags=%d arg=%u result=%ld", path, flags, mask, got);
    completed();
}
static void ring_unlink(const char *kind, const char *path, int flags, long want)
{
    request(IORING_OP_UNLINKAT, AT_FDCWD, full(path), 0, 0, 0)->unlink_flags = (unsigned)flags;
    const long got = done(want);
    say("%s file=%s result=%ld", kind, path, got);
    completed();
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    make_ring(0);
    ring_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_pread("a", 4096, 8192, 4096);
    run_one("r0", "a", request(IORING_OP_READ, fd_("a"), g_buffer, 4096, 100, 0), 4096, "", 4096);
    ring_close("a");
    ring_open("x", "missing", O_RDONLY, 0, -ENOENT);
    ring_open("x", "data", O_RDONLY | O_DIRECTORY, 0, -ENOTDIR);

    /* What it makes; by a worker of the kernel's, as it may block. */
    ring_open("w", "made", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0640, ANY_FD);
    do_write("w", 5000, 0, 5000);
    run_one("w0", "w", request(IORING_OP_WRITE, fd_("w"), g_buffer, 100, 5000, 0), 100, "", 100);
    do_close("w");
    static struct how how = {.flags = O_CREAT | O_RDWR | O_TRUNC, .mode = 0600};
    request(IORING_OP_OPENAT2, AT_FDCWD, full("old"), sizeof how, (long)&how, 0);
    say_open("t", "old", (long)how.flags, (long)how.mode, done(ANY_FD));
    completed();
    do_pwrite("t", 10, 0, 10);
    do_fstat("t");
    ring_close("t");

    ring_open("d", "dir", O_RDONLY | O_DIRECTORY, 0, ANY_FD);
    openat_(fd_("d"), "inside", O_RDONLY, 0);
    say_open("i", "dir/inside", O_RDONLY, 0, done(ANY_FD));
    completed();
    do_read("i", 100, 0, 10);
    ring_close("i");

    /* Files without a descriptor. */
    int none[4] = {-1, -1, -1, -1};
    WANT(CALL4(SYS_io_uring_register, g_ring.fd, IORING_REGISTER_FILES, none, 4), 0);
    direct_open("n2", "data", 2);
    run_one("f0", "n2", request(IORING_OP_READ, 2, g_buffer, 5000, 77, IOSQE_FIXED_FILE), 5000, "", 5000);
    const int chosen = direct_open("n0", "dir/inside", -1);
    run_one("f1", "n0", request(IORING_OP_READ, chosen, g_buffer, 5000, 0, IOSQE_FIXED_FILE), 5000, "", 10);
    direct_close("n2", 2);
    direct_close("n0", chosen);
    /* One after the other, submitted at once. */
    openat_(AT_FDCWD, full("data"), O_RDONLY, 0)->file_index = 2;
    g_ring.requests[(*g_ring.tail - 1) & g_ring.mask].flags = IOSQE_IO_LINK;
    request(IORING_OP_READ, 1, g_buffer, 4096, 4096, IOSQE_FIXED_FILE | IOSQE_IO_LINK);
    request(IORING_OP_CLOSE, 0, 0, 0, 0, 0)->file_index = 2;
    enter(3);
    say("open file=data handle=n1 flags=0 mode=0 result=%ld", WANT(take_completion(), 0));
    const long got = WANT(take_completion(), 4096);
    say("uring_submit handle=n1 fd=1 file=- offset=4096 size=4096 flags=%d arg=%d list= request=f2 result=0",
        IOSQE_FIXED_FILE | IOSQE_IO_LINK, IORING_OP_READ);
    say("close handle=n1 fd=1 result=%ld", WANT(take_completion(), 0));
    say_enter(3);
    say("uring_complete request=f2 size=4096 result=%ld", got);

    /* Names. */
    ring_statx("data", 0, STATX_BASIC_STATS, 0);
    ring_statx("missing", 0, STATX_BASIC_STATS, -ENOENT);
    request(IORING_OP_MKDIRAT, fd_("d"), "below", 0750, 0, 0);
    say("mkdir file=dir/below mode=%d result=%ld", 0750, done(0));
    completed();
    request(IORING_OP_MKDIRAT, AT_FDCWD, full("dir"), 0750, 0, 0);
    say("mkdir file=dir mode=%d result=%ld", 0750, done(-EEXIST));
    completed();
    request(IORING_OP_RENAMEAT, AT_FDCWD, full("made"), fd_("d"), (long)"below/moved", 0);
    say("rename file=made file2=dir/below/moved flags=0 result=%ld", done(0));
    completed();
    request(IORING_OP_LINKAT, fd_("d"), "below/moved", AT_FDCWD, (long)full("second"), 0);
    say("link file=dir/below/moved file2=second flags=0 result=%ld", done(0));
    completed();
    request(IORING_OP_SYMLINKAT, AT_FDCWD, "data", 0, (long)full("soft"), 0);
    say("symlink file=soft text=\"data\" result=%ld", done(0));
    completed();
    do_open("s", "second", O_RDONLY, 0, ANY_FD);
    do_read("s", 10000, 0, 5100);
    do_close("s");
    ring_unlink("unlink", "soft", 0, 0);
    ring_unlink("unlink", "dir/below/moved", 0, 0);
    ring_unlink("rmdir", "dir/below", AT_REMOVEDIR, 0);
    ring_unlink("unlink", "missing", 0, -ENOENT);
    do_close("d");
    return 0;
}
