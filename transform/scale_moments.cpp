// SPDX-License-Identifier: MIT
#include "transform/scale_moments.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

namespace reprise {
namespace {

constexpr size_t kMostCandidates = 1 << 16;

template <class Of>
auto commonest(const std::vector<size_t>& of, Of&& value) {
    std::map<decltype(value(size_t{0})), size_t> count;
    for (const size_t i : of) {
        ++count[value(i)];
    }
    return std::max_element(count.begin(), count.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

}  // namespace

Moments::Moments(const ScaleRecording& recording) : recording_(recording) {
    find_readers();
    find_leader();
    find_lanes();
    find_streams();
    find_checkpoints();
    find_moments();
}

void Moments::find_readers() {
    reads_.resize(recording_.tasks().size());
    for (const SampleUnit& unit : recording_.units()) {
        total_ += unit.bytes > 0 ? 1 : 0;
        reads_[unit.task] += unit.bytes > 0 ? 1 : 0;
        if (unit.bytes > 0) {
            files_read_.push_back(unit.file);
        }
    }
    std::set<std::pair<uint32_t, TaskId>> known;
    std::vector<size_t> in_epoch(recording_.epochs().size());
    for (const SampleUnit& unit : recording_.units()) {
        if (unit.bytes > 0 && known.emplace(unit.epoch, unit.task).second) {
            readers_ = std::max(readers_, ++in_epoch[unit.epoch]);
        }
    }
}

/// Ops of a task by which it learns of samples that were read since. `seldom`: of any number of them, and at times of
/// much of an epoch at once, so that no two such moments are alike.
std::vector<uint32_t> Moments::arrivals(TaskId id, uint64_t& learned, bool& seldom) const {
    std::vector<uint32_t> ops;
    std::map<uint64_t, size_t> batches;
    CausalPast past(recording_);
    const auto& edges = task(id).edges;
    for (size_t i = 0; i < edges.size();) {
        const uint32_t op = edges[i].op;
        for (; i < edges.size() && edges[i].op == op; ++i) {
        }
        const uint64_t before = past.units();
        past.extend(id, op + 1);
        if (past.units() > before) {
            ops.push_back(op);
            ++batches[past.units() - before];
        }
    }
    learned = past.units();
    const auto& epochs = recording_.epochs();
    const bool regular =
        std::any_of(batches.begin(), batches.end(), [&](const auto& batch) { return batch.second * 2 > ops.size(); });
    seldom =
        !regular && !batches.empty() && batches.rbegin()->first * 4 > *std::max_element(epochs.begin(), epochs.end());
    return ops;
}

void Moments::find_leader() {
    std::vector<std::pair<size_t, TaskId>> by_edges;
    for (TaskId id = 1; id < reads_.size(); ++id) {
        if (task(id).edges.size() >= 4 && reads_[id] * 10 <= total_) {
            by_edges.emplace_back(task(id).edges.size(), id);
        }
    }
    std::sort(by_edges.rbegin(), by_edges.rend());
    by_edges.resize(std::min<size_t>(by_edges.size(), 12));
    std::sort(by_edges.begin(), by_edges.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [edges, id] : by_edges) {
        uint64_t learned = 0;
        bool seldom = false;
        std::vector<uint32_t> ops = arrivals(id, learned, seldom);
        if (!seldom && learned * 5 >= total_ * 4 && ops.size() >= 4 && ops.size() > arrivals_.size() * 2) {
            leader_ = id;
            by_causes_ = true;
            arrivals_ = std::move(ops);
        }
    }
    if (by_causes_) {
        return;
    }
    leader_ = static_cast<TaskId>(std::max_element(reads_.begin(), reads_.end()) - reads_.begin());
    for (const uint32_t number : task(leader_).units) {
        if (recording_.units()[number].bytes > 0) {
            arrivals_.push_back(recording_.units()[number].first);
        }
    }
    keep_pauses();
}

/// Of one reader's accesses those after which it did something else for long, where there are such: the first of a
/// batch.
void Moments::keep_pauses() {
    const auto& begin = task(leader_).begin;
    std::vector<int64_t> gaps;
    int64_t before = begin.empty() ? 0 : begin.front();
    std::vector<int64_t> last;
    for (const uint32_t number : task(leader_).units) {
        const SampleUnit& unit = recording_.units()[number];
        if (unit.bytes > 0) {
            gaps.push_back(unit.begin - before);
            // Where the access ended, and not where it began: one that waited for the device is no pause.
            before = begin[std::min<size_t>(unit.last + size_t{1}, begin.size() - 1)];
        }
    }
    if (gaps.size() < 8) {
        return;
    }
    std::vector<int64_t> sorted(gaps.begin() + 1, gaps.end());
    std::sort(sorted.begin(), sorted.end());
    const int64_t middle = sorted[sorted.size() / 2];
    const auto long_from = std::upper_bound(sorted.begin(), sorted.end(), 4 * middle + 500'000);
    const auto many = static_cast<size_t>(sorted.end() - long_from);
    if (many < 4) {
        return;
    }
    const int64_t typical = *(long_from + static_cast<std::ptrdiff_t>(many / 2));
    const auto least = static_cast<int64_t>(
        std::sqrt(static_cast<double>(std::max<int64_t>(middle, 1)) * static_cast<double>(typical)));
    std::vector<uint32_t> kept;
    for (size_t i = 1; i < gaps.size(); ++i) {
        if (gaps[i] >= least) {
            kept.push_back(arrivals_[i]);
        }
    }
    arrivals_ = std::move(kept);
}

void Moments::find_lanes() {
    std::map<std::pair<TaskId, TaskId>, Lane> lanes;
    for (TaskId to = 1; to < recording_.tasks().size(); ++to) {
        for (const InEdge& edge : task(to).edges) {
            if (edge.kind == EdgeKind::message || edge.kind == EdgeKind::marker) {
                Lane& lane = lanes[{edge.task, to}];
                lane.from = edge.task;
                lane.to = to;
                lane.sent.push_back(edge.source);
                lane.received.push_back(edge.op);
            }
        }
    }
    for (auto& [ends, lane] : lanes) {
        if (lane.sent.size() >= 8) {
            std::sort(lane.sent.begin(), lane.sent.end());
            lanes_.push_back(std::move(lane));
        }
    }
}

uint64_t Moments::flying(const CausalPast& past) const {
    uint64_t hash = 0;
    for (size_t i = 0; i < lanes_.size(); ++i) {
        const Lane& lane = lanes_[i];
        const auto before = [&](const std::vector<uint32_t>& ops, TaskId of) {
            return std::lower_bound(ops.begin(), ops.end(), past.upto()[of]) - ops.begin();
        };
        const auto n = before(lane.sent, lane.from) - before(lane.received, lane.to);
        hash += static_cast<uint64_t>(n) * (i * 0x9e3779b97f4a7c15ull + 0x51afd7ed558ccd1ull);
    }
    return hash;
}

/// Open instances of files that hold many samples, where there are several one after the other: shards.
void Moments::find_streams() {
    const Tables& tables = recording_.log().tables();
    for (HandleId id = 1; id < tables.handles.size(); ++id) {
        const ScaleObject& object = recording_.handles()[id];
        if (object.task != 0 && recording_.class_of(tables.handles[id].file) == SampleClass::records) {
            streams_.push_back(id);
        }
    }
    constexpr size_t kMostStreams = 4096;
    if (streams_.size() < 2 || streams_.size() > kMostStreams) {
        streams_.clear();
    }
}

uint64_t Moments::open_streams(const CausalPast& past) const {
    uint64_t hash = 0;
    for (const HandleId id : streams_) {
        const ScaleObject& object = recording_.handles()[id];
        const bool made = object.op < past.upto()[object.task];
        const bool used = std::any_of(object.uses.begin(), object.uses.end(),
                                      [&](const TaskUse& use) { return use.last >= past.upto()[use.task]; });
        hash += made && used ? (id + 1) * 0x9e3779b97f4a7c15ull : 0;
    }
    return hash;
}

/// The epoch of which some is before and some after; UINT32_MAX where it is not one.
uint32_t Moments::epoch_at(const CausalPast& past) const {
    const auto& all = recording_.epochs();
    // What lies between epochs is in none: the first access of the next one ends an epoch.
    uint32_t epoch = 0;
    while (epoch + 1 < all.size() && past.epochs()[epoch + 1] > recording_.early(epoch + 1)) {
        ++epoch;
    }
    for (uint32_t before = 0; before < epoch; ++before) {
        if (past.epochs()[before] + all[before] / 50 < all[before]) {
            return UINT32_MAX;
        }
    }
    return epoch;
}

void Moments::walk(const Visit& visit) const {
    CausalPast past(recording_);
    const auto& begin = task(leader_).begin;
    const size_t step = arrivals_.size() / kMostCandidates + 1;
    // Who is further behind than loaders are ahead is not held by the leader's causes; nor is who has come to its end.
    const int64_t span = begin[arrivals_.back()] - begin[arrivals_.front()];
    const int64_t round = span / static_cast<int64_t>(arrivals_.size());
    const int64_t lag = by_causes_ ? round * static_cast<int64_t>(16 + 4 * readers_) : 0;
    for (size_t i = 0; i < arrivals_.size(); i += step) {
        const int64_t time = begin[arrivals_[i]];
        past.extend(leader_, arrivals_[i]);
        for (TaskId id = 1; id < recording_.tasks().size(); ++id) {
            const auto& of = task(id).begin;
            const uint32_t next = past.upto()[id];
            if (id == leader_ || next >= of.size()) {
                continue;
            }
            if (by_causes_ && task(id).end < time - 2 * round) {
                past.extend(id, static_cast<uint32_t>(of.size()));
            } else if (of[next] < time - lag) {
                past.extend_to(id, time);
            }
        }
        visit(arrivals_[i], time, past);
    }
}

void Moments::find_moments() {
    each([&](uint32_t op, int64_t time, const CausalPast& past) {
        if (!moments_.empty()) {
            moments_.back().until_next = past.units() - moments_.back().units;
            moments_.back().reader = past.last_reader();
        }
        const uint32_t epoch = epoch_at(past);
        const uint64_t of_epoch = epoch == UINT32_MAX ? 0 : past.epochs()[epoch];
        moments_.push_back(
            {op, time, past.units(), epoch, of_epoch, 0, flying(past), open_streams(past), saved(past), 0});
    });
}

void Moments::find_checkpoints() {
    const Tables& tables = recording_.log().tables();
    checkpoints_.resize(recording_.tasks().size());
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const ScaleObject& object = recording_.files()[id];
        if (object.task != 0 && tables.files[id].role == Role::checkpoint) {
            checkpoints_[object.task].push_back(object.op);
        }
    }
    for (auto& ops : checkpoints_) {
        std::sort(ops.begin(), ops.end());
    }
}

uint64_t Moments::saved(const CausalPast& past) const {
    uint64_t count = 0;
    for (TaskId id = 1; id < checkpoints_.size(); ++id) {
        const auto& ops = checkpoints_[id];
        count += static_cast<uint64_t>(std::lower_bound(ops.begin(), ops.end(), past.upto()[id]) - ops.begin());
    }
    return count;
}

/// Those that are the first after a checkpoint, where an epoch has some: repeated, they stay as many steps apart.
std::vector<size_t> Moments::after_checkpoints(const std::vector<size_t>& moments) const {
    std::vector<size_t> first;
    for (size_t i = 1; i < moments.size(); ++i) {
        if (moments_[moments[i]].saved != moments_[moments[i - 1]].saved) {
            first.push_back(moments[i]);
        }
    }
    return first.size() >= 3 ? first : moments;
}

std::vector<size_t> Moments::alike(uint32_t epoch) const {
    std::vector<size_t> all;
    for (size_t i = 0; i < moments_.size(); ++i) {
        if (moments_[i].epoch == epoch) {
            all.push_back(i);
        }
    }
    const size_t edge = by_causes_ ? std::max<size_t>(2 * readers_ + 1, 2) : 1;
    if (all.size() < 2 * edge + 2) {
        return {};
    }
    all = std::vector<size_t>(all.begin() + static_cast<std::ptrdiff_t>(edge),
                              all.end() - static_cast<std::ptrdiff_t>(edge));
    all = after_checkpoints(all);
    const auto batch = commonest(all, [&](size_t i) { return moments_[i].until_next; });
    // Reads of a stream do not end where batches do.
    const auto near = [&](uint64_t units) { return units * 8 >= batch * 7 && units * 8 <= batch * 9; };
    const auto typical = [&](size_t i) { return near(moments_[i].until_next) && near(moments_[i - 1].until_next); };
    for (const bool strict : {true, false}) {
        std::vector<size_t> kept;
        std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [&](size_t i) { return !strict || typical(i); });
        if (kept.size() < 2) {
            continue;
        }
        const auto [reader, flies] =
            commonest(kept, [&](size_t i) { return std::pair(moments_[i].reader, moments_[i].flying); });
        std::vector<size_t> same;
        std::copy_if(kept.begin(), kept.end(), std::back_inserter(same), [&, r = reader, f = flies](size_t i) {
            return moments_[i].reader == r && moments_[i].flying == f;
        });
        if (same.size() >= 3 || !strict) {
            return same.size() >= 2 ? same : kept;
        }
    }
    return all;
}

std::pair<size_t, size_t> Moments::under_way(uint32_t epoch) const {
    constexpr size_t kEach = 2;
    const auto& epochs = recording_.epochs();
    const uint64_t begin = std::accumulate(epochs.begin(), epochs.begin() + epoch, uint64_t{0});
    std::vector<size_t> all;  // whose next batch is one of the epoch
    std::map<TaskId, size_t> readers;
    for (size_t i = 0; i < moments_.size(); ++i) {
        if (moments_[i].units >= begin && moments_[i].units < begin + epochs[epoch] && moments_[i].until_next != 0) {
            all.push_back(i);
            readers[moments_[i].reader] = 0;
        }
    }
    // How many it takes until each has had its own.
    const auto rounds = [&](auto at, auto end) {
        size_t lacking = readers.size();
        std::map<TaskId, size_t> had = readers;
        while (lacking != 0 && at != end) {
            lacking -= ++had[moments_[*at].reader] == kEach ? 1 : 0;
            ++at;
        }
        return lacking == 0 ? static_cast<size_t>(end - at) : 0;
    };
    const size_t after = rounds(all.begin(), all.end()), before = rounds(all.rbegin(), all.rend());
    if (after == 0 || before == 0) {
        return {1, 0};
    }
    return {std::max<size_t>(all[all.size() - after], 1), all[before]};
}

std::vector<size_t> Moments::furthest_alike(uint32_t epoch, const std::vector<size_t>& same) const {
    const Moment &front = moments_[same.front()], &back = moments_[same.back()];
    if (!by_causes_ || front.open != back.open || front.saved != back.saved) {
        return same;
    }
    const auto [first, last] = under_way(epoch);
    std::map<TaskId, std::vector<size_t>> by_reader;
    for (size_t i = first; i <= last; ++i) {
        const Moment& now = moments_[i];
        if (now.epoch == epoch && now.until_next == front.until_next &&
            moments_[i - 1].until_next == front.until_next && now.flying == front.flying && now.open == front.open &&
            now.saved == front.saved) {
            by_reader[now.reader].push_back(i);
        }
    }
    const auto span = [&](const std::vector<size_t>& of) {
        return moments_[of.back()].units - moments_[of.front()].units;
    };
    std::vector<size_t> best = same;
    for (const auto& [reader, moments] : by_reader) {
        best = span(moments) > span(best) ? moments : best;
    }
    return best;
}

}  // namespace reprise
