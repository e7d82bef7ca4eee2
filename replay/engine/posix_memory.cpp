// SPDX-License-Identifier: MIT
// Mapped memory.
#include <sys/mman.h>

#include "formats/oplog/result_rule.h"
#include "formats/oplog/touched.h"
#include "replay/content/written.h"
#include "replay/engine/posix.h"
#include "replay/plan/fault_reach.h"

namespace reprise {
namespace {

/// The result of a call that worked here, where the number itself means nothing.
int64_t worked(int64_t recorded) { return is_error(recorded) ? 0 : recorded; }

/// Advice that concerns only our own pages of the mapping. Others (MADV_REMOVE, MADV_HWPOISON, ...) harm more.
bool harmless_advice(int64_t advice) {
    switch (advice) {
        case MADV_NORMAL:
        case MADV_RANDOM:
        case MADV_SEQUENTIAL:
        case MADV_WILLNEED:
        case MADV_DONTNEED:
        case MADV_FREE:
        case MADV_HUGEPAGE:
        case MADV_NOHUGEPAGE:
        case MADV_COLD:
        case MADV_PAGEOUT: return true;
        default: return false;
    }
}

}  // namespace

/// Calls `each` for the pieces of memory that [offset, offset + bytes) of the mapping lies in, until one fails; `hole`
/// where there is none.
template <class Each>
int64_t PosixEngine::on_each_piece(uint32_t map, int64_t offset, int64_t bytes, int64_t hole, const Each& each) const {
    for (int64_t done = 0; done < bytes;) {
        int64_t at = 0;
        if (__builtin_add_overflow(offset, done, &at)) {
            return hole;
        }
        const MappingTable::Range range = worker_.mappings.range(map, at, bytes - done);
        if (range.bytes == 0) {
            return hole;
        }
        if (const int64_t result = each(range); result < 0) {
            return result;
        }
        done += static_cast<int64_t>(range.bytes);
    }
    return 0;
}

int64_t PosixEngine::map(const OpBlock& b, size_t i) {
    const bool of_file = b.handle[i] != 0;
    int fd = -1;
    if (of_file) {
        int64_t refusal = 0;
        fd = descriptor(b.handle[i], &refusal);
        if (refusal != 0) {
            worker_.mappings.set_absent(b.map[i], reason_of(refusal));
            return refusal;
        }
    }
    const bool shared = (b.flags[i] & MAP_SHARED) != 0;
    int64_t flags = shared ? MAP_SHARED : MAP_PRIVATE;
    flags |= b.flags[i] & MAP_NORESERVE;
    // Most storage refuses it, and programs ask for it to see whether it does (PMDK, MariaDB).
    if (b.result[i] < 0 && (b.flags[i] & MAP_SYNC) != 0) {
        flags |= MAP_SHARED_VALIDATE | MAP_SYNC;
    }
    // Where it lay in the recorded process means nothing here. Memory without a file is only reserved: the job's own
    // memory is not what is replayed.
    flags |= of_file ? b.flags[i] & (MAP_POPULATE | MAP_NONBLOCK) : MAP_ANONYMOUS | MAP_NORESERVE;
    int64_t protection = b.mode[i] & (PROT_READ | PROT_WRITE);
    if (of_file && shared && worker_.read_only) {
        protection &= ~int64_t{PROT_WRITE};
    }
    const int64_t at = sys::call(SYS_mmap, nullptr, b.size[i], protection, flags, fd, of_file ? b.offset[i] : 0);
    if (at < 0 && at > -4096) {
        return at;
    }
    const FileId file = of_file ? worker_.plan.log->tables().handles[b.handle[i]].file : FileId{0};
    worker_.mappings.put(b.map[i], {reinterpret_cast<std::byte*>(at), static_cast<size_t>(b.size[i])}, of_file,
                         {file, b.offset[i]});
    return worked(b.result[i]);
}

int64_t PosixEngine::on_map(const OpBlock& b, size_t i, OpKind kind) {
    if (!keeps(worker_.plan, b, i)) {
        return not_performed(LeftOut::filter);
    }
    const uint32_t map = b.map[i];
    if (!worker_.mappings.has(map)) {
        return not_performed(map == 0 ? LeftOut::unsupported : worker_.mappings.absent_reason(map));
    }
    if (kind == OpKind::touch) {
        return touch(b, i);
    }
    if (kind == OpKind::munmap) {
        return worker_.mappings.unmap(map, b.offset[i], b.size[i]);
    }
    if (kind == OpKind::mremap) {
        const int result = worker_.mappings.remap(map, b.offset[i], b.arg[i], b.size[i], b.flags[i]);
        return result < 0 ? result : worked(b.result[i]);
    }
    if (kind == OpKind::madvise && (b.arg[i] == MADV_POPULATE_READ || b.arg[i] == MADV_POPULATE_WRITE)) {
        return populate(b, i);
    }
    if (kind == OpKind::madvise && !harmless_advice(b.arg[i])) {
        return not_performed(LeftOut::unsupported);
    }
    const bool may_write = !worker_.read_only || !writes_file(map);
    const int64_t allowed = may_write ? PROT_READ | PROT_WRITE : PROT_READ;
    return on_each_piece(map, b.offset[i], b.size[i], -ENOMEM, [&](const MappingTable::Range& range) -> int64_t {
        if (kind == OpKind::madvise) {
            return sys::call(SYS_madvise, range.at, range.bytes, b.arg[i]);
        }
        if (kind == OpKind::msync) {
            return sys::call(SYS_msync, range.at, range.bytes, b.flags[i] & (MS_SYNC | MS_ASYNC | MS_INVALIDATE));
        }
        return sys::call(SYS_mprotect, range.at, range.bytes, b.mode[i] & allowed);
    });
}

// Of memory without a file nothing is brought in for writing: the job's own memory is not what is replayed. For the
// same reason the pages of a private mapping are only read.
int64_t PosixEngine::populate(const OpBlock& b, size_t i) const {
    const uint32_t map = b.map[i];
    const bool to_write = b.arg[i] == MADV_POPULATE_WRITE;
    const bool writes = to_write && writes_file(map);
    if (to_write && !worker_.mappings.of_file(map)) {
        return not_performed(LeftOut::unsupported);
    }
    if (writes && worker_.read_only) {
        return not_performed(LeftOut::read_only);
    }
    const int advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    const auto each = [&](const MappingTable::Range& range) -> int64_t {
        const int64_t result = sys::call(SYS_madvise, range.at, range.bytes, advice);
        // Kernels before 5.14 know neither.
        return result == -EINVAL && b.result[i] >= 0 ? touch_pages(range.at, range.bytes, writes) : result;
    };
    return on_each_piece(map, b.offset[i], b.size[i], -ENOMEM, each);
}

bool PosixEngine::writes_file(uint32_t map) const {
    return map < worker_.plan.map_flags.size() && (worker_.plan.map_flags[map] & kMapWritesFile) != 0;
}

// What is written through a mapping of a file that storage holds is new to that storage, as what a call writes is.
bool PosixEngine::stores_to_file(uint32_t map) const {
    const std::vector<FileRow>& files = worker_.plan.log->tables().files;
    const FileId file = worker_.mappings.place(map).file;
    return writes_file(map) && file < files.size() && files[file].role != Role::ipc;
}

// `at`: in the file.
int64_t PosixEngine::store(uint64_t op, uint64_t at, std::span<std::byte> memory) const {
    const uint64_t seed = write_seed(static_cast<TaskId>(&task_ - worker_.plan.tasks.data()), op);
    const bool checked = worker_.plan.verify != nullptr;
    return fill_pages(
        memory, [&](std::span<std::byte> out) { checked ? fill_written(seed, at, out) : fill_noise(seed + at, out); });
}

// Storage whose files the page cache has in small pieces faults where the recording's had one of 2 MiB: pages that came
// with a fault there are touched here.
int64_t PosixEngine::touch(const OpBlock& b, size_t i) {
    const bool write = b.flags[i] == kTouchWrites, again = b.flags[i] == kTouchAgain;
    int64_t& last = touched_to_[b.map[i]];
    int64_t result = 0;
    const auto came_with_last = [&](int64_t at) {
        const MappingTable::Place place = worker_.mappings.place(b.map[i]);
        return last != 0 && place.file != 0 && place.begin < INT64_MAX - at &&
               came_with_fault(worker_.plan, place.file, place.begin + last, place.begin + at, false);
    };
    const bool stores = write && stores_to_file(b.map[i]);
    const auto one = [&](int64_t from, int64_t bytes) {
        auto at = static_cast<uint64_t>(worker_.mappings.place(b.map[i]).begin + from);
        return on_each_piece(b.map[i], from, bytes, -EFAULT, [&](const MappingTable::Range& range) -> int64_t {
            at += range.bytes;
            return stores ? store(b.first + i, at - range.bytes, {range.at, range.bytes})
                          : touch_pages(range.at, range.bytes, write);
        });
    };
    each_touched(b.offset[i], b.size[i], b.list_of(i), [&](int64_t at, int64_t bytes) {
        if (result == 0 && !write && !again && worker_.plan.fetched && came_with_last(at)) {
            one(last, at - last);  // some of it may be unmapped by now
        }
        last = again ? last : at + bytes;
        result = result == 0 ? one(at, bytes) : result;
    });
    return result < 0 ? result : worked(b.result[i]);
}

}  // namespace reprise
