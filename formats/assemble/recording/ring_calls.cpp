// SPDX-License-Identifier: MIT
// Requests of io_uring that stand for calls on names, descriptors and memory (open, close, rename, splice, madvise...):
// each is the op of its call, right before the uring_complete that reports its result.
#include <fcntl.h>
#include <linux/io_uring.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

// Number of the fixed file that an open or close uses; -1: a descriptor.
int32_t slot_of(const raw_uring& asked, const raw_uring& completion) {
    if (asked.result == 0 ||
        (asked.opcode != IORING_OP_OPENAT && asked.opcode != IORING_OP_OPENAT2 && asked.opcode != IORING_OP_CLOSE)) {
        return -1;
    }
    return asked.result == -1 ? completion.result : asked.result - 1;
}

// A splice gives positions of files only.
std::optional<int64_t> position(uint64_t given) {
    return given == UINT64_MAX ? std::nullopt : std::optional(static_cast<int64_t>(given));
}

// Arguments as the request has them, per code; false: a name could not be read.
bool fill(const raw_uring& asked, RawCall& raw, SeenInstance (&seen)[2]) {
    bool first = false, second = false;
    std::string_view names[2];
    std::span<const raw_s64> how;
    for (const raw_part& part : RawParts(asked.head)) {
        const bool other = part.which >= 2;
        if (part.type == RAW_PART_FD) {
            seen[other] = seen_instance(*static_cast<const raw_fd*>(raw_part_data(part)));
            (other ? raw.seen2 : raw.seen) = &seen[other];
        }
        if (part.type == RAW_PART_PATH) {
            names[other] = raw_part_text(part);
            (other ? second : first) = true;
        }
        if (part.type == RAW_PART_VALUES) {
            how = raw_part_numbers(part);
        }
    }
    raw.fd = asked.fd;
    raw.path = names[0];
    switch (asked.opcode) {
        case IORING_OP_OPENAT:
            raw.kind = OpKind::open;
            raw.flags = asked.rw_flags;
            raw.mode = asked.length;
            return first;
        case IORING_OP_OPENAT2:
            raw.kind = OpKind::open;
            if (how.size() >= 2) {
                raw.flags = how[0], raw.mode = how[1];
            }
            return first;
        case IORING_OP_CLOSE: raw.kind = OpKind::close; return true;
        case IORING_OP_SPLICE:
        case IORING_OP_TEE: {
            // The request's own file is where it writes to.
            constexpr int64_t kFixedSource = int64_t{SPLICE_F_FD_IN_FIXED};
            raw.kind = OpKind::splice;
            raw.fd2 = asked.flags & IOSQE_FIXED_FILE ? -1 : asked.fd;
            raw.fd = asked.rw_flags & kFixedSource ? -1 : asked.result;
            std::swap(raw.seen, raw.seen2);
            raw.flags = asked.rw_flags & ~kFixedSource;
            raw.size = asked.length;
            if (asked.opcode == IORING_OP_SPLICE) {
                raw.offset = position(asked.address);
                raw.offset2 = position(asked.offset);
            }
            return true;
        }
        case IORING_OP_MADVISE:
            raw.kind = OpKind::madvise;
            raw.fd = -1;
            raw.seen = raw.seen2 = nullptr;
            raw.address = asked.address;
            raw.size =
                asked.length != 0 || asked.offset > INT64_MAX ? asked.length : static_cast<int64_t>(asked.offset);
            raw.arg = asked.rw_flags;
            return true;
        case IORING_OP_STATX:
            raw.kind = OpKind::statx;
            raw.flags = asked.rw_flags;
            raw.arg = asked.length;
            return first;
        case IORING_OP_UNLINKAT:
            raw.kind = asked.rw_flags & AT_REMOVEDIR ? OpKind::rmdir : OpKind::unlink;
            raw.flags = asked.rw_flags;
            return first;
        case IORING_OP_MKDIRAT:
            raw.kind = OpKind::mkdir;
            raw.mode = asked.length;
            return first;
        case IORING_OP_SYMLINKAT:
            raw.kind = OpKind::symlink;
            raw.text = names[0];
            raw.path = names[1];
            return first && second;
        default:
            raw.kind = asked.opcode == IORING_OP_RENAMEAT ? OpKind::rename : OpKind::link;
            raw.flags = asked.rw_flags;
            raw.fd2 = static_cast<int32_t>(asked.length);
            raw.path2 = names[1];
            return first && second;
    }
}

}  // namespace

