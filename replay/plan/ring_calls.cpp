// SPDX-License-Identifier: MIT
#include "replay/plan/ring_calls.h"

#include <algorithm>

#include "replay/plan/plan.h"

namespace reprise {
namespace {

using Does = AsyncRequest::Does;

/// What a request that stands for the call does; other: none stands for it.
Does does_of(OpKind kind) {
    if (kind == OpKind::open) {
        return Does::open;
    }
    if (kind == OpKind::close) {
        return Does::close;
    }
    if (kind == OpKind::statx) {
        return Does::stat;
    }
    if (kind == OpKind::splice) {
        return Does::splice;
    }
    if (kind == OpKind::madvise) {
        return Does::advise_memory;
    }
    const bool makes = kind == OpKind::mkdir || kind == OpKind::symlink || kind == OpKind::link;
    const bool ends = kind == OpKind::unlink || kind == OpKind::rmdir || kind == OpKind::rename;
    return makes ? Does::make_name : ends ? Does::end_name : Does::other;
}

}  // namespace

const RingCall* TaskRingCalls::submitted_by(uint64_t op) const {
    const auto at = std::lower_bound(by_submission.begin(), by_submission.end(), op,
                                     [](const RingCall& call, uint64_t number) { return call.submitted < number; });
    return at != by_submission.end() && at->submitted == op ? &*at : nullptr;
}

void RingCallScan::see(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const uint64_t op = block.first + i;
    const uint32_t request = block.request[i];
    if (kind == OpKind::uring_submit) {
        const AsyncRequest asked = async_request(block, i);
        if (stands_for_call(block, i, asked)) {
            waiting_[request] = {block.task, op, asked.does};
        }
        return;
    }
    if (kind == OpKind::uring_complete) {
        const auto submitted = waiting_.find(request);
        if (submitted == waiting_.end()) {
            return;
        }
        const Submitted asked = submitted->second;
        waiting_.erase(submitted);
        if (last_ && last_->task == block.task && asked.task == block.task && last_->call.called + 1 == op &&
            does_of(last_->call.kind) == asked.does) {
            Found& found = found_.insert_or_assign(request, *last_).first->second;
            found.call.submitted = asked.op;
            found.call.request = request;
        }
        return;
    }
    if (does_of(kind) == Does::other) {
        return;
    }
    last_ = Found{block.task, {}};
    RingCall& call = last_->call;
    call.called = op;
    call.kind = kind;
    call.handle = block.handle[i];
    call.fd = block.fd[i];
    call.file = block.file[i];
    call.file2 = block.file2[i];
    call.flags = block.flags[i];
    call.mode = block.mode[i];
    call.arg = block.arg[i];
    call.map = block.map[i];
    call.offset = block.offset[i];
    call.size = block.size[i];
    call.text = block.text[i];
    call.result = block.result[i];
}

void RingCallScan::finish(Plan& plan) const {
    for (const auto& [request, found] : found_) {
        TaskRingCalls& calls = plan.tasks[found.task].requests.calls;
        calls.by_submission.push_back(found.call);
        calls.by_call.emplace_back(found.call.called, request);
    }
    for (TaskPlan& task : plan.tasks) {
        auto& calls = task.requests.calls.by_submission;
        std::sort(calls.begin(), calls.end(),
                  [](const RingCall& a, const RingCall& b) { return a.submitted < b.submitted; });
        auto& by_call = task.requests.calls.by_call;
        std::sort(by_call.begin(), by_call.end());
    }
}

}  // namespace reprise
