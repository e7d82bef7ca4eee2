// SPDX-License-Identifier: MIT
// The dispatch over all ops, and descriptors.
#include "replay/engine/posix.h"

#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <ctime>
#include <string>

#include "formats/support/error.h"
#include "formats/support/random.h"

namespace reprise {
namespace {

/// A write of which a part was done met the end of what its process might write (ulimit -f), or of the space there was.
int64_t part_written(const OpBlock& b, size_t i) {
    return b.result[i] > 0 ? std::min(b.result[i], b.size[i]) : b.size[i];
}

constexpr size_t kPage = 4096;

/// What is read need not stay: nobody recorded where it went, and nobody looks at it.
bool reads_for_nobody(const Plan& plan) { return plan.log->header().source == "generate" && plan.verify == nullptr; }

}  // namespace

PosixEngine::PosixEngine(const EngineContext& context) : PosixEngine(context, kPage, reads_for_nobody(context.plan)) {}

PosixEngine::PosixEngine(const EngineContext& context, size_t least_bytes, bool small)
    : worker_(*context.process),
      memory_(std::max(context.task.read_bytes, least_bytes), small),
      buffer_(memory_.data()),
      buffer_bytes_(context.task.read_bytes),
      outgoing_(worker_.pattern.data()),
      task_(context.task),
      looks_(context.spins),
      drops_requests_(context.plan.selector->drops_requests()) {
    const std::vector<RequestNeed>& needs = task_.requests.needs;
    no_need_ = needs.data() + needs.size();
    passed_needs(needs.data());
    // Each task begins elsewhere.
    next_out_ = splitmix64(static_cast<uint64_t>(&context.task - context.plan.tasks.data())) % (uint64_t{1} << 48);
}

PosixEngine::~PosixEngine() {
    worker_.run.add(counts_);
    if (!named_.empty()) {  // the run was stopped
        const std::lock_guard guard(worker_.lock);
        for (auto& [request, each] : named_) {
            worker_.until_rings_end.push_back(std::shared_ptr<NamedRequest>(std::move(each)));
        }
    }
    for (const int fd : {pipe_[0], pipe_[1], null_}) {
        if (fd >= 0) {
            ::close(fd);
        }
    }
}

std::byte* PosixEngine::outgoing(HandleId handle, size_t bytes) {
    auto* const base = const_cast<std::byte*>(outgoing_);
    if (outgoing_ != worker_.pattern.data()) {
        return base;
    }
    // Writes go through a part that stays in the processor's cache, eight bytes on each time round: a block of 4 KiB
    // comes again after 512 MiB. O_DIRECT wants whole pages: after 4 MiB.
    constexpr size_t kCached = size_t{1} << 20, kPage = 4096;
    const bool direct = is_direct(handle);
    const size_t whole = bytes < kPage && !direct ? 8 : kPage, part = direct ? WritePattern::kPeriod : kCached;
    const size_t from = (next_out_ + whole - 1) & ~(whole - 1);  // all are powers of two
    next_out_ = from + ((bytes + whole - 1) & ~(whole - 1));
    return base + (from & (part - 1)) + (direct ? 0 : from / kCached * 8 % kPage);
}

int PosixEngine::descriptor_later(HandleId handle, int64_t* refusal) {
    int fd = worker_.descriptors.get(handle);
    if (fd == DescriptorTable::kUnknown && !opening_.empty()) {
        opened_by_now(handle);
        fd = worker_.descriptors.get(handle);
    }
    if (fd == DescriptorTable::kUnknown) {
        fd = worker_.open_again(handle);
        if (fd == DescriptorTable::kUnknown) {
            *refusal = not_performed(worker_.came_unseen(handle) ? LeftOut::received : LeftOut::not_open);
        }
    }
    if (DescriptorTable::is_absent(fd)) {
        *refusal = not_performed(DescriptorTable::reason(fd));
    }
    return fd < 0 ? -1 : fd;  // -1: closed; the kernel says EBADF
}

int64_t PosixEngine::submit_other(const OpBlock& b, size_t i, OpKind kind) {
    const auto& calls = task_.requests.calls.by_call;
    while (next_call_ < calls.size() && calls[next_call_].first < b.first + i) {
        ++next_call_;
    }
    const bool by_ring = next_call_ < calls.size() && calls[next_call_].first == b.first + i;
    return by_ring ? ring_called(b, i, kind) : submit_plain(b, i, kind);
}

int64_t PosixEngine::submit_plain(const OpBlock& b, size_t i, OpKind kind) {
    if (worker_.read_only && alters_files(worker_.plan, b, i)) {
        leave_request(b, i);
        if (kind == OpKind::open) {
            worker_.descriptors.set_absent(b.handle[i], LeftOut::read_only);
        }
        return keeps(worker_.plan, b, i) ? not_performed(LeftOut::read_only) : not_performed(LeftOut::filter);
    }
    if (worker_.plan.names_no_files && info(kind).is(Trait::path) &&
        names_no_file(worker_.plan.log->tables(), b.file[i])) {
        return keeps(worker_.plan, b, i) ? not_performed(LeftOut::not_a_file) : not_performed(LeftOut::filter);
    }
    if (b.result[i] == -EFBIG && keeps(worker_.plan, b, i)) {
        return -EFBIG;  // the job's limit (ulimit -f) is not this process's; nothing was written
    }
    if (b.result[i] == -EEXIST && makes_new_name(b, i) && task_.looks.has(b.first + i)) {
        return look_for_lock(b, i, kind);
    }
    const OpInfo& row = info(kind);
    const bool could = row.is(Trait::path) || row.is(Trait::writes);
    if ((b.result[i] == -EACCES || b.result[i] == -EPERM) && could) {
        return submit_refused(b, i, kind);
    }
    if (b.result[i] < 0 && refused_as_asked(b, i, kind)) {
        return keeps(worker_.plan, b, i) ? b.result[i] : not_performed(LeftOut::filter);
    }
    return perform(b, i, kind);
}

// Whether the kernel refused the call for what it was asked with before it got to a file. The log has not all of that:
// not the directory that a name is relative to, flags that mean nothing to a replay, times, how long a list was. What
// the call would do here is not what it did there.
bool PosixEngine::refused_as_asked(const OpBlock& b, size_t i, OpKind kind) const {
    if (b.result[i] == -EBADF) {
        return info(kind).is(Trait::path) && b.file[i] != 0;
    }
    if (b.result[i] == -EAGAIN) {
        return kind == OpKind::open;  // another process had a lease on the file
    }
    if (b.result[i] == -EBUSY) {
        return kind == OpKind::msync;  // memory that the job had locked
    }
    if (b.result[i] != -EINVAL) {
        return false;
    }
    constexpr int64_t kCut = INT64_MAX;  // what a negative length is in a log
    switch (kind) {
        case OpKind::access:
        case OpKind::statx:
        case OpKind::chmod:
        case OpKind::chown:
        case OpKind::utimens:
        case OpKind::unlink:
        case OpKind::link:
        case OpKind::setxattr:
        case OpKind::copy_file_range: return true;
        case OpKind::rename: return (b.flags[i] & ~int64_t{RENAME_NOREPLACE | RENAME_EXCHANGE}) != 0;
        case OpKind::truncate:
        case OpKind::ftruncate:
        case OpKind::fallocate:
        case OpKind::fadvise:
        case OpKind::readahead:
        case OpKind::sync_file_range: return b.size[i] == kCut;
        // A direct one may be refused for its place (off_by).
        case OpKind::readv:
        case OpKind::preadv:
        case OpKind::writev:
        case OpKind::pwritev: return !is_direct(b.handle[i]) && worker_.descriptors.get(b.handle[i]) >= 0;
        default: return false;
    }
}

// Whose files those were, and who might use them, is not in a root, and another user may run the replay. Where this one
// may do what the job's might not, that is no part of the job: what alters files is not tried.
int64_t PosixEngine::submit_refused(const OpBlock& b, size_t i, OpKind kind) {
    if (!keeps(worker_.plan, b, i)) {
        return not_performed(LeftOut::filter);
    }
    if (alters_files(worker_.plan, b, i) && !info(kind).is(Trait::attributes)) {
        return not_performed(LeftOut::refused);
    }
    const int64_t result = perform(b, i, kind);
    return result == b.result[i] || is_not_performed(result) ? result : not_performed(LeftOut::refused);
}

int64_t PosixEngine::perform(const OpBlock& b, size_t i, OpKind kind) {
    int64_t refusal = 0;
    const auto with_fd = [&](auto&& call) -> int64_t {
        const int fd = descriptor(b.handle[i], &refusal);
        return refusal != 0 ? refusal : call(fd);
    };
    switch (kind) {
        case OpKind::open: return open(b, i);
        case OpKind::close: return close(b, i);
        case OpKind::dup: return duplicate(b, i);
        case OpKind::fcntl: return control(b, i);
        case OpKind::read:
        case OpKind::pread:
            return with_fd([&](int fd) {
                const size_t off = off_by(b, i), bytes = std::min(read_size(b.size[i]), buffer_bytes_ - off);
                const int64_t result = kind == OpKind::pread
                                           ? sys::call(SYS_pread64, fd, buffer_ + off, bytes, b.offset[i])
                                           : sys::call(SYS_read, fd, buffer_ + off, bytes);
                return result == -EINVAL ? in_whole_blocks(b, i, kind, fd) : result;
            });
        case OpKind::write:
            return with_fd([&](int fd) {
                const size_t size = write_size(part_written(b, i));
                const int64_t result = sys::call(SYS_write, fd, outgoing(b.handle[i], size) + off_by(b, i), size);
                return result == -EINVAL ? in_whole_blocks(b, i, kind, fd) : result;
            });
        case OpKind::pwrite:
            return with_fd([&](int fd) {
                const size_t size = write_size(part_written(b, i));
                const int64_t result =
                    sys::call(SYS_pwrite64, fd, outgoing(b.handle[i], size) + off_by(b, i), size, b.offset[i]);
                return result == -EINVAL ? in_whole_blocks(b, i, kind, fd) : result;
            });
        case OpKind::readv:
        case OpKind::preadv:
        case OpKind::writev:
        case OpKind::pwritev: return vectored(b, i, kind);
        case OpKind::lseek: return with_fd([&](int fd) { return sys::call(SYS_lseek, fd, b.offset[i], b.arg[i]); });
        case OpKind::fstat: return fstat(b, i);
        case OpKind::ioctl:
            return with_fd([&](int fd) {
                // As large as any terminal's; no other request is performed.
                std::array<char, 256> terminal;
                return asks_terminal(b.arg[i]) ? sys::call(SYS_ioctl, fd, b.arg[i], terminal.data()) : int64_t{-ENOTTY};
            });
        case OpKind::getdents:
            return with_fd([&](int fd) { return sys::call(SYS_getdents64, fd, buffer_, read_size(b.size[i])); });
        case OpKind::stat:
        case OpKind::access:
        case OpKind::readlink:
        case OpKind::mkdir:
        case OpKind::rmdir:
        case OpKind::unlink:
        case OpKind::symlink:
        case OpKind::truncate:
        case OpKind::statx:
        case OpKind::chmod:
        case OpKind::chown:
        case OpKind::utimens:
        case OpKind::statfs:
        case OpKind::getxattr:
        case OpKind::setxattr:
        case OpKind::listxattr:
        case OpKind::removexattr: return by_path(b, i, kind);
        case OpKind::rename:
        case OpKind::link: return two_names(b, i, kind);
        case OpKind::ftruncate: return with_fd([&](int fd) { return sys::call(SYS_ftruncate, fd, b.size[i]); });
        case OpKind::fallocate:
            return with_fd([&](int fd) { return sys::call(SYS_fallocate, fd, b.flags[i], b.offset[i], b.size[i]); });
        case OpKind::fsync: return with_fd([&](int fd) { return sys::call(SYS_fsync, fd); });
        case OpKind::fdatasync: return with_fd([&](int fd) { return sys::call(SYS_fdatasync, fd); });
        case OpKind::sync_file_range:
            return with_fd(
                [&](int fd) { return sys::call(SYS_sync_file_range, fd, b.offset[i], b.size[i], b.flags[i]); });
        case OpKind::syncfs:
            // sync(2) would flush every file system of the machine; here it is the root's.
            if (b.handle[i] == 0) {
                const int root = ::openat(worker_.root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                const int64_t result = root < 0 ? -errno : sys::call(SYS_syncfs, root);
                if (root >= 0) {
                    ::close(root);
                }
                return result;
            }
            return with_fd([&](int fd) { return sys::call(SYS_syncfs, fd); });
        case OpKind::fadvise:
            return with_fd([&](int fd) { return sys::call(SYS_fadvise64, fd, b.offset[i], b.size[i], b.arg[i]); });
        case OpKind::readahead:
            return with_fd([&](int fd) { return sys::call(SYS_readahead, fd, b.offset[i], b.size[i]); });
        case OpKind::mmap: return map(b, i);
        case OpKind::munmap:
        case OpKind::mremap:
        case OpKind::madvise:
        case OpKind::msync:
        case OpKind::mprotect:
        case OpKind::touch: return on_map(b, i, kind);
        case OpKind::sendfile:
        case OpKind::copy_file_range:
        case OpKind::splice: return copy(b, i, kind);
        case OpKind::flock: return lock(b, i);
        case OpKind::uring_submit:
        case OpKind::aio_submit:
        case OpKind::uring_complete:
        case OpKind::aio_complete:
        case OpKind::aio_reap:
        case OpKind::uring_enter: return submit_async(b, i, kind);
        case OpKind::pipe: return make_memfd(b, i);
        case OpKind::exec:
            worker_.descriptors.exec();
            worker_.mappings.clear();
            return b.result[i];
        case OpKind::wait: return await(b.first + i) ? b.result[i] : not_performed(LeftOut::stopped);
        case OpKind::compute:
        case OpKind::idle:
        case OpKind::send:
        case OpKind::receive:
        case OpKind::spawn:
        case OpKind::join:
        case OpKind::exit:
        case OpKind::gpu_submit:
        case OpKind::gpu_wait:
        case OpKind::marker: return b.result[i];
    }
    return not_performed(LeftOut::unsupported);
}

int64_t PosixEngine::open(const OpBlock& b, size_t i) {
    const FileId file = b.file[i];
    const HandleId handle = b.handle[i];
    if (!worker_.plan.keeps_file(file)) {
        return not_performed(LeftOut::filter);
    }
    if (worker_.is_fifo(file)) {  // nothing is sent through it, as through a pipe, and nobody is at its other end
        return not_performed(LeftOut::not_a_file);
    }
    if (file >= worker_.plan.paths.size() || worker_.plan.paths[file].relative == nullptr) {
        worker_.descriptors.set_absent(handle, LeftOut::no_place);
        return not_performed(LeftOut::no_place);
    }
    expect_open(b, i);
    int64_t flags = open_flags(b.flags[i]);
    if (worker_.read_only && (flags & O_PATH) == 0) {
        flags &= ~int64_t{O_ACCMODE | O_CREAT};  // it is there: see alters_files()
    }
    const int64_t behind = worker_.open_behind(file, flags);
    const bool fstat_follows = i + 1 < b.count() && static_cast<OpKind>(b.kind[i + 1]) == OpKind::fstat &&
                               b.handle[i + 1] == handle && handle != 0;
    return opened({file, handle, flags, b.result[i], fstat_follows},
                  behind >= 0 ? behind : worker_.open_file(worker_.plan.paths[file], flags, b.mode[i]));
}

/// `fd`: of the open that was made, or -errno.
int64_t PosixEngine::opened(const OpenedFile& what, int64_t fd) {
    const auto& [file, handle, flags, recorded, fstat_follows] = what;
    if (fd < 0) {
        worker_.descriptors.set_absent(handle, LeftOut::not_open);
        return fd;
    }
    const auto real = static_cast<int>(fd);
    // A device must not be used, not even one that lies below the root. The fstat that mostly follows an open tells;
    // where none follows, one is made, once per name where names keep their meaning.
    if ((flags & O_PATH) == 0) {
        std::atomic<uint8_t>& verified = worker_.verified[file];
        if (fstat_follows) {
            unverified_ = handle;
        } else if (worker_.plan.risky_names || verified.load(std::memory_order_relaxed) == 0) {
            if (is_device(real)) {
                ::close(real);
                worker_.descriptors.set_absent(handle, LeftOut::device_node);
                return not_performed(LeftOut::device_node);
            }
            verified.store(1, std::memory_order_relaxed);
        }
    }
    if (handle == 0) {  // the recorded open failed; this one did not
        ::close(real);
        return recorded >= 0 ? recorded : fd;
    }
    worker_.descriptors.opened(handle, real, static_cast<int>(recorded));
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        worker_.made_nameless(file, handle);
    }
    worker_.pass_on(file, real);
    return recorded >= 0 ? recorded : fd;
}

// Jobs open thousands of files in random order: where a path is stored is not in any cache by then. It is fetched while
// the kernel works on the calls before (3 % of an open, fstat, read, close cycle; tests/bench/bench_replay.cpp).
void PosixEngine::expect_open(const OpBlock& b, size_t i) {
    constexpr size_t kFar = 8;
    next_path_ = nullptr;
    const size_t end = std::min(b.count(), i + kFar);
    for (size_t k = i + 1; k < end; ++k) {
        if (static_cast<OpKind>(b.kind[k]) == OpKind::open && b.file[k] < worker_.plan.paths.size()) {
            next_path_ = &worker_.plan.paths[b.file[k]];
            __builtin_prefetch(next_path_);
            __builtin_prefetch(&worker_.plan.file_left_out[b.file[k]]);
            return;
        }
    }
}

int64_t PosixEngine::fstat(const OpBlock& b, size_t i) {
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0) {
        return refusal;
    }
    struct stat st {};
    const int64_t result = sys::call(SYS_fstat, fd, &st);
    if (b.handle[i] == unverified_) {
        unverified_ = 0;
        if (result == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))) {
            const int real = worker_.descriptors.take(b.handle[i], b.fd[i]);
            if (real >= 0) {
                ::close(real);
            }
            worker_.descriptors.set_absent(b.handle[i], LeftOut::device_node);
            return not_performed(LeftOut::device_node);
        }
    }
    return result;
}

