// SPDX-License-Identifier: MIT
#include "replay/engine/changed_access.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "formats/oplog/async_request.h"
#include "formats/oplog/result_rule.h"
#include "formats/oplog/touched.h"
#include "replay/engine/whole_blocks.h"

namespace reprise {
namespace {

constexpr int64_t kDsync = 2;  // RWF_DSYNC

size_t buffer_for(const EngineContext& context) {
    // A read of any place may take a block more at each end.
    const auto piece = static_cast<size_t>(context.plan.access->change.mmap_as_read);
    return std::max(context.task.read_bytes, piece) + 2 * static_cast<size_t>(kMostBlock);
}

}  // namespace

ChangedAccess::ChangedAccess(const EngineContext& context)
    : PosixEngine(context, buffer_for(context)),
      access_(*context.plan.access),
      state_(*context.process->access),
      task_(static_cast<TaskId>(&context.task - context.plan.tasks.data())) {
    make_requests_at_once();
}

int64_t ChangedAccess::submit(const OpBlock& b, size_t i) {
    const auto kind = static_cast<OpKind>(b.kind[i]);
    const OpInfo& row = info(kind);
    if (kind == OpKind::exec) {
        return exec(b, i);
    }
    if (row.is(Trait::memory)) {
        if (kind == OpKind::mmap) {
            return map(b, i);
        }
        AccessState::Source source;
        return source_of(b.map[i], &source) ? on_map(b, i, kind, source) : PosixEngine::submit(b, i);
    }
    if (row.is(Trait::reads) && row.is(Trait::writes)) {
        return copy(b, i);
    }
    const uint8_t flags = access_.handle(b.handle[i]);
    if (flags == 0) {
        return PosixEngine::submit(b, i);
    }
    if (kind == OpKind::open) {
        return open(b, i);
    }
    if (kind == OpKind::close) {
        return close(b, i);
    }
    if (row.is(Trait::submits)) {
        return request(b, i);
    }
    if (row.is(Trait::reads) && (flags & (kReadsDirect | kReadsMapped)) != 0) {
        return read(b, i, kind);
    }
    if (row.is(Trait::writes) && (flags & kWritesSync) != 0 && !worker_.read_only) {
        return write(b, i, kind);
    }
    return PosixEngine::submit(b, i);
}

// --- reads and writes

int64_t ChangedAccess::read(const OpBlock& b, size_t i, OpKind kind) {
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0 || fd < 0) {
        return refusal != 0 ? refusal : PosixEngine::submit(b, i);
    }
    return (access_.handle(b.handle[i]) & kReadsMapped) != 0 ? read_mapped(b, i, kind, fd)
                                                             : read_direct(b, i, kind, fd);
}

/// Bytes that offsets and sizes of direct reads are multiples of; refused where the file system reads none, which is
/// not asked again.
int64_t ChangedAccess::alignment(HandleId handle, int fd) {
    std::atomic<int32_t>& kept = state_.alignment[handle];
    if (const int32_t known = kept.load(std::memory_order_relaxed); known != 0) {
        return known;
    }
    int64_t bytes = stated_block(fd).value_or(kUsualBlock);
    const int64_t flags = sys::aside(SYS_fcntl, fd, F_GETFL, 0);
    if (bytes == 0 || flags < 0 || sys::aside(SYS_fcntl, fd, F_SETFL, flags | O_DIRECT) < 0) {
        bytes = AccessState::kRefused;
        ++counts_[AccessCount::direct_refused];
    }
    kept.store(static_cast<int32_t>(bytes), std::memory_order_relaxed);
    return bytes;
}

/// A file system that accepts the flag may still refuse the read (overlayfs).
void ChangedAccess::refuse(HandleId handle, int fd) {
    const int64_t flags = sys::aside(SYS_fcntl, fd, F_GETFL, 0);
    if (flags >= 0) {
        sys::aside(SYS_fcntl, fd, F_SETFL, flags & ~int64_t{O_DIRECT});
    }
    state_.alignment[handle].store(AccessState::kRefused, std::memory_order_relaxed);
    ++counts_[AccessCount::direct_refused];
}

