// SPDX-License-Identifier: MIT
#include "replay/run/epoch_proof.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace reprise {
namespace {

/// Files looked at where an epoch begins.
constexpr size_t kMostFiles = 500;
/// Bytes of a result that say that an op moved data; smaller ones may be numbers of something else.
constexpr int64_t kMoved = 4096;

bool was_performed(const SpoolRow& row) { return (row.begin & kNotPerformed) == 0 && (row.begin & kSpoolTicks) != 0; }

/// The first of `count` rows that was performed and ends after `ns`, or `count`.
uint64_t first_after(const SpoolRow* rows, uint64_t count, int64_t ns, const TickTimeline& clock) {
    uint64_t low = 0, high = count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        uint64_t known = mid;
        while (known < high && !was_performed(rows[known])) {
            ++known;
        }
        if (known == high || clock.ns(rows[known].end) > ns) {
            high = mid;
        } else {
            low = known + 1;
        }
    }
    return low;
}

}  // namespace

std::optional<double> ReadCurve::at(int64_t ns, const Part& part) const {
    if (points_.empty()) {
        return std::nullopt;
    }
    const auto next = std::lower_bound(points_.begin(), points_.end(), ns,
                                       [](const Point& point, int64_t time) { return point.ns < time; });
    if (next == points_.end()) {
        return static_cast<double>(points_.back().bytes);
    }
    const auto bytes = static_cast<double>(next->bytes);
    if (next == points_.begin() || next->ns == ns) {
        return bytes;
    }
    const Point& before = *(next - 1);
    const double of_time = static_cast<double>(ns - before.ns) / static_cast<double>(next->ns - before.ns);
    const auto from = static_cast<double>(before.bytes);
    if (from == bytes) {
        return from;
    }
    return from + (bytes - from) * (part ? part(before.ns, ns, next->ns).value_or(of_time) : of_time);
}

std::optional<uint64_t> ReadCurve::between(int64_t from, int64_t to, const Part& part) const {
    const std::optional<double> first = at(from, part), last = at(to, part);
    if (!first || !last) {
        return std::nullopt;
    }
    return static_cast<uint64_t>(std::llround(std::max(*last - *first, 0.0)));
}

EpochWatch::EpochWatch(const Plan& plan, const std::vector<LogEpoch>& epochs, std::filesystem::path root,
                       const ControlGroup* group, const CacheKeeper* cache)
    : plan_(plan), epochs_(epochs), root_(std::move(root)), reads_(plan, disk_of(root_), group), cache_(cache) {}

void EpochWatch::tick(SharedRun& run, int64_t now_ns) {
    if (epochs_.empty()) {
        return;
    }
    if (const auto counter = read_device_counter(root_)) {
        device_.add(now_ns, counter->read_bytes);
    }
    if (const std::optional<uint64_t> bytes = reads_.look(run)) {
        own_.add(now_ns, *bytes);
    }
    while (begun_ < epochs_.size()) {
        const std::vector<LogEpoch::Access>& first = epochs_[begun_].first;
        const bool begun = std::any_of(first.begin(), first.end(), [&](const LogEpoch::Access& access) {
            return run.task(access.task).done.load(std::memory_order_relaxed) > access.op;
        });
        if (!begun) {
            break;
        }
        ++begun_;
        look();
    }
}

/// In a thread: the run goes on, and is watched on.
void EpochWatch::look() {
    using namespace std::chrono_literals;
    const bool busy =
        !resident_.empty() && resident_.back().valid() && resident_.back().wait_for(0s) != std::future_status::ready;
    resident_.emplace_back();
    if (cache_ != nullptr && resident_.size() > 1 && !busy) {  // what was there before the first is known
        resident_.back() =
            std::async(std::launch::async, [cache = cache_] { return cache->resident_share(kMostFiles); });
    }
}

