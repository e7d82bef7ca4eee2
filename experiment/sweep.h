// SPDX-License-Identifier: MIT
// A job replayed over a grid of circumstances: which cells, in which order, what was measured so far, what it says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/repeated.h"
#include "experiment/row_file.h"

namespace reprise {

/// One circumstance that is varied: an option of `reprise replay`, and its values as words of the command line. The
/// first axis is the one along which pictures are drawn.
struct SweepAxis {
    std::string option;  // "ratio"
    std::vector<std::string> values;

    bool operator==(const SweepAxis&) const = default;
};

/// A value of each axis, by number.
using SweepCell = std::vector<size_t>;

/// All combinations, the last axis running fastest.
std::vector<SweepCell> sweep_cells(const std::vector<SweepAxis>& axes);

/// A cell and the number of its run, from 0.
struct SweepTurn {
    size_t cell = 0, run = 0;

    bool operator==(const SweepTurn&) const = default;
};
/// All runs, every cell once in each round, in an order that `seed` shuffles anew for each: what changes in the course
/// of the sweep does not look like an effect of what is varied.
std::vector<SweepTurn> sweep_order(size_t cells, size_t runs, uint64_t seed);

/// What a run came to. None: it has no such figure.
struct SweepRun {
    std::string refused;  // why it could not be made; empty: it was
    std::string trust;    // "good", "fair", "poor"
    std::string reason;
    double elapsed_s = 0;
    std::optional<double> au, bytes_per_s, read_p99_s, device_bytes, device_share, limit_bytes;

    bool operator==(const SweepRun&) const = default;
};

/// What was measured so far, a line of JSON for each run: complete after each, so that a sweep that was killed goes on.
/// One sweep at a time.
class SweepRows {
public:
    /// `conditions`: what makes rows comparable, as text. Throws Error (usage) where `path` has rows of other ones,
    /// unless `fresh`, which forgets them; Error (machine)
    /// where it cannot be written, or another sweep does.
    SweepRows(std::filesystem::path path, std::string conditions, bool fresh);

    const SweepRun* find(SweepTurn turn) const;
    /// Throws Error (machine) where it cannot be written.
    void add(SweepTurn turn, SweepRun run);
    size_t size() const { return rows_.size(); }

private:
    RowFile file_;
    std::vector<std::pair<SweepTurn, SweepRun>> rows_;
};

/// What a figure is in a cell: the median of its runs and the interval of that; with fewer than six the range.
struct SweepFigure {
    double median = 0, low = 0, high = 0;
    size_t runs = 0;
};
/// Of the runs of a cell that were made and are not poor; all made ones where that leaves none. None: there is nothing.
using SweepFigureOf = std::function<std::optional<double>(const SweepRun&)>;
std::optional<SweepFigure> sweep_figure(const std::vector<const SweepRun*>& runs, const SweepFigureOf& figure);

}  // namespace reprise
