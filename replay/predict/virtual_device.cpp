// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_device.h"

#include <algorithm>
#include <vector>

namespace reprise {
namespace {

constexpr size_t kMostChannels = 4096;
/// Whether calls one after the other that took so long were at what all together may do: a limit decided how long they
/// took, which counts by itself.
bool at_limit(double bytes_per_s, int64_t bytes, double took_ns) {
    constexpr double kAtLimit = 0.8;
    return static_cast<double>(bytes) > kAtLimit * bytes_per_s * took_ns / 1e9;
}

/// What writes past the cache move in a second, at most. A limit with a burst lets now more and now less through while
/// it is measured: there it is the middle of what came close to the most.
double most_written(const std::vector<DepthRow>& rows, bool limited) {
    constexpr double kClose = 0.8;
    std::vector<double> rates;
    rates.reserve(rows.size());
    for (const DepthRow& row : rows) {
        rates.push_back(row.per_s * static_cast<double>(row.bytes));
    }
    std::sort(rates.begin(), rates.end());
    if (rates.empty() || !limited) {
        return rates.empty() ? 0 : rates.back();
    }
    const auto close = std::lower_bound(rates.begin(), rates.end(), kClose * rates.back());
    return close[(rates.end() - close) / 2];
}

}  // namespace

VirtualDevice::VirtualDevice(const StorageModel& model)
    : model_(model),
      reads_by_depth_(model.read_depth),
      writes_by_depth_(model.write_depth),
      most_written_(most_written(model.write_depth, model.read_burst_ns > 0)),
      channel_free_(std::min(static_cast<size_t>(std::max(model.parallelism, 1)), kMostChannels)),
      bytes_{model.read_bytes_per_s, model.read_burst_ns, model.read_step_ns},
      requests_{model.reads_per_s, model.read_burst_ns, model.read_step_ns},
      // By depth the limit hardly shows: what stood still is not in there. Without one, it is no more than what one
      // thread has written back.
      writes_{model.read_burst_ns > 0 ? model.writes_per_s : 0, model.read_burst_ns, model.read_step_ns} {}

int64_t VirtualDevice::Limit::pass(double amount, int64_t begin) {
    if (per_second_ <= 0) {
        return begin;
    }
    const auto takes = static_cast<int64_t>(amount * 1e9 / per_second_);
    if (step_ > 0) {
        return pass_in_steps(takes, begin);
    }
    free_ = std::max(free_, begin) + takes;
    return free_ - burst_;
}

int64_t VirtualDevice::Limit::pass_in_steps(int64_t takes, int64_t begin) {
    // At rest: steps begin anew. The kernel ends a slice one step after its last request, rounded up to whole steps of
    // its clock; a pause until then counts. Where that clock stands in a step, no recording tells.
    if (last_ == -kRestedYet || begin > ((last_ + step_ - 1) / step_ + 1) * step_) {
        start_ = free_ = begin;
    }
    begin = std::max(begin, last_);  // one after the other
    const int64_t allowed = start_ + (std::max<int64_t>(begin - start_ - 1, 0) / step_ + 1) * step_;
    free_ = std::max(free_, allowed - 2 * step_) + takes;
    return last_ = free_ > allowed ? free_ : begin;
}

int64_t& VirtualDevice::channel() { return *std::min_element(channel_free_.begin(), channel_free_.end()); }

/// When a request is over that the device begins at once, and that takes `alone_ns` where nothing else is in flight.
int64_t VirtualDevice::beside_others(const DepthCurve& curve, int64_t bytes, int64_t now, double alone_ns) {
    const double work = curve.work_ns(bytes);
    const double depth = 1 + in_flight_.others(work, now);
    const int64_t end = now + static_cast<int64_t>(alone_ns + curve.extra_ns(bytes, depth));
    in_flight_.add(work, end);
    return end;
}

double VirtualDevice::alone_ns(int64_t bytes, By by) const {
    const auto called = static_cast<double>(model_.read_ns(bytes));
    if (reads_by_depth_.empty()) {
        return called;
    }
    const bool limited = model_.read_burst_ns > 0 && at_limit(model_.read_bytes_per_s, bytes, called);
    const bool ring = by == By::ring && reads_by_depth_.covers(bytes);
    const double taken = reads_by_depth_.taken_ns(bytes, 1);
    if (ring && !limited && model_.inline_reads) {
        // All of it is work of the processor, what the ring itself costs too; its call is an op of its own.
        return std::max(taken - static_cast<double>(model_.call_ns), called);
    }
    return limited || ring ? std::min(taken, called) : called;
}

int64_t VirtualDevice::read(int64_t bytes, int64_t now, By by) {
    if (!reads_by_depth_.empty()) {
        const int64_t passed = std::max(bytes_.pass(static_cast<double>(bytes), now), requests_.pass(1, now));
        return std::max(beside_others(reads_by_depth_, bytes, now, alone_ns(bytes, by)), passed);
    }
    int64_t& free = channel();
    const int64_t begin = std::max(now, free);
    const int64_t passed = std::max(bytes_.pass(static_cast<double>(bytes), begin), requests_.pass(1, begin));
    return free = std::max(begin + model_.read_ns(bytes), passed);
}

int64_t VirtualDevice::write(int64_t bytes, int64_t now, WriteBack& cache, By by) {
    if (!writes_by_depth_.empty()) {
        const int64_t written = std::max(cache.write_direct(bytes, most_written_, now), writes_.pass(1, now));
        const auto called = static_cast<double>(model_.direct_write_ns(bytes));
        const bool own = by == By::ring || model_.direct_write.empty() || at_limit(most_written_, bytes, called);
        const double alone = !own                             ? called
                             : writes_by_depth_.covers(bytes) ? writes_by_depth_.taken_ns(bytes, 1)
                                                              : static_cast<double>(model_.read_ns(bytes));
        return std::max(beside_others(writes_by_depth_, bytes, now, alone), written);
    }
    int64_t& free = channel();
    const int64_t begin = std::max(now, free);
    return free = std::max(begin + model_.read_ns(bytes), cache.write(bytes, begin));
}

}  // namespace reprise
