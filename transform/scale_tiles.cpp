// SPDX-License-Identifier: MIT
#include "transform/scale_tiles.h"

#include <cmath>
#include <cstdlib>
#include <numeric>

namespace reprise {
namespace {

constexpr size_t kMostTiles = 8;  // pieces of an epoch that are repeated apart

}  // namespace

/// Each stretch with the same shards open is made longer by itself, so that every shard becomes longer.
bool EpochTiles::make(uint32_t epoch, const std::vector<size_t>& same, int64_t more) {
    size_t stretches = 1;
    for (size_t i = 1; i < same.size(); ++i) {
        stretches += moments_[same[i]].open != moments_[same[i - 1]].open ? 1 : 0;
    }
    const uint64_t all = recording_.epochs()[epoch];
    const size_t most = std::max<size_t>(kMostTiles / stretches, 1);
    double due = 0;
    bool any = false;
    uint64_t done = 0;
    for (size_t begin = 0; begin < same.size();) {
        size_t end = begin;
        while (end < same.size() && moments_[same[end]].open == moments_[same[begin]].open) {
            ++end;
        }
        const uint64_t until = end == same.size() ? all : next_stretch(same[end - 1]) - before_epoch(epoch);
        const double per_access = static_cast<double>(more) / static_cast<double>(all);
        due += per_access * static_cast<double>(until - done);
        if (moments_[same[begin]].open != 0) {  // what lies before is of shards without such moments
            const uint64_t own = std::max(this_stretch(same[begin], epoch), done);
            moved_on_ += static_cast<uint64_t>(std::abs(per_access * static_cast<double>(own - done)));
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
uint64_t EpochTiles::next_stretch(size_t moment) const {
    size_t next = moment + 1;
    while (next + 1 < moments_.all().size() && moments_[next].open == moments_[moment].open) {
        ++next;
    }
    const auto& reads = moments_.reads();
    const uint64_t from = moments_[next - 1].units, to = moments_[next].units;
    for (uint64_t at = std::max<uint64_t>(from, 1); at < std::min<uint64_t>(to, reads.size()); ++at) {
        if (reads[at] != reads[at - 1]) {
            return at;
        }
    }
    return to;
}

/// Accesses of the epoch before the shards that are open at this moment.
uint64_t EpochTiles::this_stretch(size_t moment, uint32_t epoch) const {
    while (moment > 0 && moments_[moment - 1].open == moments_[moment].open) {
        --moment;
    }
    const auto& reads = moments_.reads();
    const uint64_t least = std::max(moment == 0 ? 0 : moments_[moment - 1].units, before_epoch(epoch));
    uint64_t at = std::min<uint64_t>(moments_[moment].units, reads.size() - 1);
    while (at > least && reads[at] == reads[at - 1]) {
        --at;
    }
    return at > before_epoch(epoch) ? at - before_epoch(epoch) : 0;
}

uint64_t EpochTiles::before_epoch(uint32_t epoch) const {
    const auto& epochs = recording_.epochs();
    return std::accumulate(epochs.begin(), epochs.begin() + epoch, uint64_t{0});
}

/// Returns how many accesses more that makes.
int64_t EpochTiles::tile(std::vector<Tile>& tiles, const std::vector<size_t>& same, int64_t more, size_t most) {
    const size_t count = std::min(most, std::max<size_t>(same.size() / 4, 1));
    const uint64_t first = moments_[same.front()].units, all = moments_[same.back()].units - first;
    size_t at = 0;
    for (size_t k = 1; k <= count; ++k) {
        const uint64_t goal = first + all * k / count;
        size_t next = at;
        while (next + 1 < same.size() && moments_[same[next]].units < goal) {
            ++next;
        }
        if (moments_[same[next]].units > moments_[same[at]].units) {
            tiles.push_back({same[at], same[next], 1});
            at = next;
        }
    }
    if (tiles.empty() || more == 0) {
        return 0;
    }
    // Whole repetitions of all, the rest evenly over the tiles.
    const auto middle = static_cast<int64_t>(moments_[tiles.back().to].units - moments_[tiles.front().from].units);
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
int64_t EpochTiles::fit(std::vector<Tile>& tiles, const std::vector<size_t>& same, int64_t missing) {
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
        return static_cast<int64_t>(moments_[moment].units - moments_[last.from].units);
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
        part_of_.push_back({whole.from, *best, whole.to});
    }
    return made;
}

bool EpochTiles::is_part(const Tile& a, const Tile& b) const {
    return std::any_of(part_of_.begin(), part_of_.end(),
                       [&](const Part& part) { return part.from == a.from && part.middle == a.to && part.to == b.to; });
}

}  // namespace reprise
