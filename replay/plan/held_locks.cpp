// SPDX-License-Identifier: MIT
#include "replay/plan/held_locks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "formats/oplog/op_fields.h"

namespace reprise {
namespace {

constexpr int64_t kShort = 10'000'000;  // ns; the interpreter lock of Python is asked for every 5 ms
constexpr size_t kMostWaits = 100'000;
constexpr double kSomeSpan = 0.02;
constexpr int64_t kPartOfWait = 10;  // a tenth

}  // namespace

void HeldLocks::see(const OpBlock& block, size_t i) {
    if (static_cast<OpKind>(block.kind[i]) != OpKind::wait || !is_lock_wait(block.arg[i]) ||
        block.duration[i] < kShort || block.begin[i] > INT64_MAX - block.duration[i] || waits_.size() == kMostWaits ||
        block.task >= plan_.tasks.size() || plan_.tasks[block.task].guard != 0) {
        return;
    }
    waits_.push_back({block.begin[i], block.begin[i] + block.duration[i], block.task});
}

int64_t HeldLocks::waited(int64_t span_ns) {
    const auto longest = [](const std::map<TaskId, int64_t>& of_task) {
        int64_t most = 0;
        for (const auto& [task, ns] : of_task) {
            most = std::max(most, ns);
        }
        return most;
    };
    const auto least = static_cast<int64_t>(static_cast<double>(span_ns) * kSomeSpan);
    std::map<TaskId, int64_t> all, held;
    int64_t longest_wait = 0;
    for (const Wait& wait : waits_) {
        all[wait.task] += wait.end - wait.begin;
        longest_wait = std::max(longest_wait, wait.end - wait.begin);
    }
    if (longest(all) <= least) {
        return 0;
    }
    std::sort(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) { return a.begin < b.begin; });
    std::map<std::pair<size_t, TaskId>, int64_t> in_calls;
    OpBlock block;
    for (const BlockInfo& where : plan_.log->blocks()) {
        plan_.log->decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            if ((!works_on_data(kind) && !info(kind).is(Trait::syncs)) ||
                block.begin[i] > INT64_MAX - block.duration[i] || !keeps(plan_, block, i)) {
                continue;
            }
            const int64_t begin = block.begin[i], end = begin + block.duration[i];
            auto wait = std::lower_bound(waits_.begin(), waits_.end(), end,
                                         [](const Wait& each, int64_t time) { return each.begin < time; });
            while (wait != waits_.begin() && (--wait)->begin > begin - longest_wait) {
                const int64_t both = std::min(wait->end, end) - std::max(wait->begin, begin);
                if (wait->task != block.task && both > 0) {
                    in_calls[{static_cast<size_t>(wait - waits_.begin()), block.task}] += both;
                }
            }
        }
        plan_.log->forget(where);
    }
    size_t last = waits_.size();
    for (const auto& [which, ns] : in_calls) {
        const Wait& wait = waits_[which.first];
        if (which.first != last && ns >= (wait.end - wait.begin) / kPartOfWait) {
            held[wait.task] += wait.end - wait.begin;
            last = which.first;
        }
    }
    return longest(held) > least ? longest(held) : 0;
}

}  // namespace reprise
