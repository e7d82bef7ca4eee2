// SPDX-License-Identifier: MIT
#include "formats/oplog/async_request.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>

namespace reprise {
namespace {

using Does = AsyncRequest::Does;

constexpr RequestShape of_uring(int64_t code) {
    switch (code) {
        case IORING_OP_NOP: return {Does::nothing};
        case IORING_OP_READ: return {Does::read};
        case IORING_OP_READV: return {Does::read, true};
        case IORING_OP_READ_FIXED: return {Does::read, false, true};
        case IORING_OP_WRITE: return {Does::write};
        case IORING_OP_WRITEV: return {Does::write, true};
        case IORING_OP_WRITE_FIXED: return {Does::write, false, true};
        case IORING_OP_FSYNC: return {Does::sync};
        case IORING_OP_SYNC_FILE_RANGE: return {Does::sync_range};
        case IORING_OP_FALLOCATE: return {Does::allocate};
        case IORING_OP_FADVISE: return {Does::advise};
        case IORING_OP_SPLICE:
        case IORING_OP_TEE: return {Does::splice};
        case IORING_OP_MADVISE: return {Does::advise_memory};
        case IORING_OP_OPENAT:
        case IORING_OP_OPENAT2: return {Does::open};
        case IORING_OP_CLOSE: return {Does::close};
        case IORING_OP_STATX: return {Does::stat};
        case IORING_OP_MKDIRAT:
        case IORING_OP_SYMLINKAT:
        case IORING_OP_LINKAT: return {Does::make_name};
        case IORING_OP_UNLINKAT:
        case IORING_OP_RENAMEAT: return {Does::end_name};
        default: return {};
    }
}

constexpr RequestShape of_aio(int64_t code) {
    switch (code) {
        case IOCB_CMD_NOOP: return {Does::nothing};
        case IOCB_CMD_PREAD: return {Does::read};
        case IOCB_CMD_PREADV: return {Does::read, true};
        case IOCB_CMD_PWRITE: return {Does::write};
        case IOCB_CMD_PWRITEV: return {Does::write, true};
        case IOCB_CMD_FSYNC: return {Does::sync};
        case IOCB_CMD_FDSYNC: return {Does::sync_data};
        default: return {};
    }
}

template <class Of>
constexpr auto shapes(Of of) {
    std::array<RequestShape, kRequestCodes> all{};
    for (size_t code = 0; code < all.size(); ++code) {
        all[code] = of(static_cast<int64_t>(code));
    }
    return all;
}

}  // namespace

static_assert(IORING_FSYNC_DATASYNC == 1);  // async_request() has it without the header

const std::array<RequestShape, kRequestCodes> uring_shapes = shapes(of_uring);
const std::array<RequestShape, kRequestCodes> aio_shapes = shapes(of_aio);

}  // namespace reprise
