// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/raw_calls.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace reprise {
namespace {

// Flags have 32 bits; the upper half of the register may hold anything.
int64_t as_int(uint64_t argument) { return static_cast<int32_t>(static_cast<uint32_t>(argument)); }

HandleKind kind_of(const raw_fd& fd) {
    if (fd.info & RAW_FD_EVENTFD) {
        return HandleKind::eventfd;
    }
    if (fd.info & RAW_FD_EPOLL) {
        return HandleKind::epoll;
    }
    if (fd.info & RAW_FD_MEMFD) {
        return HandleKind::memfd;
    }
    if (fd.info & RAW_FD_URING) {
        return HandleKind::other;
    }
    switch (file_type_of_mode(fd.mode)) {
        case FileType::regular:
        case FileType::character:
        case FileType::block:
        case FileType::symlink: return HandleKind::file;  // O_PATH | O_NOFOLLOW opens a link itself
        case FileType::directory: return HandleKind::directory;
        case FileType::fifo: return HandleKind::pipe;
        case FileType::socket: return HandleKind::socket;
        default: return HandleKind::other;  // timers, signals, pidfds...
    }
}

}  // namespace

uint64_t user_device(uint32_t kernel_device) {
    const uint64_t high = kernel_device >> 20, low = kernel_device & 0xfffff;
    return (high & 0xfffff000) << 32 | (high & 0xfff) << 8 | (low & 0xffffff00) << 12 | (low & 0xff);
}

SeenInstance seen_instance(const raw_fd& fd) {
    SeenInstance out;
    out.key = fd.file;
    out.kind = kind_of(fd);
    out.type = file_type_of_mode(fd.mode);
    out.device = user_device(fd.device);
    out.inode = fd.inode;
    out.generation = fd.generation;
    out.peer = fd.info & RAW_FD_CACHED ? 0 : fd.peer_or_pages;
    out.flags = fd.flags;
    return out;
}

const raw_part* RawCallFiller::part(raw_part_type type, uint16_t which) const {
    for (const raw_part* each : parts_) {
        if (each->type == type && each->which == which) {
            return each;
        }
    }
    return nullptr;
}

const raw_fd* RawCallFiller::fd_of(uint16_t which) const {
    const raw_part* found = part(RAW_PART_FD, which);
    return found ? static_cast<const raw_fd*>(raw_part_data(*found)) : nullptr;
}

std::span<const raw_s64> RawCallFiller::values_of(uint16_t which) const {
    const raw_part* found = part(RAW_PART_VALUES, which);
    return found ? raw_part_numbers(*found) : std::span<const raw_s64>{};
}

std::span<const raw_s64> RawCallFiller::list_of(uint16_t which) const {
    const raw_part* found = part(RAW_PART_LIST, which);
    return found ? raw_part_numbers(*found) : std::span<const raw_s64>{};
}

std::string_view RawCallFiller::string_of(uint16_t which) const {
    const raw_part* found = part(RAW_PART_STRING, which);
    return found ? raw_part_text(*found) : std::string_view{};
}

const SeenInstance* RawCallFiller::seen(uint16_t which) {
    const raw_fd* fd = fd_of(which);
    if (!fd || used_ == instances_.size()) {
        return nullptr;
    }
    instances_[used_] = seen_instance(*fd);
    return &instances_[used_++];
}

void RawCallFiller::fill_argument(const raw_call& record, char letter, uint16_t which, RawCall& out, bool& readable) {
    const uint64_t value = record.args[which];
    const auto path = [&](std::string_view& into) {
        if (const raw_part* found = part(RAW_PART_PATH, which)) {
            into = raw_part_text(*found);
        } else if (value != 0) {
            readable = false;
        }
    };
    const auto after_call = [&]() -> std::optional<int64_t> {
        const auto values = values_of(which);
        if (values.empty()) {
            return std::nullopt;
        }
        // The kernel has advanced it by the bytes copied.
        return values[0] - std::max<int64_t>(record.result, 0);
    };
    switch (letter) {
        case 'x': break;
        case 'f':
        case 'd':
            out.fd = static_cast<int32_t>(value);
            out.seen = seen(which);
            break;
        case '2':
        case 'D':
            out.fd2 = static_cast<int32_t>(value);
            out.seen2 = seen(which);
            break;
        case 'n': out.fd2 = static_cast<int32_t>(value); break;
        case 'r': out.fd = static_cast<int32_t>(value); break;
        case 'p': path(out.path); break;
        case 'P': path(out.path2); break;
        case 't': out.text = string_of(which); break;
        case 'L': out.link_target = string_of(which); break;
        case 's': out.size = static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)); break;
        case 'o': out.offset = static_cast<int64_t>(value); break;
        case 'O': out.offset = after_call(); break;
        case 'Q': out.offset2 = after_call(); break;
        case 'F':
        case 'C': out.flags |= as_int(value) & 0xffffffff; break;
        case 'm': out.mode = as_int(value) & 0xffffffff; break;
        case 'a': out.arg += as_int(value); break;
        case 'A': out.address = value; break;
        case 'N': out.address2 = value; break;
        case 'B': out.address = value; break;
        case 'i':
        case 'M':
            if (const raw_part* found = part(RAW_PART_LIST, which)) {
                int64_t sum = 0;
                const auto list = raw_part_numbers(*found);
                for (const raw_s64 size : list) {
                    if (__builtin_add_overflow(sum, std::max<int64_t>(size, 0), &sum)) {
                        sum = INT64_MAX;
                    }
                }
                out.size = std::max(sum, letter == 'M' || list.empty() ? record.result : 0);
                if (letter == 'i') {
                    out.list = {list.data(), list.size()};
                }
            } else {
                out.size = std::max<int64_t>(record.result, 0);
            }
            break;
        case 'V':
            // One op for all messages: its size is the bytes moved.
            out.size = 0;
            if (const raw_part* found = part(RAW_PART_LIST, which); found && record.result > 0) {
                for (const raw_s64 bytes : raw_part_numbers(*found)) {
                    out.size += std::clamp<int64_t>(bytes, 0, INT32_MAX);
                }
                out.result = out.size;
            }
            break;
        case 'S':
            if (const raw_part* found = part(RAW_PART_STAT, which)) {
                const auto* stat = static_cast<const raw_stat*>(raw_part_data(*found));
                out.stat_size = stat->size;
                out.stat_mode = stat->mode;
            }
            break;
        case 'G': fill_clone(record, which, out); break;
        case 'H':
            if (const auto how = values_of(which); how.size() >= 2) {
                out.flags |= how[0];
                out.mode = how[1];
            }
            break;
        default: break;
    }
}

