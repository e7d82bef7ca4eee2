// SPDX-License-Identifier: MIT
#include "transform/scale_span.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace reprise {
namespace {

class SpanFinder {
public:
    SpanFinder(const ScaleRecording& recording, const Moments& moments, const std::vector<EpochSides>& sides)
        : moments_(moments), sides_(sides) {
        uint64_t before = 0;
        for (const uint64_t epoch : recording.epochs()) {
            before_.push_back(before);
            before += epoch;
        }
    }

    /// Two moments at which as much of each epoch was read, and the loaders were as far ahead: those nearest to the
    /// first at which others of the epoch are alike.
    std::optional<EpochSpan> between_moments(uint32_t first, uint32_t last) const {
        const std::vector<size_t> same = moments_.alike(first);
        if (same.empty() || !regular(first) || !regular(last)) {
            return std::nullopt;
        }
        std::map<State, std::vector<size_t>> later;
        const auto [begin, end] = moments_.under_way(last);
        for (size_t at = begin; at <= end; ++at) {
            if (moments_[at].epoch == last) {
                later[state(at)].push_back(at);
            }
        }
        std::optional<EpochSpan> best;
        size_t least = SIZE_MAX;
        const auto [from_begin, from_end] = moments_.under_way(first);
        for (size_t from = from_begin; from <= from_end; ++from) {
            const size_t away = std::max(from, same.front()) - std::min(from, same.front());
            if (moments_[from].epoch != first || moments_[from].flying != moments_[same.front()].flying) {
                continue;
            }
            const auto like = later.find(state(from));
            if (away >= least || like == later.end()) {
                continue;
            }
            for (const size_t to : like->second) {
                if (one_side(first, from, last, to) && away < least) {
                    best = EpochSpan{first, last, from, to};
                    least = away;
                }
            }
        }
        return best;
    }

private:
    using State = std::tuple<uint64_t, uint64_t, TaskId, uint64_t, uint64_t, uint64_t>;
    State state(size_t at) const {
        const Moment& now = moments_[at];
        return {now.units - before_[now.epoch], now.of_epoch,  now.reader, now.flying,
                moments_[at - 1].until_next,    now.until_next};
    }
    bool one_side(uint32_t first, size_t from, uint32_t last, size_t to) const {
        return (from <= sides_[first].until && to <= sides_[last].until) ||
               (from >= sides_[first].from && to >= sides_[last].from);
    }
    /// The consumer takes batches of one size. Of one that looks now and then, two moments are alike by chance only.
    bool regular(uint32_t epoch) const {
        std::map<uint64_t, size_t> batches;
        size_t all = 0, most = 0;
        for (const Moment& now : moments_.all()) {
            if (now.epoch == epoch) {
                most = std::max(most, ++batches[now.until_next]);
                ++all;
            }
        }
        return most * 2 > all;
    }

    const Moments& moments_;
    const std::vector<EpochSides>& sides_;
    std::vector<uint64_t> before_;  // accesses before each epoch
};

}  // namespace

EpochSpan find_span(const ScaleRecording& recording, const Moments& moments, const std::vector<EpochSides>& sides,
                    uint32_t epochs) {
    const auto recorded = static_cast<uint32_t>(recording.epochs().size());
    const SpanFinder finder(recording, moments, sides);
    if (epochs < recorded) {
        const auto span = finder.between_moments(epochs - 1, recorded - 1);
        return span ? *span : EpochSpan{epochs - 1, recorded - 1};
    }
    for (uint32_t last = recorded - 1; last > 0; --last) {
        if (const auto span = finder.between_moments(last - 1, last)) {
            return *span;
        }
    }
    // Rather one that another one follows.
    return recorded > 2 ? EpochSpan{recorded - 3, recorded - 2} : EpochSpan{0, 1};
}

int64_t end_of_reads(const ScaleRecording& recording, uint32_t epoch) {
    int64_t end = INT64_MIN;
    for (const SampleUnit& unit : recording.units()) {
        if (unit.bytes > 0 && unit.epoch <= epoch) {
            end = std::max(end, recording.tasks()[unit.task].begin[unit.last]);
        }
    }
    return end;
}

Cut cut_after_reads(const ScaleRecording& recording, CausalPast past, uint32_t epoch) {
    for (const SampleUnit& unit : recording.units()) {
        if (unit.bytes > 0 && unit.epoch <= epoch) {
            past.extend(unit.task, unit.last + 1);
        }
    }
    const int64_t time = end_of_reads(recording, epoch);
    for (TaskId id = 1; id < recording.tasks().size(); ++id) {
        past.extend_to(id, time);
    }
    return past.upto();
}

}  // namespace reprise
