// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/cufile.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/open_flags.h"

namespace reprise {
namespace {

constexpr uint64_t kNoAddress = uint64_t{1} << 63;  // where no program has memory, so no iocb of its own
constexpr int32_t kNoDescriptor = 1 << 24;          // beyond all that a process may have
constexpr size_t kMostOfCall = 60'000;              // bytes of one record

}  // namespace

int64_t DirectRange::result(int64_t of, int64_t asked, int64_t end) const {
    if (!widened) {
        return of;
    }
    const int64_t whole = end > offset ? std::min(size, end - offset) : size;
    return of < asked ? std::min(before + of, size) : std::max(whole, before + of);
}

DirectRange whole_blocks(int64_t offset, int64_t size) {
    const int64_t from = offset - offset % kDirectBlock, end = offset + size;
    const int64_t to = end % kDirectBlock == 0 ? end : end - end % kDirectBlock + kDirectBlock;
    return {from, to - from, offset - from, !is_whole_blocks(offset, size)};
}

MadeCall::MadeCall(const raw_head& head, uint64_t enter, uint64_t end, uint16_t nr)
    : words_(sizeof(raw_call) / sizeof(uint64_t)) {
    raw_call& made = call();
    made = {};
    made.head.type = RAW_CALL;
    made.head.pid = head.pid;
    made.head.tid = head.tid;
    made.head.time = std::max(enter, end);
    made.enter = enter;
    made.nr = nr;
}

void MadeCall::add(raw_part_type type, uint16_t which, const void* data, size_t bytes) {
    raw_part part{};
    part.type = type;
    part.size = static_cast<raw_u16>(sizeof part + (bytes + 7) / 8 * 8);
    part.which = which;
    part.length = 1;
    const size_t at = words_.size();
    words_.resize(at + part.size / sizeof(uint64_t));
    std::memcpy(words_.data() + at, &part, sizeof part);
    std::memcpy(words_.data() + at + 1, data, bytes);
    static_assert(sizeof part == sizeof(uint64_t));
}

const raw_call& MadeCall::done() {
    call().head.size = static_cast<raw_u16>(bytes());
    return call();
}

void RawAssembly::cufile(const raw_cufile& record) {
    const auto kind = static_cast<raw_cufile_kind>(record.kind);
    if (kind == RAW_CUFILE_OPENED || kind == RAW_CUFILE_DRIVER) {
        return;  // of the first pass
    }
    if (kind == RAW_CUFILE_REGISTERED) {
        cufile_files_[{record.head.pid, record.handle}] = {record.fd};
        return;
    }
    TaskState& task = state(record.head.pid, record.head.tid);
    switch (kind) {
        case RAW_CUFILE_ENTER: return cufile_entered(task, record);
        case RAW_CUFILE_DEREGISTERED: return cufile_deregistered(task, record);
        case RAW_CUFILE_MOVED: return cufile_moved(task, record);
        case RAW_CUFILE_ASKED: {
            size_t& number = cufile_turns_[raw_task_key(task.pid, task.tid)].second;
            const CufileTurns* turns = facts_.cufile.turns_of(raw_task_key(task.pid, task.tid));
            const bool past = turns != nullptr && number < turns->requests.size() && turns->requests[number];
            ++number;
            task.asked.push_back({record, past});
            return;
        }
        case RAW_CUFILE_SUBMITTED: return cufile_submitted(task, record);
        case RAW_CUFILE_DONE: return cufile_done(task, record);
        case RAW_CUFILE_TAKEN: return cufile_taken(task, record);
        case RAW_CUFILE_FORGOTTEN: {
            const auto first = cufile_pending_.lower_bound({record.head.pid, record.stream, 0});
            auto last = first;
            for (; last != cufile_pending_.end() && std::get<0>(last->first) == record.head.pid &&
                   std::get<1>(last->first) == record.stream;
                 ++last) {
                count(Count::cufile_unfinished, last->second.size());
            }
            cufile_pending_.erase(first, last);
            return;
        }
        case RAW_CUFILE_REGISTERED:
        case RAW_CUFILE_OPENED:
        case RAW_CUFILE_DRIVER: return;
    }
}

void RawAssembly::cufile_entered(TaskState& task, const raw_cufile& record) {
    const RawTaskKey key = raw_task_key(task.pid, task.tid);
    const CufileTurns* turns = facts_.cufile.turns_of(key);
    const size_t number = cufile_turns_[key].first++;
    task.in_library = turns != nullptr && number < turns->calls.size() && turns->calls[number];
    task.library_since = at(record.head.time);
    task.asked.clear();
    task.told.clear();
    task.owed += facts_.cufile.probe_ns() / 2;
    taken_off_ += facts_.cufile.probe_ns();
}

bool RawAssembly::cufile_left(TaskState& task) {
    task.owed += facts_.cufile.probe_ns() / 2;
    return std::exchange(task.in_library, false);
}

// The probe at its return ran inside the call.
uint64_t RawAssembly::cufile_end(const raw_cufile& record) const {
    const auto probe = static_cast<uint64_t>(facts_.cufile.probe_ns() / 2);
    return std::max<uint64_t>(record.enter, record.head.time - std::min<uint64_t>(probe, record.head.time));
}

RawAssembly::CufileFile* RawAssembly::cufile_file(const raw_cufile& record, raw_fd& fd) {
    const auto found = cufile_files_.find({record.head.pid, record.handle});
    if (found == cufile_files_.end() || found->second.fd.file == 0) {
        count(Count::cufile_files_unknown);
        return nullptr;
    }
    // Its number may be another file's by now.
    fd = record.fd.file == found->second.fd.file ? record.fd : found->second.fd;
    return &found->second;
}

raw_fd RawAssembly::cufile_other(TaskState& task, const raw_fd& fd, int64_t flags, int64_t begin) {
    SeenInstance seen = seen_instance(fd);
    const auto pid = static_cast<int32_t>(task.pid);
    const std::string path = assembler_.path_of(pid, fd.fd, &seen);
    if (!path.starts_with('/')) {
        return fd;
    }
    settle(task, begin);
    raw_fd other = fd;
    other.fd = kNoDescriptor + static_cast<int32_t>(++cufile_made_ & 0xffffff);
    other.flags = static_cast<raw_u32>(flags);
    other.file = UINT64_MAX - ++seed_instances_;  // no address of a file
    other.info = 0;
    seen.key = other.file;
    seen.flags = flags;
    RawCall raw;
    raw.pid = pid;
    raw.tid = static_cast<int32_t>(task.tid);
    raw.kind = OpKind::open;
    raw.begin = std::max(begin, task.cursor);
    raw.path = path;
    raw.flags = flags;
    raw.result = other.fd;
    raw.made = &seen;
    const CallEffect effect = assembler_.call(raw);
    if (effect.ops != 0 && effect.first == 0) {
        began(task, {task.id, 0, raw.begin, raw.begin, false, true});
    }
    return other;
}

// Reads and whole blocks are made directly, ends of writes that are none as the library makes them: through the page
// cache.
DirectRange RawAssembly::cufile_range(TaskState& task, CufileFile& file, const raw_cufile& record, raw_fd& fd) {
    const int64_t offset = std::clamp<int64_t>(record.offset, 0, INT64_MAX / 4);
    const auto size = static_cast<int64_t>(std::min<uint64_t>(record.size, INT64_MAX / 4));
    const bool writes = (record.how & RAW_CUFILE_WRITES) != 0;
    const bool direct = !writes || is_whole_blocks(offset, size);
    if (((fd.flags & kOpenDirect) != 0) != direct) {
        if (!file.other) {
            const int64_t flags = (fd.flags & O_ACCMODE) | (direct ? kOpenDirect : 0);
            file.other = cufile_other(task, fd, flags, at(record.enter));
        }
        const uint64_t end = fd.size;
        fd = *file.other;
        fd.size = end;
    }
    if (writes || (fd.flags & kOpenDirect) == 0 || is_whole_blocks(offset, size)) {
        return {offset, size};
    }
    count(Count::cufile_widened);
    return whole_blocks(offset, size);
}

void RawAssembly::cufile_moved(TaskState& task, const raw_cufile& record) {
    if (record.result < 0) {
        cufile_left(task);
        return count(Count::cufile_failed);
    }
    raw_fd fd{};
    CufileFile* const file = cufile_file(record, fd);
    if (!task.in_library || file == nullptr) {
        if (cufile_left(task) || file == nullptr) {
            return;
        }
        return count(Count::cufile_by_calls);
    }
    count(Count::cufile_past_calls);
    task.in_library = false;
    const DirectRange range = cufile_range(task, *file, record, fd);
    const bool writes = (record.how & RAW_CUFILE_WRITES) != 0;
    MadeCall made(record.head, record.enter, cufile_end(record), writes ? SYS_pwrite64 : SYS_pread64);
    raw_call& one = made.call();
    one.args[0] = static_cast<raw_u64>(fd.fd);
    one.args[2] = static_cast<raw_u64>(range.size);
    one.args[3] = static_cast<raw_u64>(range.offset);
    const int64_t asked = static_cast<int64_t>(std::min<uint64_t>(record.size, INT64_MAX / 4));
    one.result = range.result(std::min<int64_t>(record.result, asked), asked, static_cast<int64_t>(fd.size));
    made.add(RAW_PART_FD, 0, &fd, sizeof fd);
    call(made.done());
    cufile_left(task);
}

void RawAssembly::cufile_submitted(TaskState& task, const raw_cufile& record) {
    const std::vector<CufileAsked> all = std::exchange(task.asked, {});
    cufile_left(task);
    if (static_cast<uint32_t>(record.result) != 0) {
        return count(Count::cufile_failed);
    }
    const uint64_t end = cufile_end(record);
    MadeCall made(record.head, record.enter, end, SYS_io_submit);
    int64_t requests = 0;
    const auto submit = [&] {
        if (requests != 0) {
            made.call().result = requests;
            made.call().args[1] = static_cast<raw_u64>(requests);
            call(made.done());
            made = MadeCall(record.head, end, end, SYS_io_submit);
            requests = 0;
        }
    };
    for (const CufileAsked& each : all) {
        auto& pending = cufile_pending_[{record.head.pid, each.record.stream, each.record.request}];
        raw_fd fd{};
        CufileFile* const file = cufile_file(each.record, fd);
        if (file == nullptr || !each.past_calls) {
            pending.push_back({.known = file != nullptr});
            continue;
        }
        raw_cufile asked = each.record;
        asked.enter = record.enter;
        CufileRequest request;
        request.range = cufile_range(task, *file, asked, fd);
        request.size = static_cast<int64_t>(std::min<uint64_t>(asked.size, INT64_MAX / 4));
        request.end = static_cast<int64_t>(std::min<uint64_t>(fd.size, INT64_MAX));
        request.iocb = kNoAddress + ++cufile_made_;
        raw_iocb block{};
        block.iocb = request.iocb;
        block.offset = request.range.offset;
        block.length = static_cast<raw_u64>(request.range.size);
        block.opcode = (asked.how & RAW_CUFILE_WRITES) != 0 ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
        block.fd = fd.fd;
        made.add(RAW_PART_FD, 2, &fd, sizeof fd);
        made.add(RAW_PART_IOCB, 2, &block, sizeof block);
        pending.push_back(request);
        count(Count::cufile_past_calls);
        ++requests;
        if (made.bytes() > kMostOfCall) {
            submit();
        }
    }
    submit();
}

void RawAssembly::cufile_done(TaskState& task, const raw_cufile& record) {
    const auto found = cufile_pending_.find({record.head.pid, record.stream, record.request});
    if (found == cufile_pending_.end()) {
        return count(record.result < 0 ? Count::cufile_failed : Count::completions_unmatched);
    }
    const CufileRequest request = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) {
        cufile_pending_.erase(found);
    }
    if (record.result < 0) {
        count(Count::cufile_failed);
    } else if (request.iocb == 0 && request.known) {
        count(Count::cufile_by_calls);
    }
    if (request.iocb != 0) {
        const int64_t result = record.result < 0 ? -5  // EIO: why is not told
                                                 : request.range.result(std::min<int64_t>(record.result, request.size),
                                                                        request.size, request.end);
        task.told.push_back({request.iocb, 0, result});
    }
}