int64_t ChangedAccess::read_direct(const OpBlock& b, size_t i, OpKind kind, int fd) {
    const HandleId handle = b.handle[i];
    const int64_t aligned = alignment(handle, fd);
    if (aligned > 0) {
        const bool moves = at_position(kind);
        const int64_t offset = moves ? sys::aside(SYS_lseek, fd, 0, SEEK_CUR) : b.offset[i];
        const auto asked = static_cast<int64_t>(read_size(b.size[i]));
        const int64_t result = read_blocks(fd, offset, asked, b.result[i], aligned);
        if (result > 0 && moves) {
            sys::aside(SYS_lseek, fd, offset + result, SEEK_SET);
        }
        if (result != -EINVAL || b.result[i] == -EINVAL) {
            return result;
        }
        refuse(handle, fd);
        sys::call_ticks.reset();
    }
    ++counts_[AccessCount::buffered_reads];
    return PosixEngine::submit(b, i);
}

int64_t ChangedAccess::read_blocks(int fd, int64_t offset, int64_t asked, int64_t expected, int64_t alignment) {
    const BlockRead read = read_whole_blocks(fd, buffer_, {offset, asked}, expected, alignment);
    if (read.result >= 0 && offset >= 0 && asked > 0) {
        ++counts_[AccessCount::direct_reads];
        counts_[AccessCount::direct_asked] += static_cast<uint64_t>(read.result);
        counts_[AccessCount::direct_fetched] += static_cast<uint64_t>(read.fetched);
    }
    return read.result;
}

/// The mapping of a whole file, made anew where the file has grown up to `end`.
AccessState::Mapped ChangedAccess::mapped(HandleId handle, int fd, int64_t end) {
    const std::lock_guard guard(worker_.lock);
    const auto [found, made] = state_.mapped.try_emplace(handle);
    AccessState::Mapped& mapping = found->second;
    if (!made && (mapping.at == nullptr || end <= mapping.bytes)) {
        return mapping;
    }
    struct stat st {};
    if (sys::aside(SYS_fstat, fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        st.st_size = 0;
    }
    if (!made && st.st_size <= mapping.bytes) {
        return mapping;
    }
    const int64_t at =
        st.st_size == 0 ? -1 : sys::aside(SYS_mmap, nullptr, st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at < 0) {
        if (made) {
            counts_[AccessCount::unmappable] += st.st_size == 0 && S_ISREG(st.st_mode) ? 0 : 1;
        }
        return mapping;
    }
    if (!made) {
        munmap(mapping.at, static_cast<size_t>(mapping.bytes));
    }
    mapping = {reinterpret_cast<std::byte*>(at), st.st_size};
    return mapping;
}

int64_t ChangedAccess::read_mapped(const OpBlock& b, size_t i, OpKind kind, int fd) {
    const bool moves = at_position(kind);
    const int64_t offset = moves ? sys::aside(SYS_lseek, fd, 0, SEEK_CUR) : b.offset[i];
    const auto asked = static_cast<int64_t>(read_size(b.size[i]));
    if (offset < 0 || offset > INT64_MAX - asked) {
        return PosixEngine::submit(b, i);
    }
    const AccessState::Mapped mapping = mapped(b.handle[i], fd, offset + asked);
    if (mapping.at == nullptr) {
        ++counts_[AccessCount::buffered_reads];
        return PosixEngine::submit(b, i);
    }
    const int64_t bytes = std::clamp<int64_t>(mapping.bytes - offset, 0, asked);
    if (bytes > 0 && touch_pages(mapping.at + offset, static_cast<size_t>(bytes), false) != 0) {
        return -EIO;
    }
    if (bytes > 0 && moves) {
        sys::aside(SYS_lseek, fd, offset + bytes, SEEK_SET);
    }
    ++counts_[AccessCount::mapped_reads];
    counts_[AccessCount::mapped_bytes] += static_cast<uint64_t>(bytes);
    return bytes;
}

int64_t ChangedAccess::write(const OpBlock& b, size_t i, OpKind kind) {
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0 || fd < 0) {
        return refusal != 0 ? refusal : PosixEngine::submit(b, i);
    }
    std::byte* const bytes = outgoing(b.handle[i], write_size(b.size[i]));
    const int count = pieces(b.list_of(i), b.size[i], bytes, worker_.pattern.size());
    const int64_t own = kind == OpKind::pwritev ? b.flags[i] & 0xffffffff : 0;
    const int64_t offset = at_position(kind) ? -1 : b.offset[i];
    const int64_t result = sys::call(SYS_pwritev2, fd, iov_.data(), count, offset, 0, own | kDsync);
    ++counts_[AccessCount::sync_writes];
    counts_[AccessCount::sync_bytes] += static_cast<uint64_t>(std::max<int64_t>(result, 0));
    return result;
}

