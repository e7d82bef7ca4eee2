// SPDX-License-Identifier: MIT
#include "transform/scale_cuts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "formats/support/error.h"
#include "transform/scale_moments.h"
#include "transform/scale_span.h"

namespace reprise {
namespace {

/// Share of reads that may come before the epoch before is over, as of loaders that are ahead.
constexpr double kMostLate = 0.1;
constexpr size_t kMostTiles = 8;  // pieces of an epoch that are repeated apart

class ScoreMaker {
public:
    ScoreMaker(const ScaleRecording& recording, double factor, uint32_t epochs)
        : recording_(recording), factor_(factor), asked_epochs_(epochs) {}

    Score make() {
        if (const std::string why = scaling_obstacle(recording_); !why.empty()) {
            throw bad_input(recording_.log().path().string(), "cannot be scaled: " + why,
                            "see `reprise info --scaling`");
        }
        moments_.emplace(recording_);
        score_.leader = moments_->leader();
        score_.by_causes = moments_->by_causes();
        choose();
        choose_span();
        write_cuts();
        play();
        return std::move(score_);
    }

private:
    const RecordedTask& task(TaskId id) const { return recording_.tasks()[id]; }

    /// What is played of an epoch: from cut to cut, how often.
    struct Tile {
        size_t from = 0, to = 0;  // moments
        int64_t times = 1;
    };

    void choose() {
        const auto& epochs = recording_.epochs();
        tiles_.resize(epochs.size());
        bool any = false;
        for (uint32_t epoch = 0; epoch < epochs.size(); ++epoch) {
            const auto want = static_cast<int64_t>(std::llround(factor_ * static_cast<double>(epochs[epoch])));
            score_.wanted.push_back(static_cast<uint64_t>(want));
            std::vector<size_t> same = moments_->alike(epoch);
            if (same.size() >= 2) {
                const uint64_t kept = epochs[epoch] - units_of({same.front(), same.back()});
                same = static_cast<uint64_t>(want) < kept ? moments_->furthest_alike(epoch, same) : same;
                any = tiles_of(epoch, same, want - static_cast<int64_t>(epochs[epoch])) || any;
            }
        }
        if (!any && factor_ != 1) {
            throw bad_input(recording_.log().path().string(),
                            "cannot be scaled: it has no two moments within an epoch at which the job stood alike",
                            "record more steps of each epoch");
        }
    }

    uint64_t units_of(const Tile& tile) const { return (*moments_)[tile.to].units - (*moments_)[tile.from].units; }

    /// Each stretch with the same shards open is made longer by itself, so that every shard becomes longer.
    bool tiles_of(uint32_t epoch, const std::vector<size_t>& same, int64_t more) {
        size_t stretches = 1;
        for (size_t i = 1; i < same.size(); ++i) {
            stretches += (*moments_)[same[i]].open != (*moments_)[same[i - 1]].open ? 1 : 0;
        }
        const uint64_t all = recording_.epochs()[epoch];
        const size_t most = std::max<size_t>(kMostTiles / stretches, 1);
        double due = 0;
        bool any = false;
        uint64_t done = 0;
        for (size_t begin = 0; begin < same.size();) {
            size_t end = begin;
            while (end < same.size() && (*moments_)[same[end]].open == (*moments_)[same[begin]].open) {
                ++end;
            }
            const uint64_t until = end == same.size() ? all : next_stretch(same[end - 1]) - before_epoch(epoch);
            const double per_access = static_cast<double>(more) / static_cast<double>(all);
            due += per_access * static_cast<double>(until - done);
            if ((*moments_)[same[begin]].open != 0) {  // what lies before is of shards without such moments
                const uint64_t own = std::max(this_stretch(same[begin], epoch), done);
                score_.moved_on += static_cast<uint64_t>(std::abs(per_access * static_cast<double>(own - done)));
            }
            done = until;
            const std::vector<size_t> stretch(same.begin() + static_cast<std::ptrdiff_t>(begin),
                                              same.begin() + static_cast<std::ptrdiff_t>(end));
            if (stretch.size() >= 2) {
                std::vector<Tile> tiles;
                const auto wanted = static_cast<int64_t>(std::llround(due));
                due -= static_cast<double>(tile(tiles, stretch, wanted, most));
                any = any || !tiles.empty();
                tiles_[epoch].insert(tiles_[epoch].end(), tiles.begin(), tiles.end());
            }
            begin = end;
        }
        return any;
    }
    /// Accesses before the first one to a file that the shards open at this moment do not hold.
    uint64_t next_stretch(size_t moment) const {
        size_t next = moment + 1;
        while (next + 1 < moments_->all().size() && (*moments_)[next].open == (*moments_)[moment].open) {
            ++next;
        }
        const auto& reads = moments_->reads();
        const uint64_t from = (*moments_)[next - 1].units, to = (*moments_)[next].units;
        for (uint64_t at = std::max<uint64_t>(from, 1); at < std::min<uint64_t>(to, reads.size()); ++at) {
            if (reads[at] != reads[at - 1]) {
                return at;
            }
        }
        return to;
    }
    /// Accesses of the epoch before the shards that are open at this moment.
    uint64_t this_stretch(size_t moment, uint32_t epoch) const {
        while (moment > 0 && (*moments_)[moment - 1].open == (*moments_)[moment].open) {
            --moment;
        }
        const auto& reads = moments_->reads();
        const uint64_t least = std::max(moment == 0 ? 0 : (*moments_)[moment - 1].units, before_epoch(epoch));
        uint64_t at = std::min<uint64_t>((*moments_)[moment].units, reads.size() - 1);
        while (at > least && reads[at] == reads[at - 1]) {
            --at;
        }
        return at > before_epoch(epoch) ? at - before_epoch(epoch) : 0;
    }
    uint64_t before_epoch(uint32_t epoch) const {
        uint64_t before = 0;
        for (uint32_t i = 0; i < epoch; ++i) {
            before += recording_.epochs()[i];
        }
        return before;
    }

