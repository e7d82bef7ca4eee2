// SPDX-License-Identifier: MIT
// Data: where each read and write lands, messages, copies inside the kernel, and mapped memory.
#include <algorithm>

#include "formats/assemble/assembler_impl.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/syscall_numbers.h"
#include "formats/support/bytes.h"

namespace reprise {
namespace {

constexpr int64_t kAppend = 02000;
constexpr int64_t kMapAnonymous = 0x20;
constexpr int64_t kProtWrite = 2;

constexpr uint64_t kPage = 4096;

int64_t plus(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return b < 0 ? INT64_MIN : INT64_MAX;
    }
    return sum;
}

}  // namespace

void CloneRange::fill(RawCall& call) const {
    call.kind = OpKind::copy_file_range;
    call.offset = offset;
    call.offset2 = to;
    call.size = call.result = bytes != 0 ? std::max<int64_t>(bytes, 0) : std::max<int64_t>(plus(end, -offset), 0);
    call.flags = kCopyClones;
}

bool lock_memory(int nr, RawCall& call, bool& locks_all) {
    constexpr int64_t kOnFault2 = 1;                        // MLOCK_ONFAULT
    constexpr int64_t kNow = 1, kFuture = 2, kOnFault = 4;  // MCL_*
    const int64_t flags = call.flags;
    call.flags = 0;
    if (call.result < 0) {
        return false;
    }
    if (nr == SYS_munlockall || nr == SYS_mlockall) {
        locks_all = nr == SYS_mlockall && (flags & kFuture) != 0 && (flags & kOnFault) == 0;
        call.address = 0;
        call.size = INT64_MAX;
        return nr == SYS_mlockall && (flags & kNow) != 0 && (flags & kOnFault) == 0;
    }
    call.size = plus(call.size, static_cast<int64_t>(call.address % kPage));
    call.address -= call.address % kPage;
    return nr == SYS_mlock || (flags & kOnFault2) == 0;
}

// Offset of a call on a file: as given, else the instance's position.
int64_t Assembler::Impl::place(Instance& instance, const std::optional<int64_t>& given, bool appends,
                               bool& at_unknown_end) {
    at_unknown_end = false;
    if (given) {
        return *given;
    }
    ++offsets_followed;
    if (appends && instance.file) {
        if (const auto end = files.end_of(*instance.file)) {
            return *end;
        }
        at_unknown_end = true;
        count(Count::append_offsets_unknown);
        return static_cast<int64_t>(std::min<uint64_t>(instance.file->appended, INT64_MAX));
    }
    offsets_from_unknown_position += !instance.position_known;
    return instance.position;
}

// Bytes through a pipe, socket or eventfd; `offset` becomes the bytes before them.
void Assembler::Impl::pass(Instance& instance, bool reads, int64_t result, int64_t& offset) {
    Channel& channel = reads ? *instance.channel : instance.sends_to();
    int64_t& total = reads ? channel.received : channel.sent;
    offset = total;
    total = plus(total, std::max<int64_t>(result, 0));
    CallEffect::Moved& moved = reads ? effect.received : effect.sent;
    moved = {channel.id, offset, total, instance.kind != HandleKind::eventfd};
}

void Assembler::Impl::moved_data(Instance& instance, int64_t offset, int64_t asked, int64_t result, bool reads,
                                 bool at_unknown_end, bool certain) {
    if (!instance.file || result < 0) {
        return;
    }
    if (reads) {
        files.did_read(*instance.file, offset, asked, result, certain);
    } else {
        files.did_write(*instance.file, offset, result, at_unknown_end);
    }
}

void Assembler::Impl::data(Task& task, const RawCall& raw, Op& op, bool explicit_offset) {
    const OpInfo& row = info(raw.kind);
    const bool reads = row.is(Trait::reads);
    const auto evidence = explicit_offset || raw.offset ? Evidence::file : Evidence::none;
    const auto instance = for_call(*task.process, raw, raw.fd, raw.fd_path, evidence, raw.seen);
    if (!instance) {
        return;
    }
    if (!raw.result_known) {
        op.result = raw.size;
        count(Count::results_assumed);
    }
    op.handle = instance->id;
    if (!instance->is_file()) {
        op.kind = reads ? OpKind::receive : OpKind::send;
        if (!reads) {
            op.duration -= raw.preempted;
        }
        pass(*instance, reads, op.result, op.offset);
        return add(task, op);
    }
    bool at_unknown_end = false;
    const bool certain = raw.offset || raw.position || instance->position_known;
    // preadv2 with offset -1 is readv with flags.
    const bool vectored = raw.kind == OpKind::preadv || raw.kind == OpKind::pwritev;
    const bool at_position = !explicit_offset || (vectored && raw.offset && *raw.offset == -1);
    if (explicit_offset && at_position) {
        op.kind = raw.kind == OpKind::preadv ? OpKind::readv : OpKind::writev;
    }
    const auto given = !at_position      ? raw.offset
                       : raw.position    ? raw.position
                       : explicit_offset ? std::nullopt
                                         : raw.offset;
    const bool appends = !reads && goes_to_end(op.kind, raw.flags, (instance->flags & kAppend) != 0);
    op.offset = place(*instance, given, appends, at_unknown_end);
    if (at_position && op.result >= 0) {
        instance->position = plus(op.offset, op.result);
        instance->position_known |= raw.position || (raw.offset && !explicit_offset);
    }
    // With O_APPEND, Linux writes at the end whatever the offset; the log keeps the call as it was made.
    const bool elsewhere = appends && !at_position;
    const int64_t at = elsewhere ? place(*instance, std::nullopt, appends, at_unknown_end) : op.offset;
    moved_data(*instance, at, raw.size, op.result, reads, at_unknown_end, certain);
    add(task, op);
}

