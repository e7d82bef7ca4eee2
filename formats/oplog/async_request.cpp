// SPDX-License-Identifier: MIT
#include "formats/oplog/async_request.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>

namespace reprise {
namespace {

using Does = AsyncRequest::Does;

AsyncRequest of_uring(int64_t code) {
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

AsyncRequest of_aio(int64_t code) {
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

bool has_range(Does does) {
    switch (does) {
        case Does::read:
        case Does::write:
        case Does::sync_range:
        case Does::allocate:
        case Does::advise: return true;
        case Does::nothing:
        case Does::sync:
        case Does::sync_data:
        case Does::open:
        case Does::close:
        case Does::stat:
        case Does::make_name:
        case Does::end_name:
        case Does::splice:
        case Does::advise_memory:
        case Does::other: return false;
    }
    return false;
}

AsyncRequest with_range(AsyncRequest request, int64_t offset, int64_t size) {
    if (has_range(request.does)) {
        request.offset = offset;
        request.size = size;
    }
    return request;
}

}  // namespace

AsyncRequest async_request(OpKind kind, int64_t code, int64_t flags) {
    const bool aio = kind == OpKind::aio_submit;
    AsyncRequest request = aio ? of_aio(code) : of_uring(code);
    request.own_flags = aio ? flags : (flags & ~kUringPolled) >> kUringOwnFlags;
    if (!aio && request.does == Does::sync && request.own_flags & IORING_FSYNC_DATASYNC) {
        request.does = Does::sync_data;
    }
    return request;
}

AsyncRequest async_request(const Op& op) {
    return with_range(async_request(op.kind, op.arg, op.flags), op.offset, op.size);
}

AsyncRequest async_request(const OpBlock& block, size_t i) {
    return with_range(async_request(static_cast<OpKind>(block.kind[i]), block.arg[i], block.flags[i]), block.offset[i],
                      block.size[i]);
}

}  // namespace reprise
