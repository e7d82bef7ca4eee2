// SPDX-License-Identifier: MIT
// What asynchronous requests do, by the codes of the kernel's interface.
#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <set>

#include "formats/oplog/async_request.h"

using namespace reprise;
using Does = AsyncRequest::Does;

TEST_CASE("asynchronous requests: reads and writes of each interface") {
    const auto uring = [](int64_t code) { return async_request(OpKind::uring_submit, code); };
    const auto aio = [](int64_t code) { return async_request(OpKind::aio_submit, code); };
    for (const int64_t code : {IORING_OP_READ, IORING_OP_READV, IORING_OP_READ_FIXED}) {
        CHECK((uring(code).reads() && !uring(code).writes() && !uring(code).alters()));
        CHECK(uring(code).vectored == (code == IORING_OP_READV));
        CHECK(uring(code).fixed_buffer == (code == IORING_OP_READ_FIXED));
    }
    for (const int64_t code : {IORING_OP_WRITE, IORING_OP_WRITEV, IORING_OP_WRITE_FIXED}) {
        CHECK((uring(code).writes() && !uring(code).reads() && uring(code).alters()));
        CHECK(uring(code).vectored == (code == IORING_OP_WRITEV));
    }
    CHECK((aio(IOCB_CMD_PREAD).reads() && aio(IOCB_CMD_PREADV).reads() && aio(IOCB_CMD_PREADV).vectored));
    CHECK((aio(IOCB_CMD_PWRITE).writes() && aio(IOCB_CMD_PWRITEV).writes() && aio(IOCB_CMD_PWRITEV).vectored));
    // The same numbers mean something else to the other interface.
    CHECK(uring(IOCB_CMD_PREAD).does == Does::nothing);
    CHECK(aio(IORING_OP_READ).does == Does::other);
    CHECK((uring(-1).does == Does::other && uring(100000).does == Does::other && aio(-1).does == Does::other));
}

TEST_CASE("asynchronous requests: syncs, allocations and calls") {
    const auto uring = [](int64_t code, int64_t own = 0) {
        return async_request(OpKind::uring_submit, code, own << kUringOwnFlags | IOSQE_FIXED_FILE);
    };
    CHECK(uring(IORING_OP_FSYNC).does == Does::sync);
    CHECK(uring(IORING_OP_FSYNC, IORING_FSYNC_DATASYNC).does == Does::sync_data);
    CHECK(uring(IORING_OP_SYNC_FILE_RANGE, 7).own_flags == 7);
    CHECK(uring(IORING_OP_FALLOCATE, 1).alters());
    CHECK(async_request(OpKind::aio_submit, IOCB_CMD_FSYNC).does == Does::sync);
    CHECK(async_request(OpKind::aio_submit, IOCB_CMD_FDSYNC).does == Does::sync_data);
    CHECK(async_request(OpKind::aio_submit, IOCB_CMD_PREAD, 1).own_flags == 1);
    const std::set<int64_t> calls = {IORING_OP_OPENAT,    IORING_OP_OPENAT2,  IORING_OP_CLOSE,   IORING_OP_STATX,
                                     IORING_OP_RENAMEAT,  IORING_OP_UNLINKAT, IORING_OP_MKDIRAT, IORING_OP_LINKAT,
                                     IORING_OP_SYMLINKAT, IORING_OP_SPLICE,   IORING_OP_TEE,     IORING_OP_MADVISE};
    for (int64_t code = 0; code < IORING_OP_LAST; ++code) {
        CAPTURE(code);
        CHECK(uring(code).is_call() == calls.contains(code));
    }
}

TEST_CASE("asynchronous requests: only those about a part of the file have a range") {
    Op op;
    op.kind = OpKind::uring_submit;
    op.offset = 4096;
    op.size = 100;
    for (int64_t code = 0; code < IORING_OP_LAST; ++code) {
        op.arg = code;
        const AsyncRequest request = async_request(op);
        const bool ranged =
            request.reads() || request.alters() || request.does == Does::sync_range || request.does == Does::advise;
        CHECK(request.offset == (ranged ? 4096 : 0));
        CHECK(request.size == (ranged ? 100 : 0));
    }
}
