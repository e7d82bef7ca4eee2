// SPDX-License-Identifier: MIT
// What was measured or predicted elsewhere, to be shown beside a sweep.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/sweep.h"

namespace reprise::cli {

/// The rows of a CSV file as `sweep` writes it: a column named as the first axis, and for any of the figures one named
/// as there, with or without _low and _high. Rows with the same place are runs of one thing.
struct SweepBeside {
    std::string name;                                                    // "real"
    std::map<std::string, std::map<std::string, SweepFigure>> by_value;  // of the axis, then by column
    const SweepFigure* find(const std::string& value, const std::string& column) const;
};

/// `given`: "NAME=FILE". `columns`: the figures. Throws Error (usage) where it is not that, Error (bad_input) where the
/// file has no column of the axis or of any figure, or a cell that is no number.
SweepBeside read_beside(std::string_view given, const std::string& axis, const std::vector<std::string>& columns,
                        const std::vector<std::string>& others = {});

}  // namespace reprise::cli
