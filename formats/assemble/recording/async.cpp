// SPDX-License-Identifier: MIT
// Asynchronous requests of a raw recording: libaio and io_uring, submitted and completed.
#include <linux/io_uring.h>

#include <algorithm>
#include <utility>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

constexpr int64_t kFixedFile = IOSQE_FIXED_FILE;

using Does = AsyncRequest::Does;

// An allocation has its mode in the length, and its length in the address.
uint32_t own_flags(const raw_uring& record) {
    return record.opcode == IORING_OP_FALLOCATE ? record.length : record.rw_flags;
}

std::optional<int64_t> allocated(const raw_uring& record) {
    if (record.opcode != IORING_OP_FALLOCATE) {
        return std::nullopt;
    }
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_VALUES && part.length > 0) {
            return raw_part_numbers(part)[0];
        }
    }
    return std::nullopt;
}

// Of a vector only the first buffer is known by its address.
uint64_t first_piece(std::span<const int64_t> list, int64_t size) {
    return static_cast<uint64_t>(std::max<int64_t>(list.empty() ? size : list.front(), 0));
}

uint64_t filled_of(int64_t result, uint64_t room) {
    return std::min(static_cast<uint64_t>(std::max<int64_t>(result, 0)), room);
}

}  // namespace

CallEffect RawAssembly::aio_submit(TaskState& task, const RawCall& raw) {
    CallEffect all;
    all.task = task.id;
    all.first = assembler_.op_count(task.id);
    RawCall one = raw;
    const auto& parts = filler_.parts();
    int64_t left = std::min<int64_t>(raw.result, std::count_if(parts.begin(), parts.end(), [](const raw_part* each) {
                                         return each->type == RAW_PART_IOCB;
                                     }));
    for (size_t i = 0; i < parts.size(); ++i) {
        const raw_part* part = parts[i];
        if (part->type != RAW_PART_IOCB || left <= 0) {
            continue;
        }
        one.duration = --left == 0 ? raw.duration : 0;  // the last one has the time of the call, as in a replay
        const auto& iocb = *static_cast<const raw_iocb*>(raw_part_data(*part));
        SeenInstance seen;
        one.seen = nullptr;
        for (const raw_part* each : filler_.parts()) {
            if (each->type != RAW_PART_FD) {
                continue;
            }
            const auto& fd = *static_cast<const raw_fd*>(raw_part_data(*each));
            if (fd.fd != iocb.fd) {
                continue;
            }
            seen = seen_instance(fd);
            one.seen = &seen;
        }
        one.fd = iocb.fd;
        one.offset = iocb.offset;
        one.size = static_cast<int64_t>(std::min<uint64_t>(iocb.length, INT64_MAX));
        one.list = {};
        if (async_request(OpKind::aio_submit, iocb.opcode).vectored) {
            // Its length is the number of buffers; their sizes follow.
            one.size = 0;
            const auto next = std::find_if(parts.begin() + static_cast<ptrdiff_t>(i) + 1, parts.end(),
                                           [](const raw_part* each) { return each->type != RAW_PART_FD; });
            if (next != parts.end() && (*next)->type == RAW_PART_LIST) {
                const auto sizes = raw_part_numbers(**next);
                one.list = {sizes.data(), sizes.size()};
                for (const raw_s64 size : sizes) {
                    one.size += std::clamp<int64_t>(size, 0, INT32_MAX);
                }
            }
        }
        one.flags = iocb.rw_flags;
        one.arg = iocb.opcode;
        one.result = 0;
        one.request = ++requests_;
        const Does does = async_request(OpKind::aio_submit, iocb.opcode).does;
        Request& request = aio_[task.pid][iocb.iocb];
        request = {one.request, 0, one.size};
        if (does == Does::read) {
            request.address = iocb.buffer;
            request.room = first_piece(one.list, one.size);
        }
        const CallEffect effect = assembler_.call(one);
        if (effect.ops != 0 && does == Does::write) {
            needs_reads(task, effect.first, iocb.buffer, first_piece(one.list, one.size));
        }
        all.kind = effect.kind;
    }
    all.ops = assembler_.op_count(task.id) - all.first;
    return all;
}