/// A copy inside the kernel has no flag for that.
int64_t ChangedAccess::copy(const OpBlock& b, size_t i) {
    const int64_t result = PosixEngine::submit(b, i);
    if ((access_.handle(b.handle2[i]) & kWritesSync) == 0 || result <= 0) {
        return result;
    }
    int64_t refusal = 0;
    const int fd = descriptor(b.handle2[i], &refusal);
    if (fd >= 0) {
        sys::call(SYS_fdatasync, fd);
        ++counts_[AccessCount::sync_writes];
        counts_[AccessCount::sync_bytes] += static_cast<uint64_t>(result);
    }
    return result;
}

/// As in the POSIX engine, requests are performed where they are submitted.
int64_t ChangedAccess::request(const OpBlock& b, size_t i) {
    const AsyncRequest asked = async_request(b, i);
    const uint8_t flags = access_.handle(b.handle[i]);
    const bool reads = asked.reads() && (flags & (kReadsDirect | kReadsMapped)) != 0;
    const bool writes = asked.writes() && (flags & kWritesSync) != 0 && !worker_.read_only;
    int64_t refusal = 0;
    const int fd = reads || writes ? descriptor(b.handle[i], &refusal) : -1;
    if (fd < 0) {
        return PosixEngine::submit(b, i);
    }
    const int64_t aligned = reads && (flags & kReadsDirect) != 0 ? alignment(b.handle[i], fd) : 0;
    int64_t result = 0;
    if (writes) {
        std::byte* const bytes = outgoing(b.handle[i], write_size(asked.size));
        const int count = pieces(b.list_of(i), asked.size, bytes, worker_.pattern.size());
        result = sys::call(SYS_pwritev2, fd, iov_.data(), count, asked.offset, 0, kDsync);
        ++counts_[AccessCount::sync_writes];
        counts_[AccessCount::sync_bytes] += static_cast<uint64_t>(std::max<int64_t>(result, 0));
    } else if (aligned > 0) {
        const auto size = static_cast<int64_t>(read_size(asked.size));
        result = read_blocks(fd, asked.offset, size, size, aligned);
    } else {
        return PosixEngine::submit(b, i);
    }
    return made_at_once(b, i, result, true);
}

// --- instances

int64_t ChangedAccess::open(const OpBlock& b, size_t i) {
    const int64_t result = PosixEngine::submit(b, i);
    if ((access_.handle(b.handle[i]) & kPrefetched) != 0 && result >= 0) {
        if (const int fd = worker_.descriptors.get(b.handle[i]); fd >= 0) {
            prefetch(fd);
        }
    }
    return result;
}

