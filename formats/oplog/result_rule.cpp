// SPDX-License-Identifier: MIT
#include "formats/oplog/result_rule.h"

#include <algorithm>
#include <cerrno>

namespace reprise {
namespace {

enum class ResultRule { exact, success, ignore };

// success: the number itself depends on the machine, only whether it worked is the program's.
ResultRule rule_of(OpKind kind, int64_t arg) {
    switch (kind) {
        case OpKind::open:
        case OpKind::dup:
        case OpKind::mmap:
        case OpKind::mremap:
        case OpKind::getdents:
        case OpKind::readlink:
        case OpKind::getxattr:
        case OpKind::listxattr:
        case OpKind::touch:
        case OpKind::uring_submit:
        case OpKind::uring_enter:
        case OpKind::aio_reap:
        case OpKind::aio_submit: return ResultRule::success;
        case OpKind::fcntl:  // flags and descriptors; locks and sizes are the program's own
            return arg == 0 || arg == 1 || arg == 3 || arg == 1030 ? ResultRule::success : ResultRule::exact;
        case OpKind::close:
        case OpKind::read:
        case OpKind::pread:
        case OpKind::readv:
        case OpKind::preadv:
        case OpKind::write:
        case OpKind::pwrite:
        case OpKind::writev:
        case OpKind::pwritev:
        case OpKind::lseek:
        case OpKind::stat:
        case OpKind::fstat:
        case OpKind::ioctl:
        case OpKind::statx:
        case OpKind::access:
        case OpKind::mkdir:
        case OpKind::rmdir:
        case OpKind::unlink:
        case OpKind::rename:
        case OpKind::link:
        case OpKind::symlink:
        case OpKind::truncate:
        case OpKind::ftruncate:
        case OpKind::fallocate:
        case OpKind::fsync:
        case OpKind::fdatasync:
        case OpKind::sync_file_range:
        case OpKind::syncfs:
        case OpKind::fadvise:
        case OpKind::readahead:
        case OpKind::chmod:
        case OpKind::chown:
        case OpKind::utimens:
        case OpKind::munmap:
        case OpKind::madvise:
        case OpKind::msync:
        case OpKind::mprotect:
        case OpKind::sendfile:
        case OpKind::copy_file_range:
        case OpKind::splice:
        case OpKind::setxattr:
        case OpKind::removexattr:
        case OpKind::flock:
        case OpKind::statfs:
        case OpKind::uring_complete:
        case OpKind::aio_complete: return ResultRule::exact;
        case OpKind::compute:
        case OpKind::wait:
        case OpKind::idle:
        case OpKind::pipe:
        case OpKind::send:
        case OpKind::receive:
        case OpKind::spawn:
        case OpKind::join:
        case OpKind::exec:
        case OpKind::exit:
        case OpKind::gpu_submit:
        case OpKind::gpu_wait:
        case OpKind::marker: return ResultRule::ignore;
    }
    return ResultRule::exact;
}

bool may_not_wait(OpKind kind, int64_t detail) {
    constexpr int64_t kNoWait = 8;  // RWF_NOWAIT
    return is_vectored(kind) && (detail & kNoWait) != 0;
}

// Of a name below what was no directory. Relative to a descriptor whose file is gone by then, the log has only the name
// that the file had, and nothing is there. A completion may be that of such a look, whose op has its own result.
bool leads_nowhere(OpKind kind, int64_t recorded, int64_t run) {
    const bool by_name = kind == OpKind::open || kind == OpKind::stat || kind == OpKind::statx ||
                         kind == OpKind::access || kind == OpKind::readlink || kind == OpKind::uring_complete;
    return by_name && recorded == -ENOTDIR && run == -ENOENT;
}

}  // namespace

ResultMatch match_results(OpKind kind, int64_t detail, int64_t recorded, int64_t run) {
    if (recorded == run) {
        return ResultMatch::same;
    }
    const auto in_time = [](int64_t result) { return result >= 0 || result == -EAGAIN; };
    if (may_not_wait(kind, detail) && in_time(recorded) && in_time(run)) {
        return ResultMatch::known;
    }
    if (leads_nowhere(kind, recorded, run)) {
        return ResultMatch::same;
    }
    switch (rule_of(kind, detail)) {
        case ResultRule::ignore: return ResultMatch::same;
        case ResultRule::success:
            return is_error(recorded) || is_error(run) ? ResultMatch::differs : ResultMatch::known;
        case ResultRule::exact: break;
    }
    return ResultMatch::differs;
}

ResultMatch ListingResults::match(uint32_t listing, int64_t recorded, int64_t run) {
    constexpr int64_t kMost = int64_t{1} << 32;  // of hostile logs
    const auto bytes = [&](int64_t result) { return std::min(std::max<int64_t>(result, 0), kMost); };
    const auto fewer = [](int64_t some, int64_t all) { return some < all / 2; };
    Bytes& so_far = bytes_[listing];
    so_far.recorded += bytes(recorded);
    so_far.run += bytes(run);
    const ResultMatch match = match_results(OpKind::getdents, 0, recorded, run);
    const bool short_one = fewer(bytes(run), bytes(recorded)) && fewer(so_far.run, so_far.recorded);
    return match == ResultMatch::known && short_one ? ResultMatch::differs : match;
}

}  // namespace reprise