int64_t PosixEngine::close(const OpBlock& b, size_t i) {
    if (next_path_ != nullptr) {
        __builtin_prefetch(next_path_->relative);
        next_path_ = nullptr;
    }
    const int fd = worker_.descriptors.take(b.handle[i], b.fd[i]);
    if (fd >= 0) {
        return sys::call(SYS_close, fd);
    }
    int64_t refusal = 0;
    descriptor(b.handle[i], &refusal);
    if (refusal != 0) {
        return refusal;
    }
    const int opened = worker_.descriptors.take(b.handle[i], b.fd[i]);  // just opened again
    return opened >= 0 ? sys::call(SYS_close, opened) : -EBADF;
}

int64_t PosixEngine::duplicate(const OpBlock& b, size_t i) {
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0) {
        return refusal;
    }
    const int64_t how = b.arg[i];
    if (how == kDup2 && b.fd[i] == b.fd2[i]) {
        const int64_t result = sys::call(SYS_dup2, fd, fd);  // does nothing
        return result < 0 ? result : b.result[i];
    }
    // Refused there for its numbers, which mean nothing here: refused here for the same reason.
    if (b.result[i] == -EINVAL && (how == kDup3 || how == kDupFd)) {
        return how == kDup3 ? sys::call(SYS_dup3, fd, fd, 0) : sys::call(SYS_fcntl, fd, F_DUPFD, INT_MAX);
    }
    if (b.result[i] == -EBADF && (how == kDup2 || how == kDup3)) {
        return sys::call(SYS_dup3, fd, INT_MAX, 0);
    }
    // The recorded number may be anything here; only whether it is closed by exec carries over.
    const bool cloexec = (b.flags[i] & O_CLOEXEC) != 0;
    const int64_t copied =
        how == kDup ? sys::call(SYS_dup, fd) : sys::call(SYS_fcntl, fd, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    if (copied < 0) {
        return copied;
    }
    if (b.result[i] < 0) {
        ::close(static_cast<int>(copied));
        return copied;
    }
    worker_.descriptors.duplicated(b.handle[i], static_cast<int>(copied), static_cast<int>(b.result[i]));
    return b.result[i];
}