void Assembler::Impl::message(Task& task, const RawCall& raw, Op& op) {
    const auto instance = for_call(*task.process, raw, raw.fd, raw.fd_path, Evidence::none, raw.seen);
    if (!instance) {
        return;
    }
    op.handle = instance->id;
    // A look at what has come takes nothing away.
    constexpr int64_t kPeek = 2;  // MSG_PEEK
    const bool receives = raw.kind == OpKind::receive;
    if (!receives) {
        op.duration -= raw.preempted;
    }
    pass(*instance, receives, receives && raw.flags & kPeek ? 0 : op.result, op.offset);
    add(task, op);
}

void Assembler::Impl::copy(Task& task, const RawCall& raw, Op& op) {
    const auto from = for_call(*task.process, raw, raw.fd, raw.fd_path, Evidence::none, raw.seen);
    const auto to = from ? for_call(*task.process, raw, raw.fd2, raw.fd2_path, Evidence::none, raw.seen2) : nullptr;
    if (!from || !to) {
        return;
    }
    op.handle = from->id;
    op.handle2 = to->id;
    op.fd2 = raw.fd2;
    const int64_t moved = std::max<int64_t>(op.result, 0);
    const auto side = [&](Instance& instance, const std::optional<int64_t>& given, bool reads) {
        if (!instance.is_file()) {
            int64_t before = 0;
            pass(instance, reads, moved, before);
            return before;
        }
        bool at_unknown_end = false;
        const bool certain = given || instance.position_known;
        const bool appends = !reads && (instance.flags & kAppend) != 0;
        const int64_t offset = place(instance, given, appends, at_unknown_end);
        if (!given) {
            instance.position = plus(offset, moved);
        }
        moved_data(instance, offset, moved, op.result, reads, at_unknown_end, certain);
        return offset;
    };
    op.offset = side(*from, raw.offset, true);
    op.offset2 = side(*to, raw.offset2, false);
    op.flags |= (raw.offset ? kCopyFromOffset : 0) | (raw.offset2 ? kCopyToOffset : 0);
    add(task, op);
}

void Assembler::Impl::lseek(Task& task, const RawCall& raw, Op& op) {
    const auto instance = for_call(*task.process, raw, raw.fd, raw.fd_path, Evidence::file, raw.seen);
    if (!instance) {
        return;
    }
    op.handle = instance->id;
    if (raw.result >= 0 && raw.result_known) {
        instance->position = raw.result;
        instance->position_known = true;
        constexpr int64_t kSeekEnd = 2;
        if (raw.arg == kSeekEnd && instance->file && raw.offset && raw.result >= *raw.offset &&
            instance->kind == HandleKind::file) {
            files.saw_attributes(*instance->file, static_cast<uint64_t>(wrapping_sub(raw.result, *raw.offset)),
                                 std::nullopt, false);
        }
    } else if (raw.result >= 0) {
        // The result is not known: it follows from the request, but for SEEK_END.
        if (raw.arg == 0) {
            instance->position = raw.offset.value_or(0), instance->position_known = true;
        }
        if (raw.arg == 1) {
            instance->position = plus(instance->position, raw.offset.value_or(0));
        }
        if (raw.arg == 2 && instance->file) {
            const auto end = files.end_of(*instance->file);
            instance->position = plus(end.value_or(static_cast<int64_t>(instance->file->size)), raw.offset.value_or(0));
            instance->position_known = end.has_value();
        }
        op.result = instance->position;
    }
    add(task, op);
}

