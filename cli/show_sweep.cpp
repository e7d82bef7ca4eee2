// SPDX-License-Identifier: MIT
#include "cli/show_sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>

#include "cli/show_verdict.h"
#include "cli/sweep_cache.h"
#include "cli/units.h"
#include "experiment/picture.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

using Runs = std::vector<const SweepRun*>;

struct Figure {
    const char* key;
    const char* title;
    const char* unit;  // of CSV and JSON
    std::optional<double> (*value)(const SweepRun&);
    std::string (*text)(double);
};

std::string bytes_text(double value) { return format_bytes(static_cast<uint64_t>(std::max(value, 0.0))); }
std::string seconds_text(double value) { return format_duration(std::llround(value * 1e9)); }

constexpr std::array<Figure, 6> kFigures = {
    {{"elapsed", "elapsed", "s", [](const SweepRun& r) { return std::optional(r.elapsed_s); }, seconds_text},
     {"au", "AU", "share", [](const SweepRun& r) { return r.au; }, format_share},
     {"read_rate", "read", "bytes_per_s", [](const SweepRun& r) { return r.bytes_per_s; }, format_rate},
     {"read_p99", "reads p99", "s", [](const SweepRun& r) { return r.read_p99_s; }, seconds_text},
     {"device_read", "from device", "bytes", [](const SweepRun& r) { return r.device_bytes; }, bytes_text},
     {"device_share", "share", "share", [](const SweepRun& r) { return r.device_share; }, format_share}}};

const std::string& value_of(const SweepResult& result, size_t cell, size_t axis) {
    return result.axes[axis].values[result.cells[cell][axis]];
}

bool any_has(const SweepResult& result, const Figure& figure) {
    return std::any_of(result.runs.begin(), result.runs.end(),
                       [&](const Runs& runs) { return sweep_figure(runs, figure.value).has_value(); });
}

bool trusted(const SweepRun& run) { return run.refused.empty() && run.trust != "poor"; }

/// "good", or the worst with how many: "fair", "2 poor", "not run".
std::string trust_of(const Runs& runs) {
    const auto count = [&](auto is) { return std::count_if(runs.begin(), runs.end(), is); };
    if (runs.empty()) {
        return "not yet run";
    }
    if (const auto refused = count([](const SweepRun* run) { return !run->refused.empty(); }); refused != 0) {
        return "not run";
    }
    const auto poor = count([](const SweepRun* run) { return run->trust == "poor"; });
    if (poor == static_cast<std::ptrdiff_t>(runs.size())) {
        return "POOR";
    }
    if (poor != 0) {
        return std::to_string(poor) + " poor";
    }
    return count([](const SweepRun* run) { return run->trust == "fair"; }) != 0 ? "FAIR" : "GOOD";
}

/// The first reason why a cell has no figure, or none to be trusted; empty: it has.
std::string problem_of(const Runs& runs) {
    if (runs.empty() || std::any_of(runs.begin(), runs.end(), [](const SweepRun* run) { return trusted(*run); })) {
        return {};
    }
    const SweepRun& first = *runs.front();
    return first.refused.empty() ? first.reason : first.refused;
}

std::string cell_words(const SweepResult& result, size_t cell) {
    std::string words;
    for (size_t axis = 0; axis < result.axes.size(); ++axis) {
        words += (words.empty() ? "" : " ") + ("--" + result.axes[axis].option) + " " + value_of(result, cell, axis);
    }
    return words;
}

bool is_in(const std::vector<size_t>& cells, size_t cell) {
    return std::find(cells.begin(), cells.end(), cell) != cells.end();
}

constexpr const char* kOtherCache = "other share from the device";

