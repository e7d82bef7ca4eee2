// SPDX-License-Identifier: MIT
#include "cli/sweep_beside.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include "formats/support/error.h"

namespace reprise::cli {
namespace {

using Cells = std::vector<std::string>;

Cells split(const std::string& line) {
    Cells cells(1);
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
            cells.back() += line[++i];
        } else if (c == '"') {
            quoted = !quoted;
        } else if (c == ',' && !quoted) {
            cells.emplace_back();
        } else if (c != '\r') {
            cells.back() += c;
        }
    }
    return cells;
}

std::optional<double> number(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Of runs, or of one row that says its own interval.
SweepFigure figure_of(std::vector<SweepFigure> runs) {
    std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.median < b.median; });
    SweepFigure out = runs[runs.size() / 2];
    if (runs.size() % 2 == 0) {
        out.median = (out.median + runs[runs.size() / 2 - 1].median) / 2;
    }
    for (const SweepFigure& run : runs) {
        out.low = std::min(out.low, run.low);
        out.high = std::max(out.high, run.high);
    }
    out.runs = runs.size();
    return out;
}

}  // namespace

const SweepFigure* SweepBeside::find(const std::string& value, const std::string& column) const {
    const auto row = by_value.find(value);
    if (row == by_value.end()) {
        return nullptr;
    }
    const auto found = row->second.find(column);
    return found == row->second.end() ? nullptr : &found->second;
}

SweepBeside read_beside(std::string_view given, const std::string& axis, const std::vector<std::string>& columns,
                        const std::vector<std::string>& others) {
    const size_t equals = given.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == given.size()) {
        throw usage_error("--beside is '" + escape_line(given) + "', expected NAME=FILE", "for example real=real.csv");
    }
    SweepBeside out;
    out.name = given.substr(0, equals);
    const std::string path(given.substr(equals + 1));
    std::ifstream in(path, std::ios::binary);
    std::string line;
    if (!in || !std::getline(in, line)) {
        throw bad_input(path, "cannot be read as CSV", "the columns are those of the cells.csv of a sweep");
    }
    const Cells head = split(line);
    const auto place = std::find(head.begin(), head.end(), axis);
    if (place == head.end()) {
        throw bad_input(path, "has no column '" + axis + "'",
                        "its first line names the columns, as cells.csv of a sweep");
    }
    const auto column_at = [&](const std::string& name) {
        return static_cast<size_t>(std::find(head.begin(), head.end(), name) - head.begin());
    };
    const auto at = static_cast<size_t>(place - head.begin());
    std::map<std::string, std::map<std::string, std::vector<SweepFigure>>> runs;
    std::map<std::string, std::string> varied;  // by other axis: its first value
    for (size_t row = 2; std::getline(in, line); ++row) {
        const Cells cells = split(line);
        const auto value_at = [&](size_t column) -> std::optional<double> {
            if (column >= cells.size() || cells[column].empty()) {
                return std::nullopt;
            }
            const std::optional<double> value = number(cells[column]);
            if (!value) {
                throw bad_input(path,
                                "line " + std::to_string(row) + ": '" + escape_line(cells[column]) + "' of column " +
                                    escape_line(head[column]) + " is no number",
                                "");
            }
            return value;
        };
        for (const std::string& other : others) {
            const size_t column = column_at(other);
            if (column < cells.size() && !cells[column].empty() && other != axis) {
                const std::string& first = varied.try_emplace(other, cells[column]).first->second;
                if (first != cells[column]) {
                    throw bad_input(path,
                                    "has rows of different '" + other + "' (" + escape_line(first) + ", " +
                                        escape_line(cells[column]) + "), which are told apart by '" + axis + "' only",
                                    "keep those of one value");
                }
            }
        }
        for (const std::string& column : columns) {
            const std::optional<double> value = value_at(column_at(column));
            if (value && at < cells.size()) {
                runs[cells[at]][column].push_back({*value, value_at(column_at(column + "_low")).value_or(*value),
                                                   value_at(column_at(column + "_high")).value_or(*value), 1});
            }
        }
    }
    for (auto& [value, figures] : runs) {
        for (auto& [column, of] : figures) {
            out.by_value[value][column] = figure_of(std::move(of));
        }
    }
    if (out.by_value.empty()) {
        throw bad_input(path, "has no row with a figure",
                        "its columns are those of the cells.csv of a sweep, e.g. " + axis + ",elapsed_s");
    }
    return out;
}

}  // namespace reprise::cli
