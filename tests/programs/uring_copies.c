/* SPDX-License-Identifier: MIT */
/* io_uring: splice and tee, by descriptors and by numbers of the ring, with positions and without, and advice on mapped
 * memory. */
#include "maps.h"
#include "ring.h"

#include <fcntl.h>
#include <sys/mman.h>

static void setup(void)
{
    make_file("data", 1 * MIB);
    make_file("target", 1000);
    if (!make_ring(0))
        give_up("SKIPPED: no io_uring here");
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

static struct io_uring_sqe *splice_(int from, long offset, int to, long offset2, long size, int flags)
{
    struct io_uring_sqe *const sqe = request(IORING_OP_SPLICE, to, NULL, size, offset2, flags);
    sqe->splice_off_in = (unsigned long)offset;
    sqe->splice_fd_in = from;
    return sqe;
}
static void said(const char *from, int fd, long offset, const char *to, int fd2, long offset2, long size, int flags,
                 long got)
{
    say("splice handle=%s fd=%d offset=%ld handle2=%s fd2=%d offset2=%ld size=%ld flags=%d result=%ld", handle_(from), fd,
        offset, handle_(to), fd2, offset2, size, flags, got);
    completed();
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    make_ring(0);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "target", O_RDWR, 0, ANY_FD);
    int pair[2], more[2];
    WANT(CALL2(SYS_pipe2, pair, 0), 0);
    WANT(CALL2(SYS_pipe2, more, 0), 0);
    bind_fd("out", "out", pair[0]);
    bind_fd("in", "in", pair[1]);
    bind_fd("out2", "out2", more[0]);
    bind_fd("in2", "in2", more[1]);

    splice_(fd_("a"), 4096, pair[1], -1, 8192, 0);
    said("a", fd_("a"), 4096, "in", pair[1], 0, 8192, 0, done(8192));
    splice_(pair[0], -1, fd_("b"), 40960, 4096, 0);
    said("out", pair[0], 0, "b", fd_("b"), 40960, 4096, 0, done(4096));
    splice_(pair[0], -1, fd_("b"), -1, 4096, 0);
    said("out", pair[0], 4096, "b", fd_("b"), 0, 4096, 0, done(4096));
    splice_(fd_("a"), -1, pair[1], -1, 100, 0);
    said("a", fd_("a"), 0, "in", pair[1], 8192, 100, 0, done(100));
    do_read("a", 10, 100, 10);

    /* Numbers of the ring. */
    const int fds[2] = {fd_("a"), fd_("b")};
    WANT(CALL4(SYS_io_uring_register, g_ring.fd, IORING_REGISTER_FILES, fds, 2), 0);
    splice_(0, 100000, pair[1], -1, 3000, 0)->splice_flags = SPLICE_F_FD_IN_FIXED;
    said("a", -1, 100000, "in", pair[1], 8292, 3000, 0, done(3000));
    splice_(pair[0], -1, 1, 500, 100, IOSQE_FIXED_FILE);
    said("out", pair[0], 8192, "b", -1, 500, 100, 0, done(100));
    /* Between pipes no op is compared. */
    request(IORING_OP_TEE, more[1], NULL, 50, 0, 0)->splice_fd_in = pair[0];
    done(50);
    completed();
    for (int i = 0; i < 2; ++i) {
        close(pair[i]);
        close(more[i]);
    }

    /* Memory: one mapping, and two that lie side by side. */
    char *const at = mmap(NULL, 64 * KIB, PROT_READ, MAP_SHARED, fd_("a"), 0);
    say("mmap %s map=m offset=0 size=%ld flags=%d mode=%d result=0", on("a"), 64 * KIB, MAP_SHARED, PROT_READ);
    request(IORING_OP_MADVISE, 0, at + 4096, 32 * KIB, 0, 0)->fadvise_advice = MADV_WILLNEED;
    long got = done(0);
    say("madvise map=m offset=4096 size=%ld arg=%d result=%ld", 32 * KIB, MADV_WILLNEED, got);
    completed();
    do_munmap("m", at, 32 * KIB, 32 * KIB);
    if (mmap(at + 32 * KIB, 32 * KIB, PROT_READ, MAP_SHARED, fd_("a"), 512 * KIB) != at + 32 * KIB)
        give_up("the second mapping is elsewhere");
    say("mmap %s map=n offset=%ld size=%ld flags=%d mode=%d result=0", on("a"), 512 * KIB, 32 * KIB, MAP_SHARED,
        PROT_READ);
    request(IORING_OP_MADVISE, 0, at + 16 * KIB, 32 * KIB, 0, 0)->fadvise_advice = MADV_DONTNEED;
    got = done(0);
    say("madvise map=m offset=%ld size=%ld arg=%d result=%ld", 16 * KIB, 16 * KIB, MADV_DONTNEED, got);
    say("madvise map=n offset=0 size=%ld arg=%d result=%ld", 16 * KIB, MADV_DONTNEED, got);
    completed();
    do_close("b");
    do_close("a");
    return 0;
}
