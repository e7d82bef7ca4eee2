// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_calls.h"

#include <fcntl.h>

#include <algorithm>

#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

/// Of hostile durations the sum must not overflow.
int64_t recorded(const OpBlock& b, size_t i) { return std::clamp<int64_t>(b.duration[i], 0, int64_t{1} << 50); }

}  // namespace

bool VirtualCalls::performs(const OpBlock& b, size_t i) const {
    const auto not_file = [&](uint32_t handle) {
        return handle < plan_.handle_flags.size() && (plan_.handle_flags[handle] & kHandleNotFile) != 0;
    };
    // Of /dev/shm: memory on any storage.
    const auto in_memory = [&](FileId file) {
        return file < tables_.files.size() && tables_.files[file].role == Role::ipc;
    };
    return !not_file(b.handle[i]) && !not_file(b.handle2[i]) && !in_memory(b.file[i]) &&
           !in_memory(file_of(b.handle[i]));
}

FileId VirtualCalls::file_of(uint32_t handle) const {
    return handle < tables_.handles.size() ? tables_.handles[handle].file : FileId{0};
}

int64_t VirtualCalls::size_of(FileId file) const {
    constexpr uint64_t kMostSize = uint64_t{1} << 50;
    return file < tables_.files.size() ? static_cast<int64_t>(std::min<uint64_t>(tables_.files[file].size, kMostSize))
                                       : 0;
}

int64_t VirtualCalls::read(FileId file, int64_t offset, int64_t bytes, int64_t now) {
    bytes_read += static_cast<uint64_t>(bytes);
    return storage_.read(file, offset, std::min(bytes, kMostBytes), size_of(file), now);
}

int64_t VirtualCalls::perform(const OpBlock& b, size_t i, int64_t now) {
    const StorageModel& m = model_;
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (kind == OpKind::mmap && b.map[i] != 0 && b.handle[i] != 0) {
        maps_[b.map[i]] = {file_of(b.handle[i]), std::max<int64_t>(b.offset[i], 0)};
    }
    const OpInfo& row = info(kind);
    const int64_t moved = std::max<int64_t>(b.result[i], 0);
    const bool failed = b.result[i] < 0 && b.result[i] > -4096;
    if (row.is(Trait::async)) {
        return asynchronous(b, i, now);
    }
    if (row.is(Trait::reads) || row.is(Trait::writes)) {
        int64_t end = now + m.call_ns;
        if (row.is(Trait::reads) && !failed) {
            end = read(file_of(b.handle[i]), b.offset[i], moved, now);
        }
        if (row.is(Trait::writes) && !failed) {
            const bool copies = row.is(Trait::reads);
            bytes_written += static_cast<uint64_t>(moved);
            const int64_t written =
                storage_.write(file_of(copies ? b.handle2[i] : b.handle[i]), copies ? b.offset2[i] : b.offset[i],
                               std::min(moved, kMostBytes), now);
            end = std::max(end, written);
        }
        return end;
    }
    if (row.is(Trait::syncs)) {
        return failed ? now + m.call_ns : storage_.sync(now);
    }
    if (row.is(Trait::makes_name)) {
        return now + (failed ? m.stat_ns : m.make_ns);
    }
    if (row.is(Trait::ends_name)) {
        return now + (failed ? m.stat_ns : m.remove_ns);
    }
    if (kind == OpKind::open) {
        const bool makes = (b.flags[i] & int64_t{O_CREAT}) != 0 && b.file[i] < tables_.files.size() &&
                           tables_.files[b.file[i]].origin == Origin::created;
        return now + (makes && !failed ? m.make_ns : m.open_ns);
    }
    if (kind == OpKind::touch) {
        return touch(b, i, now);
    }
    const bool by_name = b.file[i] != 0 || !row.has(Field::handle);
    if (row.is(Trait::metadata) && row.is(Trait::path) && !row.is(Trait::changes) && by_name) {
        return now + m.stat_ns;  // looks a name up
    }
    // What is left is not about storage: memory, descriptors, positions.
    return now + recorded(b, i);
}

/// Pages of a mapped file: from the storage where they are not cached, else as recorded.
int64_t VirtualCalls::touch(const OpBlock& b, size_t i, int64_t now) {
    const auto mapped = maps_.find(b.map[i]);
    if (warm_ || mapped == maps_.end()) {
        return now + recorded(b, i);
    }
    const auto [file, offset] = mapped->second;
    const uint64_t before = storage_.reads;
    const int64_t end = storage_.read(file, offset + std::max<int64_t>(b.offset[i], 0),
                                      std::clamp<int64_t>(b.size[i], 0, kMostBytes), size_of(file), now);
    return storage_.reads == before ? now + recorded(b, i) : end;
}

int64_t VirtualCalls::asynchronous(const OpBlock& b, size_t i, int64_t now) {
    if (!info(static_cast<OpKind>(b.kind[i])).is(Trait::submits)) {
        return now + model_.call_ns;  // its requests are performed where they are submitted
    }
    const AsyncRequest asked = async_request(b, i);
    const FileId file = file_of(b.handle[i]);
    const int64_t bytes = std::clamp<int64_t>(asked.size, 0, kMostBytes);
    using Does = AsyncRequest::Does;
    switch (asked.does) {
        case Does::read: return read(file, asked.offset, bytes, now);
        case Does::write:
            bytes_written += static_cast<uint64_t>(bytes);
            return std::max(now + model_.call_ns, storage_.write(file, asked.offset, bytes, now));
        case Does::sync:
        case Does::sync_data:
        case Does::sync_range: return storage_.sync(now);
        case Does::nothing:
        case Does::allocate:
        case Does::advise:
        case Does::splice:
        case Does::open:
        case Does::close:
        case Does::stat:
        case Does::make_name:
        case Does::end_name:
        case Does::other: break;
    }
    return now + model_.call_ns;
}

}  // namespace reprise
