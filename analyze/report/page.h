// SPDX-License-Identifier: MIT
// One self-contained HTML page of figures, charts and tables: no network, light and dark, for mouse, keyboard and
// screen reader. What it shows is given as data; nothing here knows of logs.
//
// All texts are bytes as a recording may hold them: the page escapes them, wherever it puts them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {

/// How the numbers of an axis are written: the page picks the prefix (KiB, ms, ...).
enum class PageUnit : uint8_t { count, per_second, bytes, bytes_per_second, seconds, percent };

struct PageSeries {
    std::string name;
    std::vector<double> values;  // NaN: there is none
    int color = -1;              // 0..9 of the palette; -1: the next one
    bool dashed = false;         // of lines
};

struct PageChart {
    enum class Kind : uint8_t { lines, areas, bars, stacked_bars };  // areas are stacked

    std::string id;           // of the element, and of the chart in scripts: letters, digits, dashes; one of its kind
    std::string title, note;  // the note says what is drawn, in a sentence
    Kind kind = Kind::lines;
    PageUnit unit = PageUnit::count;
    bool logarithmic = false;
    /// Of lines and areas, ascending: charts with the same `zoom` are zoomed together.
    std::vector<double> x;
    PageUnit x_unit = PageUnit::seconds;
    std::string zoom = {};
    std::string x_title = {};
    std::vector<std::string> labels = {};  // of bars, one for each value
    bool sideways = false;                 // bars from left to right, for long labels
    std::vector<PageSeries> series;
};

/// Rows over time, each divided into parts.
struct PageLanes {
    std::string id, title, note;
    double begin = 0, end = 0;  // s
    std::string zoom = {};
    struct State {
        std::string name;
        int color = -1;
    };
    std::vector<State> states;
    struct Lane {
        std::string name;
        /// Of each interval of time, the share of each state, in 0..1: values[interval * states + state].
        std::vector<float> shares;
    };
    std::vector<Lane> lanes;
};

struct PageTable {
    std::string title;
    struct Column {
        std::string title;
        bool right = false;  // numbers
    };
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows;
};

/// Parts appear in the order in which they are added.
class Page {
public:
    /// `lead`: what the page is about, below its title.
    Page(std::string_view title, std::string_view lead);
    ~Page();
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

    /// A heading, to which the contents at the top lead.
    void section(std::string_view title, std::string_view text = {});
    void paragraph(std::string_view text);
    /// Sentences that matter most, numbered.
    void findings(const std::vector<std::string>& sentences);
    /// Figures with their names, side by side.
    void figures(const std::vector<std::pair<std::string, std::string>>& named);
    void chart(const PageChart& chart);
    void lanes(const PageLanes& lanes);
    void table(const PageTable& table);

    /// The whole file.
    std::string html() const;
    /// Writes it by way of FILE.partial and rename; "-" is standard output. Throws Error (machine).
    void write(const std::filesystem::path& path) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
