// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/cufile_calls.h"

#include <linux/aio_abi.h>

#include <algorithm>

#include "formats/assemble/recording/edges.h"
#include "formats/oplog/async_request.h"
#include "formats/oplog/syscalls.h"

namespace reprise {
namespace {

constexpr uint64_t kReorder = 5'000'000;   // ns: records that belong together may come so late
constexpr size_t kMostKept = 1024;         // of a file, before what nobody asks for is looked for
constexpr int64_t kMostProbe = 1'000'000;  // ns; more is damage

const raw_fd* file_of(const raw_head& head) {
    for (const raw_part& part : RawParts(head)) {
        if (part.type == RAW_PART_FD && part.which == 0) {
            return static_cast<const raw_fd*>(raw_part_data(part));
        }
    }
    return nullptr;
}

int64_t clamped(uint64_t bytes) { return static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX / 2)); }

}  // namespace

void CufileCalls::see(const raw_head& head) {
    newest_ = std::max<uint64_t>(newest_, head.time);
    if (head.type == RAW_CUFILE) {
        return see(reinterpret_cast<const raw_cufile&>(head));
    }
    if (users_.empty() || !users_.contains(head.pid)) {
        return;
    }
    if (head.type == RAW_CALL) {
        see(reinterpret_cast<const raw_call&>(head));
    } else if (head.type == RAW_URING_SUBMIT) {
        see(reinterpret_cast<const raw_uring&>(head));
    }
}

void CufileCalls::see(const raw_cufile& record) {
    const uint32_t pid = record.head.pid;
    const uint64_t task = raw_task_key(pid, record.head.tid);
    if (record.kind != RAW_CUFILE_OPENED && record.kind != RAW_CUFILE_DRIVER) {
        users_.insert(pid);
    }
    const auto asked = [&] {
        raw_fd fd = record.fd;
        if (const auto known = files_.find({pid, record.handle}); fd.file == 0 && known != files_.end()) {
            fd = known->second;
        }
        Asked out;
        out.file = {pid, fd.device, fd.inode};
        out.offset = record.offset;
        out.size = clamped(record.size);
        out.to = record.head.time;
        out.writes = (record.how & RAW_CUFILE_WRITES) != 0;
        return out;
    };
    const auto open = open_.find(task);
    switch (static_cast<raw_cufile_kind>(record.kind)) {
        case RAW_CUFILE_ENTER: {
            auto& calls = turns_[task].calls;
            open_[task] = {calls.size(), record.head.time};
            calls.push_back(false);
            return;
        }
        case RAW_CUFILE_REGISTERED: files_[{pid, record.handle}] = record.fd; return;
        case RAW_CUFILE_DEREGISTERED: files_.erase({pid, record.handle}); return;
        case RAW_CUFILE_MOVED: {
            if (open == open_.end()) {
                return;
            }
            Asked call = asked();
            call.size = std::min(call.size, record.result);
            call.from = open->second.second;
            call.calls = {{task, open->second.first}};
            open_.erase(open);
            if (record.result >= 0) {
                waiting_.push_back(std::move(call));
            }
            break;
        }
        case RAW_CUFILE_ASKED: {
            Asked request = asked();
            request.from = open == open_.end() ? record.head.time : open->second.second;
            auto& requests = turns_[task].requests;
            request.requests = {{task, requests.size()}};
            requests.push_back(false);
            if (open != open_.end()) {
                request.calls = {{task, open->second.first}};
            }
            pending_[{pid, record.stream, record.request}].push_back(std::move(request));
            return;
        }
        case RAW_CUFILE_DONE: {
            const auto found = pending_.find({pid, record.stream, record.request});
            if (found == pending_.end()) {
                return;
            }
            Asked request = std::move(found->second.front());
            found->second.pop_front();
            if (found->second.empty()) {
                pending_.erase(found);
            }
            request.size = std::min(request.size, record.result);
            request.to = record.head.time;
            if (open != open_.end()) {
                request.calls.push_back({task, open->second.first});
            }
            if (record.result >= 0) {
                waiting_.push_back(std::move(request));
            }
            break;
        }
        case RAW_CUFILE_SUBMITTED:
        case RAW_CUFILE_TAKEN:
            if (open != open_.end()) {
                open_.erase(open);
            }
            return;
        case RAW_CUFILE_FORGOTTEN: return;
        case RAW_CUFILE_OPENED: {
            Process& process = processes_[pid];
            process.opened = record.head.time;
            process.since = record.enter;
            probe_ns_ = std::max<int64_t>(probe_ns_, std::min<int64_t>(clamped(record.size), kMostProbe));
            return;
        }
        case RAW_CUFILE_DRIVER: {
            uint64_t& first = processes_[pid].driver;
            first = first == 0 ? record.head.time : std::min<uint64_t>(first, record.head.time);
            return;
        }
    }
    decide_until(newest_ > kReorder ? newest_ - kReorder : 0);
}