void RawAssembly::cufile_taken(TaskState& task, const raw_cufile& record) {
    const std::vector<raw_aio_event> events = std::exchange(task.told, {});
    cufile_left(task);
    if (events.empty()) {
        return;
    }
    MadeCall made(record.head, record.enter, cufile_end(record), SYS_io_getevents);
    const auto results = static_cast<int64_t>(events.size());
    made.call().args[1] = static_cast<raw_u64>(std::clamp<int64_t>(record.offset, 0, results));
    made.call().args[2] = static_cast<raw_u64>(results);
    for (const raw_aio_event& each : events) {
        if (made.bytes() > kMostOfCall) {
            break;  // no call takes so many
        }
        made.add(RAW_PART_EVENT, 3, &each, sizeof each);
        ++made.call().result;
    }
    call(made.done());
}

void RawAssembly::cufile_deregistered(TaskState& task, const raw_cufile& record) {
    const auto found = cufile_files_.find({record.head.pid, record.handle});
    if (found == cufile_files_.end()) {
        return;
    }
    if (const std::optional<raw_fd>& other = found->second.other; other && other->fd >= kNoDescriptor) {
        settle(task, at(record.head.time));
        const SeenInstance seen = seen_instance(*other);
        RawCall raw;
        raw.pid = static_cast<int32_t>(task.pid);
        raw.tid = static_cast<int32_t>(task.tid);
        raw.kind = OpKind::close;
        raw.begin = std::max(at(record.head.time), task.cursor);
        raw.fd = other->fd;
        raw.seen = &seen;
        assembler_.call(raw);
    }
    cufile_files_.erase(found);
}

}  // namespace reprise