// The time of the call is that of the storage, whether it slept or took what was there.
CallEffect RawAssembly::aio_reap(TaskState& task, const raw_call& record, const RawCall& raw) {
    CallEffect all;
    all.task = task.id;
    all.first = assembler_.op_count(task.id);
    RawCall one = raw;
    one.kind = OpKind::aio_reap;
    one.arg = static_cast<int64_t>(record.args[1]);
    one.size = static_cast<int64_t>(record.args[2]);
    assembler_.call(one);
    one.begin += one.duration;
    one.duration = 0;
    one.kind = OpKind::aio_complete;
    one.arg = 0;
    auto& requests = aio_[task.pid];
    for (const raw_part* part : filler_.parts()) {
        if (part->type != RAW_PART_EVENT) {
            continue;
        }
        const auto& event = *static_cast<const raw_aio_event*>(raw_part_data(*part));
        const auto found = requests.find(event.iocb);
        if (found == requests.end()) {
            count(Count::completions_unmatched);
            continue;
        }
        one.request = found->second.id;
        one.size = found->second.size;
        one.result = event.result;
        const uint64_t address = found->second.address, filled = filled_of(event.result, found->second.room);
        requests.erase(found);
        const CallEffect effect = assembler_.call(one);
        if (effect.ops != 0 && filled != 0) {
            processes_[task.pid].filled.filled(address, filled, task.id, effect.first);
        }
    }
    all.ops = assembler_.op_count(task.id) - all.first;
    return all;
}

void RawAssembly::needs_reads(const TaskState& task, uint64_t op, uint64_t address, uint64_t bytes) {
    for (const uint64_t read : processes_[task.pid].filled.by(address, bytes, task.id)) {
        assembler_.add_edge(task.id, op, {task.id, EdgeKind::resource, 100, read});
    }
}

void RawAssembly::has_taken(const TaskState& task, uint64_t op, uint64_t ring, uint32_t count) {
    if (const std::optional<uint64_t> latest = taken_.taken(ring, count, task.id)) {
        assembler_.add_edge(task.id, op, {task.id, EdgeKind::reaped, 100, *latest});
    }
}

// While the call lasts nobody takes results, unless other threads use the ring: what the first completion inside saw
// taken was taken before the call.
void RawAssembly::took_before(const TaskState& task, uint64_t op) {
    const auto first = std::find_if(task.events.begin(), task.events.end(),
                                    [](const Event& each) { return each.kind == Event::Kind::complete; });
    if (first != task.events.end()) {
        has_taken(task, op, first->ring, first->taken);
    }
}

void RawAssembly::submit_before(TaskState& task, int64_t enter, int64_t begin) {
    std::vector<Event> inside = std::exchange(task.events, {}), rest;
    for (Event& event : inside) {
        if (event.kind == Event::Kind::submit) {
            submitted(task, event, begin);
        } else if (event.kind == Event::Kind::ring_call && event.direct && event.op->begin >= enter) {
            event.op->duration = std::max<int64_t>(event.op->end() - begin, 0);
            event.op->begin = event.begin = begin;
            ring_called(task, event, begin);
        } else {
            rest.push_back(std::move(event));
        }
    }
    task.events = std::move(rest);
}

std::optional<raw_fd> RawAssembly::told_file(const raw_uring& record) {
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type != RAW_PART_FD || part.which != 0) {
            continue;
        }
        const auto& fd = *static_cast<const raw_fd*>(raw_part_data(part));
        if (fd.file != 0) {
            return told_files_[fd.file] = fd;
        }
    }
    const auto told = record.file == 0 ? told_files_.end() : told_files_.find(record.file);
    return told == told_files_.end() ? std::nullopt : std::optional(told->second);
}

void RawAssembly::uring_submit(const raw_uring& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    Event event;
    event.kind = Event::Kind::submit;
    event.begin = event.end = at(record.head.time);
    event.request = ++requests_;
    const bool fixed = record.flags & kFixedFile;
    int64_t size = record.length;
    uint64_t room = record.length;
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type != RAW_PART_LIST) {
            continue;
        }
        size = 0;
        room = first_piece({raw_part_numbers(part).data(), raw_part_numbers(part).size()}, 0);
        for (const raw_s64 each : raw_part_numbers(part)) {
            size += std::clamp<int64_t>(each, 0, INT32_MAX);
        }
    }
    event.size = is_ring_call(record) ? 0 : allocated(record).value_or(size);
    Request& request = uring_[record.request];
    request = {event.request, raw_task_key(task.pid, task.tid), event.size, record.ring, fixed ? record.fd : -1};
    if (async_request(OpKind::uring_submit, record.opcode).does == Does::read) {
        request.address = record.address;
        request.room = room;
    }
    event.file = told_file(record);
    if (event.file) {
        request.file = event.file->file;
    } else if (fixed) {
        // Where no submission shows it, it is what a completion said last.
        if (const auto known = fixed_files_.find({record.ring, record.fd}); known != fixed_files_.end()) {
            event.file = known->second;
        }
    }
    const auto* words = reinterpret_cast<const uint64_t*>(&record);
    event.record = std::make_shared<std::vector<uint64_t>>(words, words + record.head.size / sizeof(uint64_t));
    if (record.sqpoll) {
        auto& kept = *reinterpret_cast<raw_uring*>(event.record->data());
        kept.taken = polled_lines_.came_to(record.ring, record.behind, record.taken);
    }
    if (is_ring_call(record)) {
        request.record = event.record;
    }
    task.events.push_back(std::move(event));
    bound_events(task);
}