bool RawAssembly::is_ring_call(const raw_uring& record) {
    return async_request(OpKind::uring_submit, record.opcode).is_call();
}

bool RawAssembly::is_direct(const raw_uring& record) {
    const bool opens = record.opcode == IORING_OP_OPENAT || record.opcode == IORING_OP_OPENAT2;
    return record.result != 0 && (opens || record.opcode == IORING_OP_CLOSE);
}

// The effects happen now, in the order of all records: other tasks may use what it opened before the submitting task
// leaves its call. One of a file that is no descriptor is placed where it was submitted, unless the task has moved on:
// requests that follow in the same call may use the file.
void RawAssembly::ring_call_done(TaskState& task, const Request& request, const raw_uring& completion) {
    const auto& asked = *reinterpret_cast<const raw_uring*>(request.record->data());
    RawCall raw;
    SeenInstance seen[2], made;
    const bool direct = is_direct(asked);
    const int64_t end = at(completion.head.time);
    if (!fill(asked, raw, seen)) {
        count(Count::calls_with_unreadable_paths);
        if (!direct) {
            push_completion(task, request, completion);
        }
        return;
    }
    raw.pid = static_cast<int32_t>(task.pid);
    raw.tid = static_cast<int32_t>(task.tid);
    raw.begin = direct ? at(asked.head.time) : end;  // else its time is that of the request
    raw.duration = std::max<int64_t>(end - raw.begin, 0);
    raw.result = completion.result;
    const int32_t slot = slot_of(asked, completion);
    const std::pair<uint64_t, int32_t> fixed{asked.ring, slot};
    for (const raw_part& part : RawParts(completion.head)) {
        if (part.type == RAW_PART_STAT) {
            const auto& stat = *static_cast<const raw_stat*>(raw_part_data(part));
            raw.stat_size = stat.size;
            raw.stat_mode = stat.mode;
        }
        if (part.type != RAW_PART_FD || part.which != RAW_WHICH_RESULT) {
            continue;
        }
        const auto& fd = *static_cast<const raw_fd*>(raw_part_data(part));
        if (!fd.file) {
            continue;
        }
        made = seen_instance(fd);
        page_cache_.see(fd);
        raw.made = &made;
        raw.created = (fd.info & RAW_FD_CREATED) != 0;
        if (made.type == FileType::regular) {
            raw.stat_size = fd.size;
        }
        raw.stat_mode = fd.mode;
        if (slot >= 0) {
            fixed_files_[fixed] = fd;
        }
    }
    if (slot >= 0 && raw.kind == OpKind::open) {
        raw.fd2 = slot;
    }
    if (slot >= 0 && raw.kind == OpKind::close) {
        raw.fd = -1;
        raw.seen = nullptr;
        if (const auto known = fixed_files_.find(fixed); known != fixed_files_.end()) {
            seen[0] = seen_instance(known->second);
            raw.seen = &seen[0];
            fixed_files_.erase(known);
        }
    }
    below_root(raw);
    for (Op& op : assembler_.effects_of(raw)) {
        if (slot >= 0 && raw.kind == OpKind::close) {
            op.fd = slot;
        }
        count(Count::ring_calls);
        Event event;
        event.kind = Event::Kind::ring_call;
        event.begin = event.end = end;
        event.op = std::make_shared<Op>(op);
        event.direct = direct;
        const auto waiting = std::find_if(task.events.begin(), task.events.end(), [&](const Event& each) {
            return direct && each.kind == Event::Kind::submit && each.request == request.id;
        });
        if (waiting != task.events.end()) {
            event.begin = event.end = waiting->begin;
            *waiting = std::move(event);
            return;
        }
        task.events.push_back(std::move(event));
    }
    if (!direct) {
        push_completion(task, request, completion);
    }
    bound_events(task);
}

void RawAssembly::ring_called(TaskState& task, const Event& event, int64_t from) {
    work_until(task, event.begin);
    Op op = *event.op;
    const int64_t end = op.end();
    op.begin = std::clamp(from, op.begin, std::max(end, op.begin));
    op.duration = end - op.begin;
    const uint64_t number = assembler_.op_count(task.id);
    assembler_.op(static_cast<int32_t>(task.pid), static_cast<int32_t>(task.tid), op);
    if (number == 0) {
        began(task, {task.id, 0, op.begin, end, false, true});
    }
}

}  // namespace reprise