void CufileCalls::see(const raw_call& call) {
    const Syscall* row = find_syscall(call.nr);
    if (row == nullptr || call.result <= 0) {
        return;
    }
    if (row->action == CallAction::aio_submit) {
        const raw_fd* fd = nullptr;
        const raw_iocb* block = nullptr;
        for (const raw_part& part : RawParts(call.head)) {
            if (part.type == RAW_PART_IOCB) {
                block = static_cast<const raw_iocb*>(raw_part_data(part));
            } else if (part.type == RAW_PART_FD) {
                fd = static_cast<const raw_fd*>(raw_part_data(part));
            }
            const AsyncRequest asked =
                block == nullptr ? AsyncRequest() : async_request(OpKind::aio_submit, block->opcode);
            if (fd == nullptr || block == nullptr || fd->fd != block->fd || !(asked.reads() || asked.writes())) {
                continue;
            }
            int64_t bytes = asked.vectored ? 0 : clamped(block->length);
            if (part.type == RAW_PART_LIST) {
                for (const raw_s64 size : raw_part_numbers(part)) {
                    bytes += std::clamp<int64_t>(size, 0, INT32_MAX);
                }
            } else if (asked.vectored) {
                continue;
            }
            moved(call.head, *fd, block->offset, bytes, call.enter, asked.writes());
            block = nullptr;
        }
        return;
    }
    const OpInfo& op = info(row->kind);
    const raw_fd* fd = op.is(Trait::reads) != op.is(Trait::writes) ? file_of(call.head) : nullptr;
    if (fd == nullptr || fd->file == 0) {
        return;
    }
    const bool given = row->kind == OpKind::pread || row->kind == OpKind::pwrite || row->kind == OpKind::preadv ||
                       row->kind == OpKind::pwritev;
    const auto offset = static_cast<int64_t>(call.args[3]);
    moved(call.head, *fd, given && offset >= 0 ? offset : fd->position - call.result, call.result, call.enter,
          op.is(Trait::writes));
}

void CufileCalls::see(const raw_uring& record) {
    const AsyncRequest asked = async_request(OpKind::uring_submit, record.opcode);
    if (const raw_fd* fd = file_of(record.head); fd != nullptr && fd->file != 0) {
        told_[fd->file] = {fd->device, fd->inode};
    }
    const auto file = told_.find(record.file);
    if (file == told_.end() || !(asked.reads() || asked.writes())) {
        return;
    }
    int64_t bytes = asked.vectored ? 0 : int64_t{record.length};
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_LIST) {
            for (const raw_s64 size : raw_part_numbers(part)) {
                bytes += std::clamp<int64_t>(size, 0, INT32_MAX);
            }
        }
    }
    raw_fd fd{};
    fd.device = file->second.first;
    fd.inode = file->second.second;
    moved(record.head, fd, static_cast<int64_t>(record.offset), bytes, record.head.time, asked.writes());
}