    /// Returns how many accesses more that makes.
    int64_t tile(std::vector<Tile>& tiles, const std::vector<size_t>& same, int64_t more, size_t most) {
        const size_t count = std::min(most, std::max<size_t>(same.size() / 4, 1));
        const uint64_t first = (*moments_)[same.front()].units, all = (*moments_)[same.back()].units - first;
        size_t at = 0;
        for (size_t k = 1; k <= count; ++k) {
            const uint64_t goal = first + all * k / count;
            size_t next = at;
            while (next + 1 < same.size() && (*moments_)[same[next]].units < goal) {
                ++next;
            }
            if ((*moments_)[same[next]].units > (*moments_)[same[at]].units) {
                tiles.push_back({same[at], same[next], 1});
                at = next;
            }
        }
        if (tiles.empty() || more == 0) {
            return 0;
        }
        // Whole repetitions of all, the rest evenly over the tiles.
        const auto middle =
            static_cast<int64_t>((*moments_)[tiles.back().to].units - (*moments_)[tiles.front().from].units);
        const int64_t whole = more > 0 ? more / middle : 0;
        double due = 0;
        int64_t made = 0;
        const double share = static_cast<double>(more - whole * middle) / static_cast<double>(middle);
        for (Tile& one : tiles) {
            const auto units = static_cast<int64_t>(units_of(one));
            one.times += whole;
            made += whole * units;
            due += share * static_cast<double>(units);
            const double half = 0.5 * static_cast<double>(units);
            if (due >= half + (share > 0.999 ? -half : 0.0) && due > 0) {
                ++one.times;
                made += units;
                due -= static_cast<double>(units);
            } else if (due <= -half && one.times > 0) {
                --one.times;
                made -= units;
                due += static_cast<double>(units);
            }
        }
        return made + fit(tiles, same, more - made);
    }

    /// Plays a part of the last tile once more, or the last one less often and then a part of it, so that as many
    /// accesses are made as asked for. Returns how many more that are.
    int64_t fit(std::vector<Tile>& tiles, const std::vector<size_t>& same, int64_t missing) {
        Tile& last = tiles.back();
        const auto units = static_cast<int64_t>(units_of(last));
        int64_t made = 0;
        if (missing < 0 && last.times > 0) {
            --last.times;
            made -= units;
            missing += units;
        }
        const auto from = std::find(same.begin(), same.end(), last.from), to = std::find(from, same.end(), last.to);
        const auto length = [&](size_t moment) {
            return static_cast<int64_t>((*moments_)[moment].units - (*moments_)[last.from].units);
        };
        auto best = from;
        for (auto i = from; i != same.end() && i <= to; ++i) {
            best = std::abs(length(*i) - missing) < std::abs(length(*best) - missing) ? i : best;
        }
        made += length(*best);
        if (best == to && best != from) {
            ++last.times;
        } else if (best != from) {
            const Tile whole = last;
            last = {whole.from, *best, whole.times + 1};
            tiles.push_back({*best, whole.to, whole.times});
            part_of_.push_back({whole.from, *best, whole.to, whole.times});
        }
        return made;
    }