std::optional<int64_t> EpochWatch::begin_of(const LogEpoch& epoch, SharedRun& run, const TickTimeline& clock) const {
    std::optional<int64_t> begin;
    for (const LogEpoch::Access& access : epoch.first) {
        if (run.task(access.task).done.load(std::memory_order_acquire) <= access.op) {
            continue;
        }
        const SpoolRow& row = run.spool(plan_.tasks[access.task].spool_first)[access.op];
        if ((row.begin & kSpoolTicks) != 0) {  // not left out by the filter
            const int64_t ns = clock.ns(row.begin & kSpoolTicks);
            begin = std::min(begin.value_or(ns), ns);
        }
    }
    return begin;
}

std::optional<double> EpochWatch::reading_before(int64_t from, int64_t ns, int64_t to, SharedRun& run,
                                                 const TickTimeline& clock) const {
    int64_t all = 0, before = 0;
    for (TaskId id = 1; id < plan_.tasks.size(); ++id) {
        const SpoolRow* rows = run.spool(plan_.tasks[id].spool_first);
        const uint64_t done = run.task(id).done.load(std::memory_order_acquire);
        for (uint64_t at = first_after(rows, done, from, clock); at < done; ++at) {
            const SpoolRow& row = rows[at];
            if (!was_performed(row)) {
                continue;
            }
            const int64_t begin = std::max(clock.ns(row.begin & kSpoolTicks), from);
            if (begin >= to) {
                break;
            }
            if (row.result >= kMoved) {
                const int64_t end = std::min(clock.ns(row.end), to);
                all += std::max<int64_t>(end - begin, 0);
                before += std::max<int64_t>(std::min(end, ns) - begin, 0);
            }
        }
    }
    return all > 0 ? std::optional(static_cast<double>(before) / static_cast<double>(all)) : std::nullopt;
}

std::vector<EpochProof> EpochWatch::finish(SharedRun& run, const TickTimeline& clock, int64_t end_ns) {
    const int64_t start = run.control().start_ns;
    const ReadCurve::Part part = [&](int64_t from, int64_t ns, int64_t to) {
        return reading_before(from, ns, to, run, clock);
    };
    std::vector<EpochProof> proofs;
    for (size_t at = 0; at < epochs_.size(); ++at) {
        const std::optional<int64_t> begin = begin_of(epochs_[at], run, clock);
        if (!begin) {
            break;  // the run did not get there
        }
        EpochProof proof;
        proof.accesses = epochs_[at].accesses;
        proof.begin_ns = *begin - start;
        if (at < resident_.size() && resident_[at].valid()) {
            proof.resident_before = resident_[at].get();
        }
        proofs.push_back(proof);
    }
    for (size_t at = 0; at < proofs.size(); ++at) {
        EpochProof& proof = proofs[at];
        const bool last = at + 1 == proofs.size();
        const int64_t end = last ? std::max(end_ns - start, proof.begin_ns) : proofs[at + 1].begin_ns;
        proof.elapsed_ns = std::max<int64_t>(end - proof.begin_ns, 0);
        proof.device_bytes = device_.between(start + proof.begin_ns, start + end, part);
        // A file system that reads in threads of its own accounts nothing to the run.
        proof.own_bytes =
            own_.rises() || !device_.rises() ? own_.between(start + proof.begin_ns, start + end, part) : std::nullopt;
        proof.resident_after = last ? std::nullopt : proofs[at + 1].resident_before;
    }
    return proofs;
}

void EpochWatch::put_ends(std::vector<EpochProof>& proofs, const CacheReport& report) {
    if (proofs.empty() || report.bytes == 0) {
        return;
    }
    const auto share = [&](const std::optional<uint64_t>& bytes) {
        return bytes ? std::optional(static_cast<double>(*bytes) / static_cast<double>(report.bytes)) : std::nullopt;
    };
    proofs.front().resident_before = share(report.before);
    proofs.back().resident_after = share(report.after);
}

}  // namespace reprise
