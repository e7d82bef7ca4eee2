// SPDX-License-Identifier: MIT
// The arguments of a call as strace prints them.
#include <algorithm>
#include <utility>

#include "formats/import/strace/strace_import.h"
#include "formats/oplog/kernel_names.h"

namespace reprise {
namespace {

uint64_t device_number(std::string_view text) {
    // makedev(0x8, 0x1)
    StraceCall call;
    const std::string whole = std::string(text) + " = 0";
    int64_t major = 0, minor = 0;
    bool too_large = false;
    if (!parse_strace_call(whole, call) || !parse_strace_number(call.arg(0), major, too_large) ||
        !parse_strace_number(call.arg(1), minor, too_large)) {
        return 0;
    }
    const auto high = static_cast<uint64_t>(major), low = static_cast<uint64_t>(minor);
    return (high & 0xfffff000) << 32 | (high & 0xfff) << 8 | (low & 0xffffff00) << 12 | (low & 0xff);
}

}  // namespace

// ioctl(4, BTRFS_IOC_CLONE or FICLONE, 3) = 0 and its range form, that worked.
bool StraceImport::is_clone() const {
    return call_.result_kind == StraceCall::Result::value && call_.result == 0 &&
           (call_.arg(1).ends_with("FICLONE") || call_.arg(1).ends_with("FICLONERANGE"));
}

// ioctl(3, TCGETS, 0x7ffd...) = -1 ENOTTY, of no terminal.
bool StraceImport::asks_terminal() const {
    return call_.result_kind == StraceCall::Result::value && call_.result < 0 &&
           (call_.arg(1).ends_with("TCGETS") || call_.arg(1).ends_with("TCGETS2"));
}

void StraceImport::fill_clone(RawCall& raw) {
    if (!is_clone()) {
        raw.kind = OpKind::ioctl;
        raw.arg = call_.arg(1).ends_with("2") ? kAskTerminal2 : kAskTerminal;
        raw.fd = std::exchange(raw.fd2, -1);
        raw.fd_path = std::exchange(raw.fd2_path, {});
        return;
    }
    const std::string_view source = call_.arg(2);
    const bool range = source.starts_with('{');
    const StraceFd fd = parse_strace_fd(range ? strace_field(source, "src_fd") : source);
    raw.fd = fd.fd;
    raw.fd_path = about(fd);
    CloneRange cloned;
    if (range) {
        cloned.offset = number(strace_field(source, "src_offset"));
        cloned.bytes = number(strace_field(source, "src_length"));
        cloned.to = number(strace_field(source, "dest_offset"));
    }
    if (cloned.bytes == 0) {
        cloned.end = assembler_->size_of(raw.pid, fd.fd, raw.tid);
    }
    cloned.fill(raw);
}

void StraceImport::fill_directory(std::string_view text, RawCall& raw, bool second) {
    const StraceFd fd = parse_strace_fd(text);
    const std::string_view name = about(fd);
    const std::string_view directory = name.starts_with('/') ? name : std::string_view{};
    if (fd.at_current_directory && !directory.empty()) {
        std::string& last = directory_[raw.tid];
        if (last != directory) {
            last = directory;
            assembler_->set_directory(raw.pid, directory, raw.tid);
        }
    }
    if (second) {
        raw.fd2 = fd.fd;
        raw.fd2_path = directory;
    } else {
        raw.fd = fd.fd;
        raw.fd_path = fd.at_current_directory ? std::string_view{} : name;
        raw.directory = directory;
    }
}

bool StraceImport::fill_path(std::string_view text, std::string_view& path) {
    if (text == "NULL" || text.empty()) {
        return true;
    }
    bool cut = false;
    const auto found = strings_.quoted(text, &cut);
    if (!found) {
        return false;
    }
    path = *found;
    if (cut) {
        writer_->count(Count::paths_abbreviated);
    }
    return true;
}

bool StraceImport::fill(const Syscall& row, RawCall& raw) {
    const auto offset_behind_pointer = [&](std::string_view text) -> std::optional<int64_t> {
        if (!text.starts_with('[')) {
            return std::nullopt;
        }
        return number(text.substr(1, text.find(']') - 1));
    };
    size_t next = 0;
    for (const char letter : row.strace.empty() ? row.arguments : row.strace) {
        const std::string_view text = call_.arg(next++);
        switch (letter) {
            case 'x': break;
            case 'f':
            case 'r': {
                const StraceFd fd = parse_strace_fd(text);
                raw.fd = fd.fd;
                raw.fd_path = about(fd);
                break;
            }
            case '2':
            case 'n': {
                const StraceFd fd = parse_strace_fd(text);
                raw.fd2 = fd.fd;
                raw.fd2_path = about(fd);
                break;
            }
            case '|': {
                std::string keep;
                const auto pair = descriptors_in(text, keep);
                if (pair.size() != 2) {
                    break;
                }
                raw.fd = pair[0].fd;
                raw.fd2 = pair[1].fd;
                raw.fd_path = strings_.keep(std::string(pair[0].about));
                raw.fd2_path = strings_.keep(std::string(pair[1].about));
                break;
            }
            case 'd': fill_directory(text, raw, false); break;
            case 'D': fill_directory(text, raw, true); break;
            case 'p':
                if (!fill_path(text, raw.path)) {
                    return false;
                }
                break;
            case 'P':
                if (!fill_path(text, raw.path2)) {
                    return false;
                }
                break;
            case 't': raw.text = strings_.quoted(text).value_or(std::string_view{}); break;
            case 'L': raw.link_target = strings_.quoted(text).value_or(std::string_view{}); break;
            case 's': raw.size = number(text); break;
            case 'o': raw.offset = number(text); break;
            case 'O': raw.offset = offset_behind_pointer(text); break;
            case 'Q': raw.offset2 = offset_behind_pointer(text); break;
            case 'F': raw.flags |= flags(text); break;
            case 'm': raw.mode = flags(text); break;
            case 'a': raw.arg += flags(text); break;
            case 'A': raw.address = static_cast<uint64_t>(number(text)); break;
            case 'N': raw.address2 = static_cast<uint64_t>(number(text)); break;
            case 'i': fill_buffers(text, raw, false); break;
            case 'M': fill_buffers(text, raw, true); break;
            case 'V': fill_messages(text, raw); break;
            case 'S': fill_stat(text, row.kind == OpKind::statx, raw); break;
            case 'H':
                raw.flags |= flags(strace_field(text, "flags"));
                raw.mode = flags(strace_field(text, "mode"));
                break;
            default: break;  // what strace does not show, or what act() reads
        }
    }
    return true;
}

void StraceImport::fill_stat(std::string_view text, bool is_statx, RawCall& raw) {
    if (!text.starts_with('{')) {
        return;
    }
    const std::string_view prefix = is_statx ? "stx_" : "st_";
    const auto field = [&](std::string_view key) { return strace_field(text, std::string(prefix) + std::string(key)); };
    if (const auto mode = field("mode"); !mode.empty()) {
        raw.stat_mode = static_cast<uint32_t>(flags(mode));
    }
    if (const auto size = field("size"); !size.empty()) {
        raw.stat_size = static_cast<uint64_t>(std::max<int64_t>(number(size), 0));
    }
    const auto inode = field("ino");
    const auto device = field("dev");
    if (!inode.empty() && !device.empty()) {
        raw.inode = static_cast<uint64_t>(number(inode));
        raw.device = device_number(device);
    }
}

void StraceImport::fill_buffers(std::string_view text, RawCall& raw, bool is_message) {
    list_.clear();
    int64_t sum = 0;
    bool cut = false;
    // A message's control data may hold descriptors but no buffers.
    const std::string_view buffers = is_message ? strace_field(text, "msg_iov") : text;
    each_strace_field(buffers, "iov_len", [&](std::string_view value) {
        list_.push_back(number(value));
        if (__builtin_add_overflow(sum, std::max<int64_t>(list_.back(), 0), &sum)) {
            sum = INT64_MAX;
        }
    });
    cut = buffers.ends_with("...]") || (list_.empty() && raw.result > 0);
    if (cut) {
        writer_->count(Count::buffer_lists_abbreviated);
        list_.clear();
        sum = std::max(sum, raw.result);
    }
    raw.size = sum;
    if (!is_message) {
        raw.list = list_;
    }
}

// sendmmsg, recvmmsg: one op for all messages; its result is the bytes moved, not the number of messages.
void StraceImport::fill_messages(std::string_view text, RawCall& raw) {
    raw.size = 0;
    if (raw.result <= 0) {
        return;
    }
    each_strace_field(text, "msg_len",
                      [&](std::string_view value) { raw.size += std::clamp<int64_t>(number(value), 0, INT32_MAX); });
    raw.result = raw.size;
}

// "[3<pipe:[1]>, 4<pipe:[1]>]"; `keep` holds what the result points into.
std::vector<StraceFd> StraceImport::descriptors_in(std::string_view list, std::string& keep) {
    std::vector<StraceFd> out;
    if (list.size() < 2 || list.front() != '[' || list.back() != ']') {
        return out;
    }
    keep = "x(" + std::string(list.substr(1, list.size() - 2)) + ") = 0";
    StraceCall call;
    if (!parse_strace_call(keep, call)) {
        return out;
    }
    for (size_t i = 0; i < call.count; ++i) {
        out.push_back(parse_strace_fd(call.args[i]));
    }
    return out;
}

}  // namespace reprise
