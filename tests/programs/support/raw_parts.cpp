// SPDX-License-Identifier: MIT
#include "tests/programs/support/raw_parts.h"

#include <linux/io_uring.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "formats/oplog/async_request.h"

namespace reprise::test {
namespace {

constexpr size_t kMostBytes = 4096, kMostBuffers = 1024;
constexpr uint64_t kAnonymous = 0x20;

const raw_fd& fd_of(const raw_part& part) { return *static_cast<const raw_fd*>(raw_part_data(part)); }

std::string which_text(unsigned which) {
    if (which == RAW_WHICH_RESULT || which == RAW_WHICH_RESULT2) {
        return which == RAW_WHICH_RESULT ? "=" : "=2";
    }
    if (which >= RAW_WHICH_SENT) {
        return "sent" + std::to_string(which - RAW_WHICH_SENT);
    }
    return which < RAW_WHICH_RECEIVED ? std::to_string(which) : "received" + std::to_string(which - RAW_WHICH_RECEIVED);
}

std::string joined(const std::vector<int64_t>& numbers, char between) {
    std::string out;
    for (const int64_t number : numbers) {
        out += (out.empty() ? "" : std::string(1, between)) + std::to_string(number);
    }
    return out;
}

std::string fd_line(const raw_fd& fd) {
    if (fd.file == 0) {
        return std::to_string(fd.fd) + "none";
    }
    // How much of a file is in the page cache is not the program's to say.
    const bool cached = fd.info & RAW_FD_CACHED;
    return joined({fd.fd, static_cast<int64_t>(fd.inode), static_cast<int64_t>(fd.size), fd.position, fd.flags, fd.mode,
                   fd.info & ~(RAW_FD_CACHED | RAW_FD_TMPFS), cached ? 0 : static_cast<int64_t>(fd.peer_or_pages)},
                  '/');
}

// Whether its length is that of a text or list; else it is one thing.
bool counts(const raw_part& part) {
    return part.type == RAW_PART_PATH || part.type == RAW_PART_STRING || part.type == RAW_PART_LIST ||
           part.type == RAW_PART_VALUES;
}

bool fits(const WantedPart& want, const raw_part& part) {
    if (part.type != want.type || part.which != want.which || (want.length && part.length != *want.length) ||
        (!counts(part) && part.length != 1)) {
        return false;
    }
    return !want.fd || fd_of(part).fd == *want.fd;
}

// Compares one by one; `follows` says whether a part may stand behind those that are wanted.
template <class Follows>
std::string compare(const raw_head& head, const std::vector<WantedPart>& wanted, const Follows& follows) {
    size_t next = 0;
    for (const raw_part& part : RawParts(head)) {
        while (next < wanted.size() && wanted[next].optional && !fits(wanted[next], part)) {
            ++next;
        }
        if (next < wanted.size() && fits(wanted[next], part)) {
            ++next;
        } else if (next < wanted.size() || !follows(part)) {
            return "a part that does not belong here: " + raw_part_line(part);
        }
    }
    for (; next < wanted.size(); ++next) {
        if (!wanted[next].optional) {
            return "a part is missing: type " + std::to_string(wanted[next].type) + " of " +
                   which_text(wanted[next].which);
        }
    }
    return {};
}

}  // namespace

std::string raw_part_line(const raw_part& part) {
    static const char* const kNames[] = {"?", "fd", "path", "string", "list", "stat", "values", "iocb", "event"};
    const void* data = raw_part_data(part);
    std::string name = kNames[part.type] + which_text(part.which) + "=";
    if (!counts(part) && part.length != 1) {
        name += "length:" + std::to_string(part.length) + ",";
    }
    switch (part.type) {
        case RAW_PART_FD: return name + fd_line(fd_of(part));
        case RAW_PART_PATH:
        case RAW_PART_STRING: return name + std::string(raw_part_text(part));
        case RAW_PART_LIST:
        case RAW_PART_VALUES: {
            const auto numbers = raw_part_numbers(part);
            return name + joined({numbers.begin(), numbers.end()}, ',');
        }
        case RAW_PART_STAT: {
            const auto& stat = *static_cast<const raw_stat*>(data);
            return name + joined({static_cast<int64_t>(stat.inode), static_cast<int64_t>(stat.device),
                                  static_cast<int64_t>(stat.size), stat.mode, stat.links},
                                 '/');
        }
        case RAW_PART_IOCB: {
            const auto& block = *static_cast<const raw_iocb*>(data);
            return name + joined({block.opcode, block.fd, block.offset, static_cast<int64_t>(block.length),
                                  block.rw_flags, static_cast<int64_t>(block.data)},
                                 '/');
        }
        default: {
            const auto& event = *static_cast<const raw_aio_event*>(data);
            return name + joined({event.result, static_cast<int64_t>(event.data)}, '/');
        }
    }
}

PartsOfCall::PartsOfCall(const raw_call& call) : call_(call), row_(*find_syscall(call.nr)) {
    const bool anonymous = row_.action == CallAction::mmap && call.args[3] & kAnonymous;
    if (call.head.flags & RAW_FLAG_UNFINISHED || anonymous) {
        return;
    }
    if (row_.makes_descriptor) {
        descriptor(RAW_WHICH_RESULT, call.result);
    }
    for (const char* letters : {"f2dD", "pP", "t", "GLiMVSOQcH|KEI"}) {
        for (size_t i = 0; i < row_.arguments.size(); ++i) {
            if (std::strchr(letters, row_.arguments[i])) {
                argument(row_.arguments[i], static_cast<uint16_t>(i));
            }
        }
    }
}

// Where the number is none, some ways of recording leave the part out.
void PartsOfCall::descriptor(uint16_t which, int64_t number) {
    const auto fd = static_cast<int32_t>(number);
    wanted_.push_back({RAW_PART_FD, which, 1, fd, fd < 0});
}

void PartsOfCall::some(bool there, WantedPart part) {
    if (there) {
        wanted_.push_back(part);
    }
}

void PartsOfCall::argument(char letter, uint16_t i) {
    const uint64_t value = call_.args[i];
    const auto result = static_cast<size_t>(std::max<int64_t>(call_.result, 0));
    switch (letter) {
        case 'f':
        case '2':
        case 'd':
        case 'D': return descriptor(i, static_cast<int32_t>(value));
        case 'p':
        case 'P': return some(value, {RAW_PART_PATH, i});
        case 't': return some(value, {RAW_PART_STRING, i});
        case 'L': return some(result, {RAW_PART_STRING, i, std::min(result, kMostBytes)});
        case 'i': {
            const size_t buffers = std::min<size_t>(call_.args[i + 1], kMostBuffers);
            some(value && call_.args[i + 1], {RAW_PART_LIST, i, buffers});
            // With O_DIRECT where they are, too.
            return wanted_.push_back({RAW_PART_VALUES, i, buffers, {}, true});
        }
        case 'M': return wanted_.push_back({RAW_PART_LIST, i, {}, {}, true});
        case 'V': return some(result, {RAW_PART_LIST, i, result});
        case 'S': return some(row_.kind != OpKind::fstat && call_.result == 0, {RAW_PART_STAT, i, 1});
        case 'O':
        case 'Q':
        case 'c': return some(value, {RAW_PART_VALUES, i, 1});
        case 'G': {
            constexpr uint64_t kRange = 0x4020940d;  // FICLONERANGE
            const bool range = (call_.args[1] & UINT32_MAX) == kRange;
            some(range, {RAW_PART_VALUES, i, 4});
            return range ? wanted_.push_back({RAW_PART_FD, i, 1}) : descriptor(i, static_cast<int32_t>(value));
        }
        case 'H': return some(value, {RAW_PART_VALUES, i, 3});
        case 'I': return some(value && call_.result == 0, {RAW_PART_VALUES, i, 3});
        case '|':
            some(call_.result == 0, {RAW_PART_FD, RAW_WHICH_RESULT, 1});
            return some(call_.result == 0, {RAW_PART_FD, RAW_WHICH_RESULT2, 1});
        case 'E':
            for (size_t n = 0; n < result; ++n) {
                wanted_.push_back({RAW_PART_EVENT, i, 1});
            }
            return;
        default: return;  // K: what follows
    }
}

// Descriptors that messages carry; the control blocks of requests.
bool PartsOfCall::may_follow(const raw_part& part, size_t descriptors) const {
    if (row_.action == CallAction::aio_submit) {
        const bool one = part.type == RAW_PART_IOCB || part.type == RAW_PART_FD;
        return part.which == 2 && (one ? part.length == 1 : part.type == RAW_PART_LIST);
    }
    if (row_.action == CallAction::wait_child) {  // inside a PID namespace: who ended
        return part.type == RAW_PART_VALUES && part.which == RAW_WHICH_RESULT && part.length == 1;
    }
    if (row_.arguments.find_first_of("MV") == std::string_view::npos || part.type != RAW_PART_FD) {
        return false;
    }
    const size_t first = row_.kind == OpKind::receive ? RAW_WHICH_RECEIVED : RAW_WHICH_SENT;
    return part.which == first + descriptors && part.length == 1;
}

// A call that succeeded had its descriptors; names may be absolute, and then their directory may be none.
std::string PartsOfCall::wrong_file(const raw_part& part) const {
    if (part.type != RAW_PART_FD) {
        return {};
    }
    const raw_fd& fd = fd_of(part);
    const bool used = part.which >= 6 || row_.arguments[part.which] == 'f' || row_.arguments[part.which] == '2';
    if (fd.file == 0 && fd.fd >= 0 && done() && used) {
        return "an open file is missing: " + raw_part_line(part);
    }
    if (fd.file != 0 && (fd.fd < 0 || fd.inode == 0)) {
        return "no open file: " + raw_part_line(part);
    }
    const bool made = part.which == RAW_WHICH_RESULT && done();
    const bool regular = S_ISREG(fd.mode);
    if ((fd.info & RAW_FD_CACHED) && !(made && regular)) {
        return "pages of what is no file just opened: " + raw_part_line(part);
    }
    constexpr uint32_t kKinds = RAW_FD_EVENTFD | RAW_FD_EPOLL | RAW_FD_URING | RAW_FD_MEMFD;
    const uint32_t kind = fd.info & kKinds;
    const uint32_t want = row_.action == CallAction::make_epoll                                 ? RAW_FD_EPOLL
                          : row_.action == CallAction::pipe && row_.arg == kEventFd             ? RAW_FD_EVENTFD
                          : row_.action == CallAction::pipe && row_.arg == kMemFd               ? RAW_FD_MEMFD
                          : row_.nr == SYS_io_uring_setup                                       ? RAW_FD_URING
                          : row_.makes_op && row_.kind == OpKind::open && row_.makes_descriptor ? 0
                                                                                                : kind;
    if (made && kind != want) {
        return "another kind of file: " + raw_part_line(part);
    }
    return kind & (kind - 1) ? "two kinds of file at once: " + raw_part_line(part) : "";
}

std::string PartsOfCall::differs() const {
    constexpr uint32_t kIncomplete = RAW_FLAG_UNREADABLE | RAW_FLAG_TRUNCATED;
    if (call_.head.flags & kIncomplete) {
        return done() ? "what the call could read is not recorded whole" : "";
    }
    size_t descriptors = 0, blocks = 0;
    for (const raw_part& part : RawParts(call_.head)) {
        blocks += part.type == RAW_PART_IOCB ? 1 : 0;
        if (const std::string wrong = wrong_file(part); !wrong.empty()) {
            return wrong;
        }
    }
    if (row_.action == CallAction::aio_submit && static_cast<int64_t>(blocks) != std::max<int64_t>(call_.result, 0)) {
        return "not the requests that were submitted";
    }
    return compare(call_.head, wanted_, [&](const raw_part& part) { return may_follow(part, descriptors++); });
}

std::string wrong_parts(const raw_uring& record, const raw_uring* asked) {
    std::vector<WantedPart> wanted;
    const auto add = [&](uint16_t type, uint16_t which, std::optional<size_t> length = {},
                         std::optional<int64_t> fd = {}) {
        wanted.push_back({type, which, length, fd});
    };
    const uint16_t code = record.opcode;
    bool tells = false;  // what the file is; else a record before did
    for (const raw_part& part : RawParts(record.head)) {
        tells = tells || (part.type == RAW_PART_FD && part.which == 0);
    }
    if (asked) {
        if (tells) {
            add(RAW_PART_FD, 0, 1, -1);
        }
        if (record.result >= 0 && (code == IORING_OP_OPENAT || code == IORING_OP_OPENAT2)) {
            add(RAW_PART_FD, RAW_WHICH_RESULT, 1, asked->result ? -1 : record.result);
        }
        if (record.result == 0 && code == IORING_OP_STATX) {
            add(RAW_PART_STAT, 4, 1);
        }
        for (const raw_part& part : RawParts(record.head)) {
            if (part.type == RAW_PART_FD && fd_of(part).file == 0) {
                return "an open file is missing: " + raw_part_line(part);
            }
        }
        return compare(record.head, wanted, [](const raw_part&) { return false; });
    }
    const bool names = async_request(OpKind::uring_submit, code).is_call();
    if (tells || (names && record.file)) {
        add(RAW_PART_FD, 0, 1, record.fd);
    }
    switch (code) {
        case IORING_OP_READV:
        case IORING_OP_WRITEV: add(RAW_PART_LIST, 1, record.length); break;
        case IORING_OP_FALLOCATE: add(RAW_PART_VALUES, 1, 1); break;
        case IORING_OP_OPENAT2: add(RAW_PART_VALUES, 2, 3); [[fallthrough]];
        case IORING_OP_OPENAT:
        case IORING_OP_STATX:
        case IORING_OP_UNLINKAT:
        case IORING_OP_MKDIRAT: add(RAW_PART_PATH, 1); break;
        case IORING_OP_RENAMEAT:
        case IORING_OP_LINKAT:
            if (static_cast<int32_t>(record.length) >= 0) {
                add(RAW_PART_FD, 2, 1, static_cast<int32_t>(record.length));
            }
            [[fallthrough]];
        case IORING_OP_SYMLINKAT:
            add(RAW_PART_PATH, 1);
            add(RAW_PART_PATH, 3);
            break;
        case IORING_OP_SPLICE:
        case IORING_OP_TEE: {
            const bool fixed = record.rw_flags & SPLICE_F_FD_IN_FIXED;
            add(RAW_PART_FD, 2, 1, fixed ? -1 : record.result);
            break;
        }
        default: break;
    }
    return compare(record.head, wanted, [](const raw_part&) { return false; });
}

}  // namespace reprise::test
