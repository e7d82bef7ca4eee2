// SPDX-License-Identifier: MIT
// What of an epoch is played how often, so that it has as many accesses as asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transform/scale_moments.h"

namespace reprise {

/// Played from one moment to another, so often.
struct Tile {
    size_t from = 0, to = 0;  // moments
    int64_t times = 1;
};

class EpochTiles {
public:
    EpochTiles(const ScaleRecording& recording, const Moments& moments)
        : recording_(recording), moments_(moments), tiles_(recording.epochs().size()) {}

    /// Makes an epoch have `more` accesses, or so many fewer. `same`: its moments that are alike, two or more. False:
    /// nothing lies between them.
    bool make(uint32_t epoch, const std::vector<size_t>& same, int64_t more);
    const std::vector<std::vector<Tile>>& all() const { return tiles_; }  // by epoch
    /// All epochs as they are.
    void clear() { std::fill(tiles_.begin(), tiles_.end(), std::vector<Tile>()); }
    /// The first is a part of what both are together, to be played once more than that.
    bool is_part(const Tile& a, const Tile& b) const;
    /// Accesses that are made to another shard, as theirs has too few steps alike.
    uint64_t moved_on() const { return moved_on_; }
    uint64_t units_of(const Tile& tile) const { return moments_[tile.to].units - moments_[tile.from].units; }
    uint64_t before_epoch(uint32_t epoch) const;

private:
    struct Part {
        size_t from, middle, to;
    };
    uint64_t next_stretch(size_t moment) const;
    uint64_t this_stretch(size_t moment, uint32_t epoch) const;
    int64_t tile(std::vector<Tile>& tiles, const std::vector<size_t>& same, int64_t more, size_t most);
    int64_t fit(std::vector<Tile>& tiles, const std::vector<size_t>& same, int64_t missing);

    const ScaleRecording& recording_;
    const Moments& moments_;
    std::vector<std::vector<Tile>> tiles_;
    std::vector<Part> part_of_;
    uint64_t moved_on_ = 0;
};

}  // namespace reprise