void RawAssembly::submitted(TaskState& task, const Event& event, int64_t begin) {
    const auto& record = *reinterpret_cast<const raw_uring*>(event.record->data());
    const bool calls = is_ring_call(record);
    if (calls && is_direct(record)) {
        return;  // an op when it is done
    }
    work_until(task, begin);
    RawCall raw;
    raw.pid = static_cast<int32_t>(task.pid);
    raw.tid = static_cast<int32_t>(task.tid);
    raw.kind = OpKind::uring_submit;
    raw.begin = begin;
    raw.flags = (record.flags & 0xff) | (record.sqpoll ? kUringPolled : 0);
    raw.arg = record.opcode;
    raw.request = event.request;
    if (calls) {  // what it asks for is in the op of its call
        const CallEffect effect = assembler_.call(raw);
        began_request(task, effect, record, begin);
        return;
    }
    raw.offset = static_cast<int64_t>(record.offset);
    raw.size = event.size;
    raw.flags |= int64_t{own_flags(record)} << kUringOwnFlags;
    // The number of a fixed file is not a descriptor.
    (record.flags & kFixedFile ? raw.fd2 : raw.fd) = record.fd;
    SeenInstance seen;
    if (event.file) {
        seen = seen_instance(*event.file);
        seen.when = event.begin;
        raw.seen = &seen;
    }
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_PATH) {
            raw.path = raw_part_text(part);
        }
        if (part.type == RAW_PART_LIST) {
            const auto list = raw_part_numbers(part);
            raw.list = {list.data(), list.size()};
        }
    }
    const CallEffect effect = assembler_.call(raw);
    began_request(task, effect, record, begin);
    if (effect.ops != 0 && async_request(OpKind::uring_submit, record.opcode).does == Does::write) {
        needs_reads(task, effect.first, record.address, first_piece(raw.list, raw.size));
    }
}

void RawAssembly::began_request(TaskState& task, const CallEffect& effect, const raw_uring& record, int64_t begin) {
    if (effect.ops == 0) {
        return;
    }
    if (effect.first == 0) {
        began(task, {task.id, 0, begin, begin, false, true});
    }
    has_taken(task, effect.first, record.ring, record.taken);
}

void RawAssembly::uring_complete(const raw_uring& record) {
    const auto found = uring_.find(record.request);
    if (found == uring_.end()) {
        count(Count::completions_unmatched);
        return;
    }
    const Request request = found->second;
    uring_.erase(found);
    const auto it = tasks_.find(request.task);
    if (it == tasks_.end()) {
        return;
    }
    if (request.record) {
        return ring_call_done(it->second, request, record);
    }
    // A fixed file may have come after the submission, and on older kernels only the completion shows which it is.
    const std::optional<raw_fd> file = told_file(record);
    if (request.fixed >= 0 && file && file->file != request.file) {
        fixed_files_[{request.ring, request.fixed}] = *file;
        for (Event& each : it->second.events) {
            if (each.kind == Event::Kind::submit && each.request == request.id) {
                each.file = file;
            }
        }
    }
    push_completion(it->second, request, record);
    bound_events(it->second);
}

void RawAssembly::push_completion(TaskState& task, const Request& request, const raw_uring& record) {
    Event event;
    event.kind = Event::Kind::complete;
    event.begin = event.end = at(record.head.time);
    event.request = request.id;
    event.size = request.size;
    // The descriptor that a call made is in the call's op.
    event.result = request.record ? std::min<int64_t>(record.result, 0) : record.result;
    event.address = request.address;
    event.filled = filled_of(record.result, request.room);
    event.ring = record.ring;
    event.taken = record.taken;
    event.completed = record.completed;
    task.events.push_back(std::move(event));
}

void RawAssembly::completed(TaskState& task, const Event& event, int64_t begin) {
    work_until(task, begin);
    RawCall raw;
    raw.pid = static_cast<int32_t>(task.pid);
    raw.tid = static_cast<int32_t>(task.tid);
    raw.kind = OpKind::uring_complete;
    raw.begin = begin;
    raw.request = event.request;
    raw.size = event.size;
    raw.result = event.result;
    const CallEffect effect = assembler_.call(raw);
    if (effect.ops == 0) {
        return;
    }
    taken_.posted(event.ring, event.completed, task.id, effect.first);
    if (event.filled != 0) {
        processes_[task.pid].filled.filled(event.address, event.filled, task.id, effect.first);
    }
}

}  // namespace reprise
