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
#include "transform/scale_tiles.h"

namespace reprise {
namespace {

/// Share of reads that may come before the epoch before is over, as of loaders that are ahead.
constexpr double kMostLate = 0.1;

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

    void choose() {
        const auto& epochs = recording_.epochs();
        tiles_.emplace(recording_, *moments_);
        bool any = false;
        for (uint32_t epoch = 0; epoch < epochs.size(); ++epoch) {
            const auto want = static_cast<int64_t>(std::llround(factor_ * static_cast<double>(epochs[epoch])));
            score_.wanted.push_back(static_cast<uint64_t>(want));
            std::vector<size_t> same = moments_->alike(epoch);
            if (same.size() >= 2) {
                const uint64_t kept = epochs[epoch] - tiles_->units_of({same.front(), same.back()});
                same = static_cast<uint64_t>(want) < kept ? moments_->furthest_alike(epoch, same) : same;
                any = tiles_->make(epoch, same, want - static_cast<int64_t>(epochs[epoch])) || any;
            }
        }
        score_.moved_on = tiles_->moved_on();
        if (!any && factor_ != 1) {
            throw bad_input(recording_.log().path().string(),
                            "cannot be scaled: it has no two moments within an epoch at which the job stood alike",
                            "record more steps of each epoch");
        }
    }

    /// Where epochs are played again or left out: at the first tiles of two, if as much of each was read there.
    void choose_span() {
        const auto recorded = static_cast<uint32_t>(recording_.epochs().size());
        epochs_ = asked_epochs_ == 0 ? recorded : asked_epochs_;
        if (epochs_ == recorded) {
            return;
        }
        if (recorded < 2) {
            throw bad_input(recording_.log().path().string(),
                            "has one epoch; --epochs requires two, to see what lies between them",
                            "record two epochs or more");
        }
        const uint32_t first = epochs_ < recorded ? epochs_ - 1 : recorded - 2, last = recorded - 1;
        std::vector<EpochSides> sides(recorded);
        for (uint32_t epoch = 0; epoch < recorded; ++epoch) {
            if (factor_ != 1 && !tiles_->all()[epoch].empty()) {
                sides[epoch] = {tiles_->all()[epoch].front().from, tiles_->all()[epoch].back().to};
            }
        }
        const auto read = [&](uint32_t epoch) {
            return (*moments_)[tiles_->all()[epoch].front().from].units - tiles_->before_epoch(epoch);
        };
        const bool both = !tiles_->all()[first].empty() && !tiles_->all()[last].empty();
        span_ = both && read(first) == read(last)
                    ? EpochSpan{first, last, tiles_->all()[first].front().from, tiles_->all()[last].front().from}
                    : find_span(recording_, *moments_, sides, epochs_);
        if (factor_ == 1) {
            tiles_->clear();  // nothing to be played again within an epoch
        }
    }

    void write_cuts() {
        std::vector<size_t> chosen;
        for (const auto& tiles : tiles_->all()) {
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
        for (const auto& tiles : tiles_->all()) {
            for (size_t k = 0; k < tiles.size(); ++k) {
                const size_t begin = cut_of_.at(tiles[k].from), end = cut_of_.at(tiles[k].to);
                if (begin < at || end > to) {
                    continue;
                }
                pieces(at, begin, shift);
                at = end;
                // A tile of which the first part is played once more: the whole so often, then that part.
                const bool part = k + 1 < tiles.size() && tiles_->is_part(tiles[k], tiles[k + 1]);
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

    const ScaleRecording& recording_;
    const double factor_;
    const uint32_t asked_epochs_;
    Score score_;
    std::optional<Moments> moments_;
    std::optional<EpochTiles> tiles_;
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
