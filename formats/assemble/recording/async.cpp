// SPDX-License-Identifier: MIT
// Asynchronous requests of a raw recording: libaio and io_uring, submitted and completed.
#include <linux/io_uring.h>

#include <algorithm>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

constexpr int64_t kFixedFile = IOSQE_FIXED_FILE;

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

}  // namespace

CallEffect RawAssembly::aio_submit(TaskState& task, const RawCall& raw) {
    CallEffect all;
    all.task = task.id;
    all.first = assembler_.op_count(task.id);
    int64_t left = raw.result;
    RawCall one = raw;
    const auto& parts = filler_.parts();
    for (size_t i = 0; i < parts.size(); ++i) {
        const raw_part* part = parts[i];
        if (part->type != RAW_PART_IOCB || left-- <= 0) {
            continue;
        }
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
        aio_[task.pid][iocb.iocb] = {one.request, 0, one.size};
        const CallEffect effect = assembler_.call(one);
        all.kind = effect.kind;
        one.begin += one.duration;  // the first one carries the time
        one.duration = 0;
    }
    all.ops = assembler_.op_count(task.id) - all.first;
    return all;
}

CallEffect RawAssembly::aio_reap(TaskState& task, const RawCall& raw, bool slept) {
    CallEffect all;
    all.task = task.id;
    all.first = assembler_.op_count(task.id);
    RawCall one = raw;
    if (slept) {
        one.kind = OpKind::wait;
        assembler_.call(one);
        one.begin += one.duration;
        one.duration = 0;
    }
    one.kind = OpKind::aio_complete;
    one.arg = 0;
    for (const raw_part* part : filler_.parts()) {
        if (part->type != RAW_PART_EVENT) {
            continue;
        }
        const auto& event = *static_cast<const raw_aio_event*>(raw_part_data(*part));
        auto& requests = aio_[task.pid];
        const auto found = requests.find(event.iocb);
        if (found == requests.end()) {
            count(Count::completions_unmatched);
            continue;
        }
        one.request = found->second.id;
        one.size = found->second.size;
        one.result = event.result;
        requests.erase(found);
        assembler_.call(one);
        one.begin += one.duration;
        one.duration = 0;
    }
    all.ops = assembler_.op_count(task.id) - all.first;
    return all;
}

void RawAssembly::uring_submit(const raw_uring& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    Event event;
    event.kind = Event::Kind::submit;
    event.begin = event.end = at(record.head.time);
    event.request = ++requests_;
    const bool fixed = record.flags & kFixedFile;
    int64_t size = record.length;
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type != RAW_PART_LIST) {
            continue;
        }
        size = 0;
        for (const raw_s64 each : raw_part_numbers(part)) {
            size += std::clamp<int64_t>(each, 0, INT32_MAX);
        }
    }
    event.size = allocated(record).value_or(size);
    uring_[record.request] = {event.request, raw_task_key(task.pid, task.tid), event.size, record.ring,
                              fixed ? record.fd : -1};
    if (fixed) {
        if (const auto known = fixed_files_.find({record.ring, record.fd}); known != fixed_files_.end()) {
            event.file = known->second;
        }
    }
    const auto* words = reinterpret_cast<const uint64_t*>(&record);
    event.record = std::make_shared<std::vector<uint64_t>>(words, words + record.head.size / sizeof(uint64_t));
    if (is_ring_call(record)) {
        uring_[record.request].record = event.record;
    }
    task.events.push_back(std::move(event));
    bound_events(task);
}

void RawAssembly::submitted(TaskState& task, const Event& event, int64_t begin) {
    const auto& record = *reinterpret_cast<const raw_uring*>(event.record->data());
    if (is_ring_call(record)) {
        return;  // an op when it is done
    }
    work_until(task, begin);
    RawCall raw;
    raw.pid = static_cast<int32_t>(task.pid);
    raw.tid = static_cast<int32_t>(task.tid);
    raw.kind = OpKind::uring_submit;
    raw.begin = begin;
    raw.offset = static_cast<int64_t>(record.offset);
    raw.size = event.size;
    raw.flags = (record.flags & 0xff) | int64_t{own_flags(record)} << kUringOwnFlags;
    raw.arg = record.opcode;
    raw.request = event.request;
    // The number of a fixed file is not a descriptor.
    (record.flags & kFixedFile ? raw.fd2 : raw.fd) = record.fd;
    SeenInstance seen;
    if (event.file) {
        seen = seen_instance(*event.file);
        raw.seen = &seen;
    }
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_FD) {
            seen = seen_instance(*static_cast<const raw_fd*>(raw_part_data(part)));
            raw.seen = &seen;
        }
        if (part.type == RAW_PART_PATH) {
            raw.path = raw_part_text(part);
        }
        if (part.type == RAW_PART_LIST) {
            const auto list = raw_part_numbers(part);
            raw.list = {list.data(), list.size()};
        }
    }
    const CallEffect effect = assembler_.call(raw);
    if (effect.ops && effect.first == 0) {
        began(task, {task.id, 0, raw.begin, raw.begin, false, true});
    }
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
    if (request.fixed >= 0) {
        // Only the completion shows which file the number stands for.
        for (const raw_part& part : RawParts(record.head)) {
            if (part.type != RAW_PART_FD) {
                continue;
            }
            const auto& fd = *static_cast<const raw_fd*>(raw_part_data(part));
            if (!fd.file) {
                continue;
            }
            fixed_files_[{request.ring, request.fixed}] = fd;
            for (Event& each : it->second.events) {
                if (each.kind == Event::Kind::submit && each.request == request.id) {
                    each.file = fd;
                }
            }
        }
    }
    Event event;
    event.kind = Event::Kind::complete;
    event.begin = event.end = at(record.head.time);
    event.request = request.id;
    event.size = request.size;
    event.result = record.result;
    it->second.events.push_back(std::move(event));
    bound_events(it->second);
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
    assembler_.call(raw);
}

}  // namespace reprise