Table table_of(const SweepResult& result) {
    std::vector<Column> columns;
    for (const SweepAxis& axis : result.axes) {
        columns.push_back({axis.option, axis.option, true});
    }
    std::vector<const Figure*> shown;
    for (const Figure& figure : kFigures) {
        if (any_has(result, figure)) {
            shown.push_back(&figure);
            columns.push_back({figure.title, figure.key, true});
            if (&figure == kFigures.data() && !result.predicted) {
                columns.push_back({"from .. to", "", true});
            }
        }
    }
    if (!result.predicted) {
        columns.push_back({"runs", "runs", true});
    }
    columns.push_back({"trust", "trust", false});
    Table table(columns);
    const std::vector<size_t> other = cells_of_other_cache(result);
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        const Runs& runs = result.runs[cell];
        std::vector<Cell> row;
        for (size_t axis = 0; axis < result.axes.size(); ++axis) {
            row.emplace_back(printable(value_of(result, cell, axis)));
        }
        for (const Figure* const figure : shown) {
            const std::optional<SweepFigure> found = sweep_figure(runs, figure->value);
            row.push_back(found ? Cell(figure->text(found->median), found->median) : Cell("-", nullptr));
            if (figure == kFigures.data() && !result.predicted) {
                row.push_back(found ? Cell(figure->text(found->low) + " .. " + figure->text(found->high)) : Cell("-"));
            }
        }
        if (!result.predicted) {
            row.push_back(count_cell(runs.size()));
        }
        row.emplace_back(trust_of(runs) + (is_in(other, cell) ? std::string(", ") + kOtherCache : ""));
        table.row(std::move(row));
    }
    return table;
}

std::string column_of(const Figure& figure) { return std::string(figure.key) + "_" + figure.unit; }

/// "+2.1 %", of shares "-1.2 points".
std::string difference(const Figure& figure, double here, double beside) {
    const bool share = figure.unit == std::string("share");
    const double by = share ? 100 * (here - beside) : beside == 0 ? 0 : 100 * (here / beside - 1);
    char text[40];
    std::snprintf(text, sizeof text, "%+.1f %s", by, share ? "points" : "%");
    return text;
}

/// Each cell beside what was measured elsewhere, of the figures that both have.
Table beside_table(const SweepResult& result, const SweepBeside& beside) {
    std::vector<Column> columns = {{result.axes.front().option, result.axes.front().option, true}};
    std::vector<const Figure*> shown;
    for (const Figure& figure : kFigures) {
        const std::vector<std::string>& values = result.axes.front().values;
        const bool there = std::any_of(values.begin(), values.end(), [&](const std::string& value) {
            return beside.find(value, column_of(figure)) != nullptr;
        });
        if (there && any_has(result, figure)) {
            shown.push_back(&figure);
            columns.push_back({figure.title, figure.key, true});
            columns.push_back({beside.name, beside.name, true});
            columns.push_back({"differs", "", true});
        }
    }
    Table table(columns);
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        const std::string& value = value_of(result, cell, 0);
        std::vector<Cell> row = {printable(value)};
        for (const Figure* const figure : shown) {
            const std::optional<SweepFigure> here = sweep_figure(result.runs[cell], figure->value);
            const SweepFigure* const there = beside.find(value, column_of(*figure));
            row.emplace_back(here ? figure->text(here->median) : "-");
            row.emplace_back(there != nullptr ? figure->text(there->median) : "-");
            row.emplace_back(here && there != nullptr ? difference(*figure, here->median, there->median) : "-");
        }
        table.row(std::move(row));
    }
    return table;
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) {
        return text;
    }
    std::string out = "\"";
    for (const char c : text) {
        out += c == '"' ? "\"\"" : std::string(1, c);
    }
    return out + "\"";
}

std::string csv_of(const SweepResult& result) {
    std::string out;
    for (const SweepAxis& axis : result.axes) {
        out += axis.option + ",";
    }
    for (const Figure& figure : kFigures) {
        const std::string name = column_of(figure);
        out += name + "," + name + "_low," + name + "_high,";
    }
    out += "runs,trust,problem\n";
    const std::vector<size_t> other = cells_of_other_cache(result);
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        for (size_t axis = 0; axis < result.axes.size(); ++axis) {
            out += quoted(value_of(result, cell, axis)) + ",";
        }
        for (const Figure& figure : kFigures) {
            const auto found = sweep_figure(result.runs[cell], figure.value);
            out += found ? Json(found->median).dump() + "," + Json(found->low).dump() + "," + Json(found->high).dump() +
                               ","
                         : ",,,";
        }
        out += std::to_string(result.runs[cell].size()) + "," + trust_of(result.runs[cell]) + "," +
               quoted(is_in(other, cell) ? kOtherCache : problem_of(result.runs[cell])) + "\n";
    }
    return out;
}