void CufileCalls::moved(const raw_head& head, const raw_fd& fd, int64_t offset, int64_t bytes, uint64_t from,
                        bool writes) {
    if (offset < 0 || bytes <= 0 || offset > INT64_MAX - bytes) {
        return;
    }
    add({head.pid, fd.device, fd.inode}, {offset, offset + bytes, from, head.time, writes});
}

void CufileCalls::add(const File& file, const Moved& one) {
    auto& all = moved_[file];
    all.push_back(one);
    if (all.size() % kMostKept == 0) {
        decide_until(newest_ > kReorder ? newest_ - kReorder : 0);
        const uint64_t from = needed_from();
        while (!all.empty() && all.front().to + kReorder < from) {
            all.pop_front();
        }
    }
}

/// When the earliest call or request began that is not decided; else now.
uint64_t CufileCalls::needed_from() const {
    uint64_t from = newest_;
    for (const auto& [task, call] : open_) {
        from = std::min(from, call.second);
    }
    for (const auto& [key, requests] : pending_) {
        from = std::min(from, requests.front().from);
    }
    for (const Asked& each : waiting_) {
        from = std::min(from, each.from);
    }
    return from;
}

/// Bytes of its range that system calls moved meanwhile.
int64_t CufileCalls::by_calls(const Asked& asked) const {
    const auto pid = std::get<0>(asked.file);
    const bool known = std::get<2>(asked.file) != 0;
    const int64_t end = asked.offset + std::max<int64_t>(asked.size, 1);
    int64_t sum = 0;
    for (auto at = moved_.lower_bound(known ? asked.file : File{pid, 0, 0});
         at != moved_.end() && (known ? at->first == asked.file : std::get<0>(at->first) == pid); ++at) {
        const auto& all = at->second;
        // They come by their ends, but for a little.
        auto each = std::partition_point(all.begin(), all.end(),
                                         [&](const Moved& one) { return one.to + kReorder < asked.from; });
        for (; each != all.end() && each->to <= asked.to + kReorder; ++each) {
            if (each->writes == asked.writes && each->to >= asked.from && each->from <= asked.to) {
                sum += std::max<int64_t>(std::min(end, each->end) - std::max(asked.offset, each->begin), 0);
            }
        }
    }
    return sum;
}

void CufileCalls::decide(const Asked& asked) {
    // Ends of a range that are no whole blocks the library may move by system calls of its own.
    if (asked.offset < 0 || asked.offset > INT64_MAX / 2 || by_calls(asked) * 2 >= std::max<int64_t>(asked.size, 1)) {
        return;
    }
    for (const Turn& turn : asked.calls) {
        turns_[turn.task].calls[turn.number] = true;
    }
    for (const Turn& turn : asked.requests) {
        turns_[turn.task].requests[turn.number] = true;
    }
}

void CufileCalls::decide_until(uint64_t time) {
    for (; !waiting_.empty() && waiting_.front().to <= time; waiting_.pop_front()) {
        decide(waiting_.front());
    }
}

void CufileCalls::finish() {
    for (auto& [key, requests] : pending_) {
        for (Asked& each : requests) {
            each.to = newest_;
            waiting_.push_back(std::move(each));
        }
    }
    pending_.clear();
    decide_until(UINT64_MAX);
    moved_.clear();
    open_.clear();
    files_.clear();
    told_.clear();
}

const CufileTurns* CufileCalls::turns_of(uint64_t task) const {
    const auto found = turns_.find(task);
    return found == turns_.end() ? nullptr : &found->second;
}

uint64_t CufileCalls::unseen() const {
    return static_cast<uint64_t>(std::count_if(processes_.begin(), processes_.end(), [](const auto& each) {
        const Process& process = each.second;
        return process.late() && process.driver != 0 && (process.since == 0 || process.driver < process.since);
    }));
}

uint64_t CufileCalls::unprobed() const {
    return static_cast<uint64_t>(std::count_if(processes_.begin(), processes_.end(), [](const auto& each) {
        return each.second.late() && each.second.since == 0 && each.second.driver == 0;
    }));
}

}  // namespace reprise
