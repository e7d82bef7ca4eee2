// SPDX-License-Identifier: MIT
#include "formats/oplog/request_matcher.h"

#include <algorithm>

namespace reprise {
namespace {

/// Of a task that never enters its ring, because the kernel polls it, so many requests wait for a ring at most.
constexpr size_t kMostWaiting = 65536;

}  // namespace

std::string ring_name(const SeenRing& ring) {
    if (ring.aio) {
        return "libaio";
    }
    return ring.fd < 0 ? "io_uring" : "io_uring, fd " + std::to_string(ring.fd);
}

void RequestMatcher::add(TaskId task, const Op& op) {
    const OpInfo& row = info(op.kind);
    if (!row.is(Trait::async)) {
        return;
    }
    if (row.is(Trait::submits)) {
        submit(task, op);
    } else if (row.is(Trait::completes)) {
        complete(op);
    } else if (op.kind == OpKind::uring_enter) {
        tasks_.resize(std::max<size_t>(tasks_.size(), size_t{task} + 1));
        tasks_[task].handle = op.handle;
        tasks_[task].fd = op.fd;
        assign(task);
    }
}

void RequestMatcher::finish() {
    for (TaskId task = 0; task < tasks_.size(); ++task) {
        assign(task);
    }
}

void RequestMatcher::submit(TaskId task, const Op& op) {
    if (op.request == 0 || op.result < 0) {
        return;
    }
    DoneRequest request;
    request.number = op.request;
    request.task = task;
    request.kind = op.kind;
    request.file = tables_.file_of(op);
    request.code = op.arg;
    request.what = async_request(op);
    request.begin = end_of(op.begin, std::max<int64_t>(op.duration, 0));
    if (op.kind == OpKind::aio_submit) {
        request.ring = ring_of({process_of(task), 0, true}, -1);
    } else {
        tasks_.resize(std::max<size_t>(tasks_.size(), size_t{task} + 1));
        OfTask& of = tasks_[task];
        of.polled = of.polled || (op.flags & kUringPolled) != 0;
        request.ring = kNoRing;
    }
    if (const auto early = early_.find(op.request); early != early_.end()) {
        request.end = early->second.end;
        request.result = early->second.result;
        early_.erase(early);
        finished(request);
        return;
    }
    open_[op.request] = request;
    if (request.ring == kNoRing) {
        tasks_[task].waiting.push_back(op.request);
        if (tasks_[task].waiting.size() >= kMostWaiting) {
            assign(task);
        }
    }
}

void RequestMatcher::complete(const Op& op) {
    if (op.request == 0) {
        return;
    }
    const Result result{end_of(op.begin, op.duration), op.result};
    const auto open = open_.find(op.request);
    if (open == open_.end()) {
        early_[op.request] = result;  // another task submits it
        return;
    }
    DoneRequest request = open->second;
    open_.erase(open);
    request.end = result.end;
    request.result = result.result;
    finished(request);
}

void RequestMatcher::finished(DoneRequest& request) {
    if (request.ring == kNoRing) {
        std::vector<DoneRequest>& wait = tasks_[request.task].finished;
        wait.push_back(request);
        if (wait.size() >= kMostWaiting) {
            assign(request.task);
        }
    } else if (done_) {
        done_(request);
    }
}

uint32_t RequestMatcher::ring_of(const RingName& name, int32_t fd) {
    const auto [at, fresh] = by_name_.try_emplace(name, static_cast<uint32_t>(rings_.size()));
    if (fresh) {
        SeenRing ring;
        static_cast<RingName&>(ring) = name;
        ring.pid = name.process < tables_.processes.size() ? tables_.processes[name.process].pid : 0;
        ring.fd = fd;
        rings_.push_back(ring);
    }
    return at->second;
}

void RequestMatcher::assign(TaskId task) {
    OfTask& of = tasks_[task];
    if (of.waiting.empty() && of.finished.empty()) {
        return;
    }
    const uint32_t ring = ring_of({process_of(task), of.handle, false}, of.fd);
    rings_[ring].polled = rings_[ring].polled || of.polled;
    of.polled = false;
    for (const uint32_t number : of.waiting) {
        if (const auto open = open_.find(number); open != open_.end()) {
            open->second.ring = ring;
        }
    }
    of.waiting.clear();
    for (DoneRequest& request : of.finished) {
        request.ring = ring;
        if (done_) {
            done_(request);
        }
    }
    of.finished.clear();
}

ProcessId RequestMatcher::process_of(TaskId task) const {
    return task < tables_.tasks.size() ? tables_.tasks[task].process : 0;
}

}  // namespace reprise