/// The logarithm of a number along an axis; none: no number.
std::optional<double> place_of(const SweepAxis& axis, const std::string& value) {
    try {
        const double number = axis.option == "memory" || axis.option == "read"
                                  ? static_cast<double>(parse_bytes(value, axis.option))
                              : axis.option == "io-limit" ? 0
                                                          : std::stod(value);
        return number > 0 ? std::optional(std::log2(number)) : std::nullopt;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

/// Places along the first axis: numbers by their logarithm, other values one after the other.
std::vector<ChartTick> ticks_of(const SweepAxis& axis) {
    std::vector<ChartTick> ticks;
    for (const std::string& value : axis.values) {
        ticks.push_back({place_of(axis, value).value_or(static_cast<double>(ticks.size())), value});
    }
    return ticks;
}

/// Whether what is beside has a figure of a panel.
bool besides(const SweepResult& result, const Figure& figure) {
    return std::any_of(result.beside.begin(), result.beside.end(), [&](const SweepBeside& beside) {
        return std::any_of(beside.by_value.begin(), beside.by_value.end(),
                           [&](const auto& row) { return row.second.count(column_of(figure)) != 0; });
    });
}

ChartCurve beside_curve(const SweepResult& result, const SweepBeside& beside, const Figure& figure,
                        const std::vector<ChartTick>& ticks) {
    ChartCurve curve{beside.name, {}, true};
    for (const auto& row : beside.by_value) {
        const std::string& value = row.first;
        const auto tick =
            std::find_if(ticks.begin(), ticks.end(), [&](const ChartTick& t) { return t.label == value; });
        const std::optional<double> x =
            tick != ticks.end() ? std::optional(tick->x) : place_of(result.axes.front(), value);
        if (const auto found = row.second.find(column_of(figure)); x && found != row.second.end()) {
            curve.points.push_back({*x, found->second.median, found->second.low, found->second.high});
        }
    }
    return curve;
}

ChartPanel panel_of(const SweepResult& result, const Figure& figure, const std::vector<ChartTick>& ticks) {
    ChartPanel panel;
    panel.title = figure.title == std::string("read") ? "read rate" : figure.title;
    panel.title += figure.title == std::string("share") ? " of the bytes that the device served" : "";
    panel.y_label = figure.text;
    panel.binary = std::string(figure.unit).starts_with("bytes");
    panel.share = figure.unit == std::string("share");
    std::map<SweepCell, size_t> curve_of;  // by the values of the other axes
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        const SweepCell others(result.cells[cell].begin() + 1, result.cells[cell].end());
        const auto [at, added] = curve_of.try_emplace(others, panel.curves.size());
        if (added) {
            ChartCurve curve;
            for (size_t axis = 1; axis < result.axes.size(); ++axis) {
                curve.name +=
                    (curve.name.empty() ? "" : ", ") + result.axes[axis].option + " " + value_of(result, cell, axis);
            }
            panel.curves.push_back(curve);
        }
        if (const auto found = sweep_figure(result.runs[cell], figure.value)) {
            panel.curves[at->second].points.push_back(
                {ticks[result.cells[cell].front()].x, found->median, found->low, found->high});
        }
    }
    if (panel.curves.size() == 1 && !result.beside.empty()) {
        panel.curves.front().name = "replay";
    }
    for (const SweepBeside& beside : result.beside) {
        panel.curves.push_back(beside_curve(result, beside, figure, ticks));
    }
    for (ChartCurve& curve : panel.curves) {
        std::sort(curve.points.begin(), curve.points.end(),
                  [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    }
    return panel;
}

Chart chart_of(const SweepResult& result) {
    Chart chart;
    chart.title = std::filesystem::path(result.log).filename().string() + " over " + result.axes.front().option;
    chart.caption = result.predicted
                        ? "predicted with " + std::filesystem::path(result.root).filename().string()
                        : "medians of up to " + counted(result.wanted, "run") +
                              "; bars: " + (result.wanted < 6 ? "their range" : "95 % interval of the median") + "; " +
                              result.root;
    const std::string& axis = result.axes.front().option;
    chart.x_title = axis == "ratio" ? "data / memory" : axis == "read" ? "bytes read per second, at most" : axis;
    const std::vector<ChartTick> ticks = ticks_of(result.axes.front());
    // AU where there are accelerators, else the time.
    const bool accelerators = any_has(result, kFigures[1]);
    const bool timed = besides(result, kFigures[0]) && !besides(result, kFigures[1]);
    for (const size_t figure : {accelerators && !timed ? size_t{1} : size_t{0}, size_t{2}, size_t{3}, size_t{4}}) {
        if (any_has(result, kFigures[figure])) {
            chart.panels.push_back(panel_of(result, kFigures[figure], ticks));
        }
    }
    chart.ticks = ticks;
    std::sort(chart.ticks.begin(), chart.ticks.end(), [](const ChartTick& a, const ChartTick& b) { return a.x < b.x; });
    return chart;
}

}  // namespace

std::vector<std::string> sweep_columns() {
    std::vector<std::string> columns;
    columns.reserve(kFigures.size());
    for (const Figure& figure : kFigures) {
        columns.push_back(column_of(figure));
    }
    return columns;
}

bool sweep_believed(const SweepResult& result) {
    return cells_of_other_cache(result).empty() &&
           std::all_of(result.runs.begin(), result.runs.end(), [](const Runs& runs) {
               return std::any_of(runs.begin(), runs.end(), [](const SweepRun* run) { return trusted(*run); });
           });
}

SweepFiles write_sweep(const SweepResult& result, const std::filesystem::path& folder) {
    SweepFiles files = {folder / "cells.csv", folder / "sweep.svg", folder / "sweep.png"};
    std::ofstream out(files.csv, std::ios::binary);
    out << csv_of(result) << std::flush;
    if (!out) {
        throw machine_error("cannot write " + escape_line(files.csv.string()), "choose another folder with -o");
    }
    const Chart chart = chart_of(result);
    if (chart.panels.empty()) {
        files.svg.clear();
        files.png.clear();
        return files;
    }
    draw(chart, files.svg);
    draw(chart, files.png);
    return files;
}

void print_sweep(std::ostream& out, const SweepResult& result, const SweepFiles& files) {
    if (const std::vector<size_t> other = cells_of_other_cache(result); !other.empty()) {
        const std::string text = "DO NOT COMPARE: the device served another share of the bytes in " +
                                 counted(other.size(), "cell") + " of " + std::to_string(result.cells.size()) + " (" +
                                 cell_words(result, other.front()) + (other.size() > 1 ? ", ..." : "") +
                                 ") than in other runs with the same memory: more than what is varied differs";
        for (const std::string& line : wrapped("", text)) {
            out << line << "\n";
        }
    }
    if (!result.cache.empty()) {
        out << "cache: " << result.cache << "\n";
    }
    table_of(result).print(out);
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        if (const std::string problem = problem_of(result.runs[cell]); !problem.empty()) {
            out << cell_words(result, cell) << ": "
                << (result.runs[cell].front()->refused.empty() ? "POOR: " : "not run: ") << printable(problem) << "\n";
        }
    }
    for (const SweepBeside& beside : result.beside) {
        if (result.cells.size() == result.axes.front().values.size()) {
            out << "\nbeside " << printable(beside.name) << "\n";
            beside_table(result, beside).print(out, 2);
        }
    }
    if (files.csv.empty()) {
        return;
    }
    out << printable(files.csv.string());
    if (!files.svg.empty()) {
        out << ", " << printable(files.svg.filename().string()) << ", " << printable(files.png.filename().string());
    } else {
        out << "; no picture: no run can be believed";
    }
    out << "\n";
}

Json sweep_json(const SweepResult& result) {
    Json cells = Json::array();
    const std::vector<size_t> other = cells_of_other_cache(result);
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        Json row = Json::object();
        for (size_t axis = 0; axis < result.axes.size(); ++axis) {
            row[result.axes[axis].option] = value_of(result, cell, axis);
        }
        for (const Figure& figure : kFigures) {
            const auto found = sweep_figure(result.runs[cell], figure.value);
            row[column_of(figure)] =
                found
                    ? Json{{"median", found->median}, {"low", found->low}, {"high", found->high}, {"runs", found->runs}}
                    : Json(nullptr);
        }
        row["runs"] = result.runs[cell].size();
        row["trust"] = trust_of(result.runs[cell]);
        const std::string problem = is_in(other, cell) ? kOtherCache : problem_of(result.runs[cell]);
        row["problem"] = problem.empty() ? Json(nullptr) : Json(printable(problem));
        cells.push_back(row);
    }
    Json beside = Json::object();
    for (const SweepBeside& one : result.beside) {
        for (const auto& [value, figures] : one.by_value) {
            for (const auto& [column, figure] : figures) {
                beside[one.name][value][column] = {
                    {"median", figure.median}, {"low", figure.low}, {"high", figure.high}};
            }
        }
    }
    return {{"log", printable(result.log)},
            {result.predicted ? "storage" : "root", printable(result.root)},
            {"runs", result.wanted},
            {"cache", result.cache.empty() ? Json(nullptr) : Json(result.cache)},
            {"cells", cells},
            {"beside", beside}};
}

}  // namespace reprise::cli