    /// Where epochs are played again or left out: at the first tiles of two, if as much of each was read there.
    void choose_span() {
        const auto recorded = static_cast<uint32_t>(recording_.epochs().size());
        epochs_ = asked_epochs_ == 0 ? recorded : asked_epochs_;
        if (epochs_ == recorded) {
            return;
        }
        const uint32_t first = epochs_ < recorded ? epochs_ - 1 : recorded - 2, last = recorded - 1;
        if (recorded < 2) {
            throw bad_input(recording_.log().path().string(),
                            "has one epoch; --epochs requires two, to see what lies between them",
                            "record two epochs or more");
        }
        std::vector<EpochSides> sides(recorded);
        for (uint32_t epoch = 0; epoch < recorded; ++epoch) {
            if (factor_ != 1 && !tiles_[epoch].empty()) {
                sides[epoch] = {tiles_[epoch].front().from, tiles_[epoch].back().to};
            }
        }
        const auto read = [&](uint32_t epoch) {
            return (*moments_)[tiles_[epoch].front().from].units - before_epoch(epoch);
        };
        const bool both = !tiles_[first].empty() && !tiles_[last].empty();
        span_ = both ? EpochSpan{first, last, tiles_[first].front().from, tiles_[last].front().from}
                     : EpochSpan{first, last};
        if (!both || read(first) != read(last)) {
            span_ = *find_span(recording_, *moments_, sides, epochs_);
        }
        if (factor_ == 1) {
            std::fill(tiles_.begin(), tiles_.end(), std::vector<Tile>());  // nothing to be played again within an epoch
        }
    }

    void write_cuts() {
        std::vector<size_t> chosen;
        for (const auto& tiles : tiles_) {
            for (const Tile& one : tiles) {
                chosen.push_back(one.from);
                chosen.push_back(one.to);
            }
        }
        for (const size_t moment : {span_.from, span_.to}) {
            if (epochs_ != recording_.epochs().size() && moment != EpochSpan::kEnd) {
                chosen.push_back(moment);
            }
        }
        std::sort(chosen.begin(), chosen.end());
        chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
        const size_t tasks = recording_.tasks().size();
        score_.cuts.emplace_back(tasks);
        score_.times.push_back(INT64_MIN);
        const std::vector<std::pair<size_t, uint32_t>> ends = ends_of_epochs(chosen);
        size_t number = 0, next = 0, next_end = 0;
        moments_->each([&](uint32_t, int64_t time, const CausalPast& past) {
            if (next < chosen.size() && chosen[next] == number) {
                cut_of_[number] = score_.cuts.size();
                add_cut(past.upto(), time);
                ++next;
            }
            for (; next_end < ends.size() && ends[next_end].first == number; ++next_end) {
                const uint32_t epoch = ends[next_end].second;
                end_cut_[epoch] = score_.cuts.size();
                add_cut(cut_after_reads(recording_, past, epoch), std::max(time, end_of_reads(recording_, epoch)));
            }
            ++number;
        });
        Cut all(tasks);
        int64_t end = 0;
        for (TaskId id = 1; id < tasks; ++id) {
            all[id] = static_cast<uint32_t>(task(id).begin.size());
            end = std::max(end, task(id).end);
        }
        add_cut(std::move(all), end);
    }

    /// No less than the one before: what is at the end of an epoch's reads may not be all of what a moment has.
    void add_cut(Cut cut, int64_t time) {
        for (size_t id = 0; id < cut.size(); ++id) {
            cut[id] = std::max(cut[id], score_.cuts.back()[id]);
        }
        score_.cuts.push_back(std::move(cut));
        score_.times.push_back(std::max(time, score_.times.back()));
    }

    /// Ends of epochs at which the span has no moments: after which moments they come.
    std::vector<std::pair<size_t, uint32_t>> ends_of_epochs(const std::vector<size_t>& chosen) const {
        std::vector<std::pair<size_t, uint32_t>> ends;
        if (epochs_ == recording_.epochs().size() || span_.from != EpochSpan::kEnd) {
            return ends;
        }
        for (const uint32_t epoch : {span_.first, span_.last}) {
            const int64_t time = end_of_reads(recording_, epoch);
            size_t after = 0;
            for (size_t i = 0; i < moments_->all().size(); ++i) {
                const bool tiled = (*moments_)[i].epoch <= epoch && std::binary_search(chosen.begin(), chosen.end(), i);
                after = (*moments_)[i].time <= time || tiled ? i : after;
            }
            ends.emplace_back(after, epoch);
        }
        return ends;
    }

    void pieces(size_t from, size_t to, uint32_t shift) {
        for (size_t piece = from; piece < to; ++piece) {
            score_.passages.push_back({static_cast<uint32_t>(piece), played_[piece]++, shift});
        }
    }