bool RawCallFiller::fill(const raw_call& record, const Syscall& row, int64_t origin, RawCall& out) {
    parts_.clear();
    used_ = 0;
    for (const raw_part& each : RawParts(record.head)) {
        parts_.push_back(&each);
    }
    out = {};
    out.pid = static_cast<int32_t>(record.head.pid);
    out.tid = static_cast<int32_t>(record.head.tid);
    out.kind = row.kind;
    out.begin = static_cast<int64_t>(record.enter) - origin;
    out.duration = record.head.time > record.enter ? static_cast<int64_t>(record.head.time - record.enter) : 0;
    out.result = record.result;
    out.flags = row.flags;
    out.arg = row.arg;
    bool readable = true;
    for (size_t i = 0; i < row.arguments.size(); ++i) {
        fill_argument(record, row.arguments[i], static_cast<uint16_t>(i), out, readable);
    }

    fill_made(record, row, out);
    if (row.nr == SYS_unlinkat && out.flags & AT_REMOVEDIR) {
        out.kind = OpKind::rmdir;
    }
    if (row.nr == SYS_vmsplice) {
        out.flags = 0;  // its flags are not those of a writev
    } else {
        out.position = position_of(record, out);
    }
    if (row.nr == SYS_creat) {
        out.fd = -1;
    }
    if (row.nr == SYS_ioctl && asks_terminal(static_cast<uint32_t>(record.args[1]))) {
        out.kind = OpKind::ioctl;
        out.arg = static_cast<uint32_t>(record.args[1]);
        out.fd = std::exchange(out.fd2, -1);
        out.seen = std::exchange(out.seen2, nullptr);
    }
    return readable;
}

// ioctl(FICLONE), ioctl(FICLONERANGE): a copy that gives both offsets, whose result is the bytes.
void RawCallFiller::fill_clone(const raw_call& record, uint16_t which, RawCall& out) {
    const raw_fd* source = fd_of(which);
    out.fd = source ? source->fd : -1;
    out.seen = seen(which);
    CloneRange range{.end = source ? static_cast<int64_t>(source->size) : 0};
    if (const auto values = values_of(which); values.size() >= 4) {
        range.offset = values[1], range.bytes = values[2], range.to = values[3];
    }
    if (record.result == 0) {
        range.fill(out);
    }
}

// What the call made, and attributes of files that the recorder took from their inodes.
void RawCallFiller::fill_made(const raw_call& record, const Syscall& row, RawCall& out) {
    const raw_fd* made = fd_of(RAW_WHICH_RESULT);
    if (made) {
        out.made = seen(RAW_WHICH_RESULT);
    }
    if (fd_of(RAW_WHICH_RESULT2)) {
        out.made2 = seen(RAW_WHICH_RESULT2);
    }
    if (row.kind == OpKind::open && made && record.result >= 0) {
        out.created = (made->info & RAW_FD_CREATED) != 0;
        if (file_type_of_mode(made->mode) == FileType::regular) {
            out.stat_size = made->size;
        }
        out.stat_mode = made->mode;
    }
    if (row.nr == SYS_fstat && record.result >= 0) {
        // The result equals the recorded inode.
        if (const raw_fd* fd = fd_of(0); fd && fd->file && !out.stat_mode) {
            if (file_type_of_mode(fd->mode) == FileType::regular) {
                out.stat_size = fd->size;
            }
            out.stat_mode = fd->mode;
        }
    }
}

// Where a call at the position found it: from the position that it left behind.
std::optional<int64_t> RawCallFiller::position_of(const raw_call& record, const RawCall& call) const {
    const bool by_offset = call.kind == OpKind::preadv || call.kind == OpKind::pwritev;
    const bool at_position = call.kind == OpKind::read || call.kind == OpKind::write || call.kind == OpKind::readv ||
                             call.kind == OpKind::writev || (by_offset && call.offset == -1);
    const raw_fd* fd = at_position ? fd_of(0) : nullptr;
    if (!fd || !fd->file) {
        return std::nullopt;
    }
    const FileType type = file_type_of_mode(fd->mode);
    if (type != FileType::regular && type != FileType::block && type != FileType::directory) {
        return std::nullopt;
    }
    return fd->position - std::max<int64_t>(record.result, 0);
}

}  // namespace reprise