void ChangedAccess::prefetch(int fd) {
    struct stat st {};
    if (sys::aside(SYS_fstat, fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
        return;
    }
    ++counts_[AccessCount::prefetched_files];
    for (int64_t at = 0; at < st.st_size && !worker_.run.stopped(); at += kPrefetchPiece) {
        if (sys::call(SYS_readahead, fd, at, kPrefetchPiece) < 0) {
            return;
        }
        counts_[AccessCount::prefetched_bytes] += static_cast<uint64_t>(std::min(kPrefetchPiece, st.st_size - at));
    }
}

int64_t ChangedAccess::close(const OpBlock& b, size_t i) {
    const int64_t result = PosixEngine::submit(b, i);
    if (worker_.descriptors.get(b.handle[i]) < 0) {
        unmap(b.handle[i]);
    }
    return result;
}

void ChangedAccess::unmap(HandleId handle) {
    const std::lock_guard guard(worker_.lock);
    if (const auto found = state_.mapped.find(handle); found != state_.mapped.end()) {
        if (found->second.at != nullptr) {
            sys::call(SYS_munmap, found->second.at, found->second.bytes);
        }
        state_.mapped.erase(found);
    }
}

int64_t ChangedAccess::exec(const OpBlock& b, size_t i) {
    const int64_t result = PosixEngine::submit(b, i);
    const std::lock_guard guard(worker_.lock);
    for (const auto& [map, source] : state_.sources) {
        ::close(source.fd);
    }
    for (const auto& [handle, mapping] : state_.mapped) {
        if (mapping.at != nullptr) {
            munmap(mapping.at, static_cast<size_t>(mapping.bytes));
        }
    }
    state_.sources.clear();
    state_.mapped.clear();
    return result;
}

// --- mappings that are read

bool ChangedAccess::source_of(uint32_t map, AccessState::Source* source) const {
    if (!access_.reads_map(map)) {
        return false;
    }
    const std::lock_guard guard(worker_.lock);
    const auto found = state_.sources.find(map);
    if (found != state_.sources.end()) {
        *source = found->second;
    }
    return found != state_.sources.end();
}

/// Keeps a descriptor, as a program that goes on reading would: the job may close its own.
int64_t ChangedAccess::map(const OpBlock& b, size_t i) {
    if (!access_.reads_map(b.map[i])) {
        return PosixEngine::submit(b, i);
    }
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    constexpr int kFrom = 16;  // by which a recording of the replay tells it from a recorded dup
    const int64_t copy = fd < 0 ? -1 : sys::aside(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kFrom);
    if (copy < 0) {
        return PosixEngine::submit(b, i);
    }
    const AccessState::Source source{static_cast<int>(copy), b.handle[i], b.offset[i], b.size[i]};
    {
        const std::lock_guard guard(worker_.lock);
        AccessState::Source& kept = state_.sources[b.map[i]];
        if (kept.fd >= 0) {
            ::close(kept.fd);
        }
        kept = source;
    }
    if ((b.flags[i] & MAP_POPULATE) != 0) {
        const int64_t result = bring(source, 0, b.size[i]);
        return result < 0 ? result : b.result[i];
    }
    return b.result[i];
}

int64_t ChangedAccess::on_map(const OpBlock& b, size_t i, OpKind kind, const AccessState::Source& source) {
    if (kind == OpKind::touch) {
        return touch(b, i, source);
    }
    if (kind == OpKind::madvise && b.result[i] >= 0 &&
        (b.arg[i] == MADV_POPULATE_READ || b.arg[i] == MADV_POPULATE_WRITE)) {
        const int64_t result = bring(source, b.offset[i], b.size[i]);
        return result < 0 ? result : b.result[i];
    }
    if (kind == OpKind::munmap && b.offset[i] == 0 && b.size[i] >= source.bytes) {
        const std::lock_guard guard(worker_.lock);
        ::close(source.fd);
        state_.sources.erase(b.map[i]);
    }
    return b.result[i];  // a program that reads makes none of these
}

int64_t ChangedAccess::touch(const OpBlock& b, size_t i, const AccessState::Source& source) {
    const std::vector<TouchRun>* const runs = access_.runs_of(task_, b.map[i]);
    int64_t failed = 0;
    if (runs != nullptr && b.flags[i] != kTouchAgain) {  // what was read, the program has
        RunCursor& cursor = cursors_[b.map[i]];
        each_touched(b.offset[i], b.size[i], b.list_of(i), [&](int64_t at, int64_t bytes) {
            counts_[AccessCount::touched_bytes] += static_cast<uint64_t>(bytes);
            if (failed == 0) {
                cursor.bring(*runs, at, bytes, access_.change.mmap_as_read, [&](int64_t from, int64_t size) {
                    const int64_t got = bring(source, from, size);
                    failed = std::min<int64_t>(got, 0);
                    return got == size;  // less: the end of the file
                });
            }
        });
    }
    return failed != 0 ? failed : is_error(b.result[i]) ? 0 : b.result[i];
}

/// Bytes of the mapping into memory that is new: a program that reads has to put them somewhere. How many, or -errno.
int64_t ChangedAccess::bring(const AccessState::Source& source, int64_t at, int64_t bytes) {
    const bool direct = (access_.handle(source.handle) & kReadsDirect) != 0;
    int64_t aligned = direct ? alignment(source.handle, source.fd) : 0;
    int64_t done = 0;
    while (done < bytes && !worker_.run.stopped()) {
        const int64_t size = std::min(access_.change.mmap_as_read, bytes - done);
        int64_t offset = 0;
        if (__builtin_add_overflow(source.offset, at + done, &offset)) {
            return -EFAULT;
        }
        make_fresh(static_cast<size_t>(size + 2 * std::max<int64_t>(aligned, 0)));
        const int64_t got = aligned > 0 ? read_blocks(source.fd, offset, size, size, aligned)
                                        : sys::call(SYS_pread64, source.fd, buffer_, size, offset);
        if (got == -EINVAL && aligned > 0) {
            refuse(source.handle, source.fd);
            aligned = 0;
            continue;
        }
        if (got < 0) {
            return got;
        }
        counts_[AccessCount::map_reads] += got > 0 ? 1 : 0;
        counts_[AccessCount::map_read_bytes] += static_cast<uint64_t>(got);
        done += got;
        if (got < size) {
            break;  // the end of the file
        }
    }
    return done;
}

}  // namespace reprise
