/* SPDX-License-Identifier: MIT */
/* io_uring: reads, writes, vectors, syncs, fixed files and fixed buffers, refusals. */
#include "ring.h"

static void setup(void)
{
    make_file("data", 1 * MIB);
    need_ring(0);
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    make_ring(0);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "out", O_CREAT | O_RDWR, 0644, ANY_FD);
    const int a = fd_("a"), b = fd_("b");
    run_one("nop", "-", request(IORING_OP_NOP, -1, 0, 0, 0, 0), 0, "", 0);
    run_one("r0", "a", request(IORING_OP_READ, a, g_buffer, 4096, 8192, 0), 4096, "", 4096);
    run_one("r1", "a", request(IORING_OP_READ, a, g_buffer, 4096, 1 * MIB - 10, 0), 4096, "", 10);
    run_one("w0", "b", request(IORING_OP_WRITE, b, g_buffer, 10000, 500, 0), 10000, "", 10000);
    run_one("x0", "a", request(IORING_OP_WRITE, a, g_buffer, 10, 0, 0), 10, "", -EBADF);
    struct iovec vector[3] = {{g_buffer, 10}, {g_buffer, 20}, {g_buffer, 30}};
    run_one("v0", "a", request(IORING_OP_READV, a, vector, 3, 100, 0), 60, "10,20,30", 60);
    run_one("v1", "b", request(IORING_OP_WRITEV, b, vector, 2, 20000, 0), 30, "10,20", 30);
    run_one("s0", "b", request(IORING_OP_FSYNC, b, 0, 0, 0, 0), 0, "", 0);
    struct io_uring_sqe *const data_only = request(IORING_OP_FSYNC, b, 0, 0, 0, 0);
    data_only->fsync_flags = IORING_FSYNC_DATASYNC;
    run_one("s1", "b", data_only, 0, "", 0);
    /* The bytes stand in the address, the mode (FALLOC_FL_KEEP_SIZE) in the length. */
    run_one("l0", "b", request(IORING_OP_FALLOCATE, b, (void*)65536, 1, 30000, 0), 65536, "", 0);

    int files[2] = {b, a};
    WANT(CALL4(SYS_io_uring_register, g_ring.fd, IORING_REGISTER_FILES, files, 2), 0);
    struct iovec whole = {g_buffer, 1 * MIB};
    WANT(CALL4(SYS_io_uring_register, g_ring.fd, IORING_REGISTER_BUFFERS, &whole, 1), 0);
    run_one("f0", "a", request(IORING_OP_READ, 1, g_buffer, 5000, 77, IOSQE_FIXED_FILE), 5000, "", 5000);
    run_one("f1", "b", request(IORING_OP_READ_FIXED, 0, g_buffer, 4096, 0, IOSQE_FIXED_FILE), 4096, "", 4096);
    run_one("f2", "a", request(IORING_OP_READ, 1, g_buffer, 5000, 0, IOSQE_FIXED_FILE), 5000, "", 5000);
    run_one("f3", "b", request(IORING_OP_WRITE_FIXED, 0, g_buffer, 4096, 0, IOSQE_FIXED_FILE), 4096, "", 4096);
    do_close("b");
    do_close("a");
    return 0;
}
