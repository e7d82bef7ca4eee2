// SPDX-License-Identifier: MIT
#include "replay/plan/async_depth.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr int64_t kLink = 1 << 2, kHardLink = 1 << 3;  // IOSQE_IO_LINK, IOSQE_IO_HARDLINK

}  // namespace

void AsyncDepth::see(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    const uint32_t number = block.request[i];
    if (row.is(Trait::submits)) {
        if (block.task != last_task_) {
            last_task_ = block.task;
            linked_ = false;
        }
        const bool follows = linked_;
        linked_ = kind == OpKind::uring_submit && (block.flags[i] & (kLink | kHardLink)) != 0;
        if (number == 0 || block.result[i] < 0 || !async_request(block, i).on_storage()) {
            return;
        }
        if (const auto known = requests_.find(number); known != requests_.end() || requests_.size() < kMost) {
            Request& request = requests_[number];
            request.task = block.task;
            request.begin = block.begin[i];
            request.follows = follows;
        }
    } else if (row.is(Trait::completes) && number != 0) {
        // Another task, seen before, may have made it or may yet.
        if (const auto known = requests_.find(number); known != requests_.end() || requests_.size() < kMost) {
            requests_[number].end = block.begin[i];
        }
    }
}

uint32_t AsyncDepth::greatest() const {
    std::vector<std::tuple<TaskId, int64_t, int>> changes;
    for (const auto& [number, request] : requests_) {
        if (request.task != 0 && request.end >= request.begin && !request.follows) {
            changes.emplace_back(request.task, request.begin, 1);
            changes.emplace_back(request.task, request.end, -1);  // before those that begin then
        }
    }
    std::sort(changes.begin(), changes.end());
    int64_t now = 0, most = 0;
    for (const auto& [task, when, change] : changes) {
        now += change;
        most = std::max(most, now);
    }
    return static_cast<uint32_t>(most);
}

std::string made_one_by_one(uint32_t depth) {
    return "asynchronous requests were made one by one; the recording had up to " + format_count(depth) + " at a time";
}

}  // namespace reprise
