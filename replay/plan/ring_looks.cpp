// SPDX-License-Identifier: MIT
#include "replay/plan/ring_looks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "formats/support/sums.h"
#include "replay/plan/edges_rules.h"

namespace reprise {
namespace {

/// Shorter computing is part of making a request, ns.
constexpr int64_t kLeastLook = 20'000;
/// A task that computes and has results for so many ops on end does more than look.
constexpr size_t kMostSeen = 4096;
/// From a result on to the next request a task takes as long at least, ns.
constexpr int64_t kLeastOwn = 1'000;
/// -ln of how likely results came so near the end by chance. Of chance it is 1 in the mean.
constexpr double kMeanOfLooks = 2.3, kMeanOfChance = 1.5;
/// -ln of how likely chance makes as much of all of them, at most (Chernoff's bound): one in 160,000.
constexpr double kEvidence = 12;
/// Where a look does not say which results were taken, and as much of it at most came after the last of them.
constexpr double kMostOwn = 0.1;

}  // namespace

void RingLooks::follows(TaskId task, uint64_t op) {
    if (task != task_ || op != next_) {
        if (!seen_.empty()) {
            const Seen& last = seen_.back();
            end(0, OpRef::end_of(last.begin, std::max<int64_t>(last.ns, 0)), false);
        }
        seen_.clear();
    }
    task_ = task;
    next_ = op + 1;
}

void RingLooks::computed(TaskId task, uint64_t op, int64_t begin, int64_t ns) {
    follows(task, op);
    if (seen_.size() < kMostSeen) {
        seen_.push_back({op, begin, std::max<int64_t>(ns, 0)});
    }
}

void RingLooks::result(TaskId task, uint64_t op, int64_t begin) {
    follows(task, op);
    if (seen_.size() < kMostSeen) {
        seen_.push_back({op, begin, -1});
    }
}

size_t RingLooks::request(TaskId task, uint64_t op, int64_t begin, uint64_t taken) {
    follows(task, op);
    const size_t look = end(taken, begin, true);
    seen_.clear();
    return look;
}

int64_t RingLooks::computed_before(TaskId task, uint64_t op) {
    follows(task, op);
    int64_t computed = 0;
    for (const Seen& each : std::exchange(seen_, {})) {
        sum(computed, std::max<int64_t>(each.ns, 0));
    }
    return computed < kLeastLook ? 0 : computed;
}

size_t RingLooks::end(uint64_t taken, int64_t begin, bool requests) {
    if (seen_.size() >= kMostSeen) {
        return 0;
    }
    const auto is_result = [](const Seen& each) { return each.ns < 0; };
    const auto is_last = [&](const Seen& each) { return is_result(each) && (taken == 0 || each.op + 1 == taken); };
    auto last = std::find_if(seen_.rbegin(), seen_.rend(), is_last);
    const bool took = last != seen_.rend();
    last = took ? last : std::find_if(seen_.rbegin(), seen_.rend(), is_result);
    if (last == seen_.rend()) {
        return 0;
    }
    RingLook look{task_, ops_.size(), 0, last->op, 0, 0, 0, requests, took};
    int64_t since = kLeastLook;  // the result before
    for (const Seen& each : seen_) {
        if (each.op > last->op) {
            break;
        }
        if (is_result(each)) {
            look.arrivals += since >= kLeastLook ? 1 : 0;
            since = 0;
        } else {
            sum(since, each.ns);
            sum(look.looked_ns, each.ns);
        }
    }
    if (look.looked_ns < kLeastLook || __builtin_sub_overflow(begin, last->begin, &look.own_ns)) {
        return 0;
    }
    look.own_ns = std::max(look.own_ns, kLeastOwn);
    for (const Seen& each : seen_) {
        if (took && each.op < last->op && !is_result(each)) {
            ops_.push_back(each.op);
        }
    }
    look.count = ops_.size() - look.first;
    looks_.push_back(look);
    return looks_.size();
}

size_t LookEvidence::length_of(const RingLook& look) {
    const uint64_t all = static_cast<uint64_t>(look.looked_ns) + static_cast<uint64_t>(look.own_ns);
    return static_cast<size_t>(std::bit_width(all));
}

void LookEvidence::add(const RingLook& look) {
    if (!look.requests) {
        return;
    }
    const double own = static_cast<double>(look.own_ns), all = own + static_cast<double>(look.looked_ns);
    Length& length = lengths_[length_of(look)];
    length.count += 1;
    length.evidence -= look.took ? std::log(std::min(1.0, look.arrivals * own / all)) : 0;
    sum(length.ns, look.looked_ns);
}

void LookEvidence::decide() {
    double more = 0;
    for (const Length& each : lengths_) {
        if (each.count > 0 && each.evidence >= kMeanOfLooks * each.count) {
            more += each.evidence - each.count - each.count * std::log(each.evidence / each.count);
        }
    }
    unclear_ns_ = 0;
    for (Length& each : lengths_) {
        each.waited = each.count > 0 && more >= kEvidence && each.evidence >= kMeanOfLooks * each.count;
        const bool unclear = !each.waited && each.count > 0 && each.evidence >= kMeanOfChance * each.count;
        sum(unclear_ns_, unclear ? each.ns : 0);
    }
}

bool LookEvidence::waited(const RingLook& look) const {
    const double own = static_cast<double>(look.own_ns);
    return look.took && lengths_[length_of(look)].waited &&
           (look.requests || own <= kMostOwn * (own + static_cast<double>(look.looked_ns)));
}

}  // namespace reprise