    /// Between two cuts, with the tiles of the epochs there as often as they are to be.
    void play_between(size_t from, size_t to, uint32_t shift) {
        size_t at = from;
        for (const auto& tiles : tiles_) {
            for (size_t k = 0; k < tiles.size(); ++k) {
                const size_t begin = cut_of_.at(tiles[k].from), end = cut_of_.at(tiles[k].to);
                if (begin < at || end > to) {
                    continue;
                }
                pieces(at, begin, shift);
                at = end;
                // A tile of which the first part is played once more: the whole so often, then that part.
                const bool part = k + 1 < tiles.size() && is_part(tiles[k], tiles[k + 1]);
                if (part) {
                    const size_t whole = cut_of_.at(tiles[k + 1].to);
                    for (int64_t i = 0; i < tiles[k + 1].times; ++i) {
                        pieces(begin, whole, shift);
                    }
                    pieces(begin, end, shift);
                    // On from where the whole ended: the part ends as it began.
                    at = whole;
                    ++k;
                    continue;
                }
                for (int64_t i = 0; i < tiles[k].times; ++i) {
                    pieces(begin, end, shift);
                }
            }
        }
        pieces(at, to, shift);
    }

    bool is_part(const Tile& a, const Tile& b) const {
        return std::any_of(part_of_.begin(), part_of_.end(), [&](const Part& part) {
            return part.from == a.from && part.middle == a.to && part.to == b.to;
        });
    }

    void play() {
        played_.resize(score_.cuts.size());
        const size_t last = score_.cuts.size() - 1;
        const auto recorded = static_cast<uint32_t>(recording_.epochs().size());
        const bool ends = span_.from == EpochSpan::kEnd;
        if (epochs_ == recorded) {
            play_between(0, last, 0);
        } else {
            const size_t from = ends ? end_cut_.at(span_.first) : cut_of_.at(span_.from);
            const size_t to = ends ? end_cut_.at(span_.last) : cut_of_.at(span_.to);
            const uint32_t more = epochs_ - recorded;  // modulo 2^32 where they are fewer
            play_between(0, epochs_ > recorded ? to : from, 0);
            for (uint32_t i = 1; epochs_ > recorded && i <= more; ++i) {
                play_between(from, to, i);
            }
            play_between(to, last, more);
            want_epochs(more);
        }
        count_played();
    }

    /// Of each epoch that is made, what is wanted of the one that it is made of.
    void want_epochs(uint32_t more) {
        std::vector<uint64_t> wanted(epochs_);
        for (uint32_t epoch = 0; epoch < epochs_; ++epoch) {
            const bool again = epochs_ > score_.wanted.size() && epoch > span_.last;
            wanted[epoch] = score_.wanted[again ? std::max<size_t>(span_.last, epoch - std::min(epoch, more)) : epoch];
        }
        score_.wanted = std::move(wanted);
    }

    void count_played() {
        std::vector<std::vector<uint64_t>> in_piece(score_.cuts.size(),
                                                    std::vector<uint64_t>(recording_.epochs().size()));
        for (const SampleUnit& unit : recording_.units()) {
            if (unit.bytes > 0) {
                const auto after = std::partition_point(score_.cuts.begin(), score_.cuts.end(),
                                                        [&](const Cut& cut) { return cut[unit.task] <= unit.first; });
                ++in_piece[static_cast<size_t>(after - score_.cuts.begin()) - 1][unit.epoch];
            }
        }
        score_.played.assign(std::max<size_t>(epochs_, recording_.epochs().size()), 0);
        for (const Passage& passage : score_.passages) {
            for (uint32_t epoch = 0; epoch < recording_.epochs().size(); ++epoch) {
                const uint32_t now = epoch + passage.epochs;
                if (now < score_.played.size()) {
                    score_.played[now] += in_piece[passage.piece][epoch];
                }
            }
        }
        score_.played.resize(epochs_);
    }

    struct Part {
        size_t from, middle, to;
        int64_t times;
    };
    const ScaleRecording& recording_;
    const double factor_;
    const uint32_t asked_epochs_;
    Score score_;
    std::optional<Moments> moments_;
    std::vector<std::vector<Tile>> tiles_;  // by epoch
    std::vector<Part> part_of_;
    uint32_t epochs_ = 0;                 // that are made
    EpochSpan span_;                      // where epochs are played again or left out
    std::map<size_t, size_t> cut_of_;     // by moment
    std::map<uint32_t, size_t> end_cut_;  // by epoch
    std::vector<uint32_t> played_;        // by piece
};

}  // namespace

std::string scaling_obstacle(const ScaleRecording& recording) {
    if (recording.epochs().empty()) {
        return "it reads no files of a data set one after the other, and no records of a large one";
    }
    if (recording.late_share() > kMostLate) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "its reads do not look like epochs: %.0f %% of them come back to a sample before the others were "
                      "read as often",
                      recording.late_share() * 100);
        return text;
    }
    return {};
}

Score make_score(const ScaleRecording& recording, double factor, uint32_t epochs) {
    return ScoreMaker(recording, factor, epochs).make();
}

}  // namespace reprise