void Assembler::Impl::on_descriptor(Task& task, const RawCall& raw, Op& op, Evidence evidence) {
    if (raw.fd < 0) {
        return add(task, op);  // sync; completions
    }
    if (raw.kind == OpKind::fstat && raw.stat_mode) {
        const uint32_t type = *raw.stat_mode & 0170000;
        if (type == 0100000) {
            evidence = Evidence::file;
        }
        if (type == 0040000) {
            evidence = Evidence::directory;
        }
    }
    const auto instance = for_call(*task.process, raw, raw.fd, raw.fd_path, evidence, raw.seen);
    if (!instance) {
        return;
    }
    if (raw.kind == OpKind::ioctl && instance->kind != HandleKind::file && instance->kind != HandleKind::directory) {
        return;  // no question to a file system
    }
    op.handle = instance->id;
    if (raw.kind == OpKind::fstat && raw.stat_mode && instance->kind == HandleKind::other) {
        const uint32_t type = *raw.stat_mode & 0170000;
        if (type == 0010000) {
            instance->kind = HandleKind::pipe;
        }
        if (type == 0140000) {
            instance->kind = HandleKind::socket;
        }
        instance->kind_certain = true;  // character devices stay "other"
        update_row(*instance);
    }
    constexpr int64_t kNotDirectory = -20;  // ENOTDIR
    if (FileState* file = instance->file;
        file && raw.kind == OpKind::getdents && raw.result == kNotDirectory && file->type == FileType::unknown) {
        file->type = FileType::regular;
    }
    if (FileState* file = instance->file; file && raw.result >= 0) {
        note_attributes(*file, raw, false);
        if (raw.kind == OpKind::getdents && file->type != FileType::directory) {
            file->type = FileType::directory;
        }
        const bool directory = file->type == FileType::directory && instance->kind == HandleKind::file &&
                               (instance->flags & 020000000) == 0;
        if (directory) {
            instance->kind = HandleKind::directory;
            update_row(*instance);
        }
        if (raw.kind == OpKind::ftruncate) {
            files.did_truncate(*file, raw.size);
        }
        if (raw.kind == OpKind::fallocate) {
            file->changed = file->written = true;
        }
        if (raw.kind == OpKind::fsync || raw.kind == OpKind::fdatasync) {
            file->synced = true;
        }
    }
    add(task, op);
}

void Assembler::Impl::mmap(Task& task, const RawCall& raw, Op& op) {
    AddressMap& memory = *task.process->memory;
    const auto size = static_cast<uint64_t>(std::max<int64_t>(raw.size, 0));
    const bool of_a_file = raw.fd >= 0 || (raw.seen && raw.seen->key);
    if (!of_a_file || raw.flags & kMapAnonymous) {
        if (raw.result >= 0) {
            memory.remove(raw.address, size);
        }
        return;
    }
    const auto instance = for_call(*task.process, raw, raw.fd, raw.fd_path, Evidence::file, raw.seen);
    if (!instance) {
        return;
    }
    op.handle = instance->id;
    if (raw.result >= 0) {
        op.result = 0;  // an address means nothing elsewhere
        op.map = ++maps;
        memory.add(raw.address, size, op.map);
        origins.resize(maps + 1);
        origins[maps] = {instance->device, instance->inode, op.offset};
        if (instance->file) {
            files.did_map(*instance->file, op.offset, raw.size);
            const bool shared = (raw.flags & 3) == 1 || (raw.flags & 3) == 3;  // MAP_SHARED, MAP_SHARED_VALIDATE
            if (shared && raw.mode & kProtWrite) {
                instance->file->written = true;
                constexpr std::string_view kMemory = "/dev/shm/";
                origins[maps].writes_file = !files.path_of(*instance->file).starts_with(kMemory);
            }
        }
    }
    add(task, op);
}

void Assembler::Impl::on_memory(Task& task, const RawCall& raw, Op& op) {
    AddressMap& memory = *task.process->memory;
    const auto size = static_cast<uint64_t>(std::max<int64_t>(raw.size, 0));
    const bool ends = raw.kind == OpKind::munmap && raw.result >= 0;
    for (const AddressMap::Piece& piece : ends ? memory.remove(raw.address, size) : memory.find(raw.address, size)) {
        op.map = piece.map;
        op.offset = piece.offset;
        op.size = piece.size;
        add(task, op);
        op.begin += op.duration;  // the first one carries the time
        op.duration = 0;
    }
}

void Assembler::Impl::mremap(Task& task, const RawCall& raw, Op& op) {
    AddressMap& memory = *task.process->memory;
    const auto old_size = static_cast<uint64_t>(std::max<int64_t>(raw.arg, 0));
    const auto new_size = static_cast<uint64_t>(std::max<int64_t>(raw.size, 0));
    AddressMap::Piece piece;
    if (raw.result < 0) {
        const auto pieces = memory.find(raw.address, std::max<uint64_t>(old_size, 1));
        if (pieces.empty()) {
            return;
        }
        piece = pieces.front();
    } else {
        constexpr int64_t kDontUnmap = 4;  // MREMAP_DONTUNMAP
        const bool stays = raw.flags & kDontUnmap;
        if (!memory.move(raw.address, old_size, raw.address2, new_size, stays, piece)) {
            return;
        }
        op.result = 0;
    }
    op.map = piece.map;
    op.offset = piece.offset;
    add(task, op);
}

}  // namespace reprise
