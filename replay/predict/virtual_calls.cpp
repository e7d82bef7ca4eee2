// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_calls.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <utility>

#include "formats/oplog/open_flags.h"
#include "formats/oplog/touched.h"

namespace reprise {
namespace {

// Of the recording's machine, x86-64.
constexpr int64_t kRwfDsync = 2, kRwfSync = 4;  // RWF_DSYNC, RWF_SYNC

constexpr int64_t kWaits = 1 | 4;  // SYNC_FILE_RANGE_WAIT_BEFORE, _AFTER

}  // namespace

std::string_view unmodelled_name(Unmodelled what) {
    switch (what) {
        case Unmodelled::drops: return "cache drop";
        case Unmodelled::sizes: return "size change";
        case Unmodelled::listings: return "directory listing";
        case Unmodelled::attributes: return "attribute change";
        case Unmodelled::requests: return "other asynchronous request";
    }
    return "other";
}

bool VirtualCalls::is_storage(uint32_t handle) const {
    const bool not_file = handle < plan_.handle_flags.size() && (plan_.handle_flags[handle] & kHandleNotFile) != 0;
    // Of /dev/shm: memory on any storage.
    const FileId file = file_of(handle);
    return !not_file && (file >= tables_.files.size() || tables_.files[file].role != Role::ipc);
}

bool VirtualCalls::performs(const OpBlock& b, size_t i) const {
    const OpInfo& row = info(static_cast<OpKind>(b.kind[i]));
    if (row.is(Trait::async) && !row.is(Trait::submits)) {
        return true;  // of a ring
    }
    if (row.is(Trait::reads) && row.is(Trait::writes)) {
        // A copy from or into a pipe or socket: the file's part of it, as in a replay.
        return (b.handle[i] != 0 && is_storage(b.handle[i])) || (b.handle2[i] != 0 && is_storage(b.handle2[i]));
    }
    const FileId file = b.file[i];
    return is_storage(b.handle[i]) && is_storage(b.handle2[i]) &&
           (file >= tables_.files.size() || tables_.files[file].role != Role::ipc);
}

FileId VirtualCalls::file_of(uint32_t handle) const {
    return handle < tables_.handles.size() ? tables_.handles[handle].file : FileId{0};
}

int64_t VirtualCalls::size_of(FileId file) const {
    constexpr uint64_t kMostSize = uint64_t{1} << 50;
    return file < tables_.files.size() ? static_cast<int64_t>(std::min<uint64_t>(tables_.files[file].size, kMostSize))
                                       : 0;
}

void VirtualCalls::count_moved(const AsyncRequest& asked) {
    const auto moved = static_cast<uint64_t>(std::max<int64_t>(asked.size, 0));
    bytes_read += asked.reads() ? moved : 0;
    bytes_written += asked.writes() ? moved : 0;
}

void VirtualCalls::count_moved(const OpBlock& b, size_t i) {
    const OpInfo& row = info(static_cast<OpKind>(b.kind[i]));
    const auto moved = static_cast<uint64_t>(std::max<int64_t>(b.result[i], 0));
    bytes_read += row.is(Trait::reads) ? moved : 0;
    bytes_written += row.is(Trait::writes) ? moved : 0;
}

/// Flags that the instance has now.
int64_t VirtualCalls::open_flags(uint32_t handle) const {
    const int64_t flags = handle < tables_.handles.size() ? tables_.handles[handle].flags : 0;
    const auto set = direct_.find(handle);
    return set == direct_.end() ? flags : (flags & ~kOpenDirect) | set->second;
}

int64_t VirtualCalls::read(VirtualCall& call, HandleId handle, int64_t offset, int64_t bytes, int64_t now) {
    bytes_read += static_cast<uint64_t>(bytes);
    bytes = std::min(bytes, kMostBytes);
    const auto by = call.by_ring ? VirtualDevice::By::ring : VirtualDevice::By::call;
    if (const uint8_t changed = access_of(handle); (changed & (kReadsDirect | kReadsMapped)) != 0) {
        return (changed & kReadsDirect) != 0 ? read_blocks(handle, offset, bytes, now, by)
                                             : read_mapped(call, handle, offset, bytes, now);
    }
    if ((open_flags(handle) & kOpenDirect) != 0) {
        return storage_.read_direct(storage_.data_bytes(data_of(handle), offset, bytes), now, by);
    }
    const FileId file = file_of(handle);
    call.walk = storage_.reading(data_.of(file), handle, offset, bytes, size_of(file));
    call.done = false;
    return now;
}

/// A write that may make its file longer.
void VirtualCalls::note_size(HandleId handle, int64_t offset, int64_t bytes) {
    const FileId file = file_of(handle);
    const bool existed = file < tables_.files.size() && tables_.files[file].origin == Origin::existed;
    storage_.journal().wrote(data_.of(file), existed ? size_of(file) : 0, offset, bytes);
}

/// `own_flags`: RWF_* of the call.
int64_t VirtualCalls::write(HandleId handle, int64_t offset, int64_t bytes, int64_t own_flags, int64_t now,
                            VirtualDevice::By by) {
    bytes_written += static_cast<uint64_t>(bytes);
    bytes = std::min(bytes, kMostBytes);
    note_size(handle, offset, bytes);
    const int64_t flags = open_flags(handle);
    const bool direct = (flags & kOpenDirect) != 0;
    const int64_t end =
        direct ? storage_.write_direct(bytes, now, by) : storage_.write(data_of(handle), offset, bytes, now);
    if (direct) {
        storage_.holes().fill(data_of(handle), offset, offset > INT64_MAX - bytes ? INT64_MAX : offset + bytes);
    }
    const bool synchronous = (flags & kOpenDsync) != 0 || (own_flags & (kRwfDsync | kRwfSync)) != 0 ||
                             (access_of(handle) & kWritesSync) != 0;
    return synchronous && bytes > 0 ? storage_.sync(data_of(handle), end) : end;
}

int64_t VirtualCalls::start(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    call = {};
    call.done = true;  // unless it is found to walk
    note_unmodelled(b, i);
    const int64_t end = without_steps(call, b, i, now);
    return call.done ? end : go_on(call, now);
}

int64_t VirtualCalls::go_on(VirtualCall& call, int64_t now) {
    if (const std::optional<int64_t> end = next_piece(call, now)) {
        return *end;
    }
    int64_t end = storage_.go_on(call.walk, now);
    if (!call.walk.done) {
        return end;
    }
    if (!call.pieces.empty()) {
        call.at_piece = true;
        return end;
    }
    call.done = true;
    if (call.walk.fetched && call.walk.file < fetched_.size()) {
        fetched_[call.walk.file] = true;
    }
    end = std::max(end, call.least_end);
    if (call.after) {
        end =
            std::max(end, write(call.after->handle, call.after->offset, call.after->bytes, call.after->own_flags, end));
    }
    return end;
}

/// When the call is over, unless it is not `done`: then it walks through pages.
int64_t VirtualCalls::without_steps(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    const StorageModel& m = model_;
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (reads_map(b.map[i])) {
        return on_read_map(call, b, i, now);
    }
    if (kind == OpKind::mmap) {
        return map(call, b, i, now);
    }
    if (kind == OpKind::munmap && b.result[i] >= 0) {
        storage_.unmap(b.map[i]);
    }
    if (kind == OpKind::madvise || kind == OpKind::fadvise || kind == OpKind::readahead) {
        return advise(call, b, i, now);
    }
    if (kind == OpKind::fcntl && b.arg[i] == F_SETFL && b.result[i] >= 0) {
        direct_[b.handle[i]] = b.flags[i] & kOpenDirect;
    }
    const OpInfo& row = info(kind);
    const bool failed = b.result[i] < 0 && b.result[i] > -4096;
    if (!failed) {
        name(b, i, now);
    }
    if (row.is(Trait::async)) {
        return asynchronous(call, b, i, now);
    }
    if (row.is(Trait::reads) || row.is(Trait::writes)) {
        return failed ? now + m.call_ns : data(call, b, i, now);
    }
    if (row.is(Trait::syncs)) {
        return failed ? now + m.call_ns : sync(b, i, now);
    }
    if (!failed && (row.is(Trait::makes_name) || row.is(Trait::ends_name))) {
        storage_.journal().changed_name();
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
        if (makes && !failed) {
            storage_.journal().changed_name();
        }
        const int64_t end = now + (makes && !failed ? m.make_ns : m.open_ns + (failed ? 0 : find_name(b.file[i], now)));
        return !failed && (access_of(b.handle[i]) & kPrefetched) != 0 ? prefetch(b.handle[i], end) : end;
    }
    if (kind == OpKind::touch) {
        return touch(call, b, i, now);
    }
    if (kind == OpKind::close && m.close_ns > 0 && !failed) {
        return now + m.close_ns;
    }
    if (!failed && m.fstat_ns > 0 && was_fetched(b, i)) {
        return now + m.fstat_ns;
    }
    if (kind == OpKind::ioctl && m.ioctl_ns > 0) {
        return now + m.ioctl_ns;
    }
    if (kind == OpKind::flock) {
        return now + std::min(recorded(b, i), m.call_ns);  // its wait is the edge from the release before it
    }
    if (kind == OpKind::getdents && m.list_ns > 0 && !failed) {
        return now + list(b, i);
    }
    if (row.is(Trait::attributes) && m.change_ns > 0) {
        return now + (failed ? m.stat_ns : m.change_ns + find_name(b.file[i], now));
    }
    const bool by_name = b.file[i] != 0 || !row.has(Field::handle);
    if (row.is(Trait::metadata) && row.is(Trait::path) && !row.is(Trait::changes) && by_name) {
        return now + m.stat_ns + (failed ? 0 : find_name(b.file[i], now));
    }
    // What is left is not about storage: memory, descriptors, positions.
    return now + recorded(b, i);
}

/// What it takes longer to find a name for the first time, ns. Names that the recording made are cached.
int64_t VirtualCalls::find_name(FileId file, int64_t now) {
    if (warm_ || file >= named_.size() || named_[file] || tables_.files[file].origin != Origin::existed) {
        return 0;
    }
    named_[file] = true;
    // Measured of files side by side.
    if (const auto scattered = cold_names_ ? cold_names_->look(file) : std::nullopt) {
        const int64_t end = storage_.read_metadata(scattered->count, scattered->needed, scattered->bytes, now);
        scattered_reads += scattered->count;
        return end - now;
    }
    return std::max<int64_t>(model_.open_cold_ns - model_.open_ns, 0);
}

/// How long a listing call takes that returned result bytes.
int64_t VirtualCalls::list(const OpBlock& b, size_t i) {
    constexpr int64_t kNameBytes = 32;  // struct linux_dirent64 with a name of a dozen characters
    const FileId directory = file_of(b.handle[i]);
    int64_t ns = model_.list_ns + std::min(b.result[i], kMostBytes) / kNameBytes * model_.list_name_ns;
    if (!warm_ && directory < listed_.size() && !listed_[directory]) {
        listed_[directory] = true;
        ns += tables_.files[directory].origin == Origin::existed ? model_.list_cold_ns : 0;
    }
    return ns;
}

/// Of a call that asks for attributes: whether something of the file was fetched since the last one.
bool VirtualCalls::was_fetched(const OpBlock& b, size_t i) {
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (kind != OpKind::fstat && kind != OpKind::stat && kind != OpKind::statx) {
        return false;
    }
    const FileId file = data_.of(b.file[i] != 0 ? b.file[i] : file_of(b.handle[i]));
    const bool was = file < fetched_.size() && fetched_[file];
    if (was) {
        fetched_[file] = false;
    }
    return was;
}

int64_t VirtualCalls::sync(const OpBlock& b, size_t i, int64_t now) {
    switch (static_cast<OpKind>(b.kind[i])) {
        case OpKind::syncfs: return storage_.sync_all(now);
        case OpKind::sync_file_range: {
            const int64_t end = storage_.write_out(data_of(b.handle[i]), now);
            return now + model_.call_ns + ((b.flags[i] & kWaits) != 0 ? end - now : 0);
        }
        case OpKind::msync: {
            const auto found = maps_.find(b.map[i]);
            const bool waits = (b.flags[i] & MS_SYNC) != 0 && found != maps_.end();
            return waits ? storage_.sync(data_.of(found->second.file), now) : now + model_.call_ns;
        }
        default: return storage_.sync(data_of(b.handle[i]), now);
    }
}

/// A read, a write or a copy.
int64_t VirtualCalls::data(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    const auto kind = static_cast<OpKind>(b.kind[i]);
    const OpInfo& row = info(kind);
    const int64_t moved = std::max<int64_t>(b.result[i], 0);
    const bool copies = row.is(Trait::reads) && row.is(Trait::writes);
    const auto left_out = [&](HandleId handle) {
        return handle < plan_.handle_flags.size() && (plan_.handle_flags[handle] & kHandleLeftOut) != 0;
    };
    if (copies && !left_out(b.handle[i]) && clones(b, i, moved)) {
        clone(b, i, moved);
        return now + ((b.flags[i] & kCopyClones) != 0 ? recorded(b, i) : model_.call_ns);  // no data moves
    }
    const auto moves = [&](HandleId handle) {
        return !copies || (handle != 0 && is_storage(handle) && !left_out(handle));
    };
    int64_t end = now + model_.call_ns;
    if (row.is(Trait::reads) && moves(b.handle[i])) {
        end = read(call, b.handle[i], b.offset[i], moved, now);
    }
    const HandleId target = copies ? b.handle2[i] : b.handle[i];
    if (row.is(Trait::writes) && moves(target)) {
        // For the device, which needs the data.
        const bool waits = copies && (open_flags(target) & (kOpenDirect | kOpenDsync)) != 0;
        const int64_t own_flags = kind == OpKind::pwritev ? b.flags[i] : 0;
        const int64_t offset = copies ? b.offset2[i] : b.offset[i];
        if (waits && !call.done) {
            call.after = {target, offset, moved, own_flags};
        } else {
            end = std::max(end, write(target, offset, moved, own_flags, waits ? end : now));
        }
    }
    call.least_end = end;
    return end;
}

void VirtualCalls::note_unmodelled(const OpBlock& b, size_t i) {
    const auto kind = static_cast<OpKind>(b.kind[i]);
    if (b.result[i] < 0) {
        return;
    }
    if (kind == OpKind::truncate || kind == OpKind::ftruncate || kind == OpKind::fallocate) {
        note_unmodelled(Unmodelled::sizes);
    } else if (kind == OpKind::getdents && model_.list_ns <= 0) {
        note_unmodelled(Unmodelled::listings);
    } else if (info(kind).is(Trait::attributes) && model_.change_ns <= 0) {
        note_unmodelled(Unmodelled::attributes);
    }
}

/// An op of a request that is not made as one: it is performed where it was submitted.
int64_t VirtualCalls::asynchronous(VirtualCall& call, const OpBlock& b, size_t i, int64_t now) {
    const OpInfo& row = info(static_cast<OpKind>(b.kind[i]));
    if (row.is(Trait::completes)) {
        return now;
    }
    return row.is(Trait::submits) ? perform_request(call, b.handle[i], async_request(b, i), now) : now + model_.call_ns;
}

bool VirtualCalls::waits_in_submit(const OpBlock& b, size_t i) const {
    const AsyncRequest asked = async_request(b, i);
    const bool direct = (open_flags(b.handle[i]) & kOpenDirect) != 0 || (access_of(b.handle[i]) & kReadsDirect) != 0;
    return static_cast<OpKind>(b.kind[i]) == OpKind::aio_submit && (asked.reads() || asked.writes()) && !direct;
}

int64_t VirtualCalls::start_request(VirtualCall& call, HandleId handle, const AsyncRequest& asked, int64_t now) {
    call = {};
    call.done = call.by_ring = true;
    const int64_t end = perform_request(call, handle, asked, now);
    return call.done ? end : go_on(call, now);
}

int64_t VirtualCalls::perform_request(VirtualCall& call, HandleId handle, const AsyncRequest& asked, int64_t now) {
    const int64_t bytes = std::clamp<int64_t>(asked.size, 0, kMostBytes);
    using Does = AsyncRequest::Does;
    switch (asked.does) {
        case Does::read: return read(call, handle, asked.offset, bytes, now);
        case Does::write: return write(handle, asked.offset, bytes, asked.own_flags, now, VirtualDevice::By::ring);
        case Does::sync:
        case Does::sync_data: return storage_.sync(data_of(handle), now);
        case Does::sync_range: return storage_.write_out(data_of(handle), now);
        case Does::allocate:
        case Does::advise:
        case Does::open:
        case Does::stat:
        case Does::make_name:
        case Does::end_name:
        case Does::splice: note_unmodelled(Unmodelled::requests); break;
        case Does::nothing:
        case Does::close:
        case Does::advise_memory:
        case Does::other: break;
    }
    return now + model_.call_ns;
}

}  // namespace reprise