int64_t PosixEngine::control(const OpBlock& b, size_t i) {
    int64_t refusal = 0;
    int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0) {
        return refusal;
    }
    // Of the descriptor, not of the instance: a shell moves one away, and only that ends at exec.
    if (const int own = worker_.descriptors.get(b.handle[i], b.fd[i]); b.arg[i] == F_SETFD && own >= 0) {
        fd = own;
    }
    int64_t argument = 0;
    switch (b.arg[i]) {
        case F_GETFD:
        case F_GETFL: break;
        case F_SETFD: argument = b.flags[i] & FD_CLOEXEC; break;
        case F_SETFL: argument = (b.flags[i] & (O_APPEND | O_NOATIME | O_DIRECT)) | O_NONBLOCK; break;
        default: return not_performed(LeftOut::unsupported);  // locks, leases, seals: their argument is not recorded
    }
    const int64_t result = sys::call(SYS_fcntl, fd, b.arg[i], argument);
    return result >= 0 && b.result[i] >= 0 ? b.result[i] : result;
}

int64_t PosixEngine::make_memfd(const OpBlock& b, size_t i) {
    if (b.arg[i] != kMemFd || b.result[i] < 0) {
        return b.result[i];
    }
    const int64_t fd = sys::call(SYS_memfd_create, "reprise", (b.flags[i] & MFD_CLOEXEC));
    if (fd < 0) {
        worker_.descriptors.set_absent(b.handle[i], LeftOut::not_open);
        return fd;
    }
    worker_.descriptors.opened(b.handle[i], static_cast<int>(fd), b.fd[i]);
    return b.result[i];
}

int64_t PosixEngine::lock(const OpBlock& b, size_t i) {
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0) {
        return refusal;
    }
    const int64_t how = b.arg[i] & (LOCK_SH | LOCK_EX | LOCK_UN);
    if (how == 0) {
        return b.result[i];  // LOCK_MAND, which kernels take no more notice of, or no lock at all
    }
    // The plan keeps the order of locks, so whoever had it has given it back or is about to end. One that does not come
    // must not hold the run: it is asked for again and again, for a second.
    constexpr int64_t kFirstPause = 20'000, kLongestPause = 1'000'000, kMost = 1'000'000'000;  // ns
    int64_t slept = 0;
    for (int64_t pause_ns = kFirstPause;; pause_ns = std::min(pause_ns * 2, kLongestPause)) {
        const int64_t result = sys::call(SYS_flock, fd, how | LOCK_NB);
        if (result != -EWOULDBLOCK || (b.arg[i] & LOCK_NB) != 0 || slept >= kMost || worker_.run.stopped()) {
            return result;
        }
        const timespec pause{0, pause_ns};
        nanosleep(&pause, nullptr);
        slept += pause_ns;
    }
}

}  // namespace reprise
