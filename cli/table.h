// SPDX-License-Identifier: MIT
// Tables on the screen and the same rows as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {
class TextOutput;
}

namespace reprise::cli {

using Json = nlohmann::ordered_json;

/// A cell: what people see and what programs get.
struct Cell {
    std::string text;
    Json value;

    Cell(std::string_view shown) : text(shown), value(std::string(shown)) {}  // NOLINT
    Cell(const char* shown) : Cell(std::string_view(shown)) {}                // NOLINT
    Cell(const std::string& shown) : Cell(std::string_view(shown)) {}         // NOLINT
    Cell(std::string_view shown, Json given) : text(shown), value(std::move(given)) {}
};

Cell count_cell(std::uint64_t count);
Cell bytes_cell(std::uint64_t bytes);
/// Shown by unit; nanoseconds in JSON.
Cell duration_cell(std::int64_t nanoseconds);
/// Shown as "12.3 %"; the share itself in JSON (null where not finite).
Cell share_cell(double share);
/// Fixed digits on the screen, the number in JSON (null where not finite).
Cell number_cell(double number, int digits);

struct Column {
    std::string title;   ///< on the screen
    std::string key;     ///< in JSON; empty: not there
    bool right = false;  ///< align to the right (numbers)
};

class Table {
public:
    explicit Table(std::vector<Column> columns);

    /// As many cells as columns; throws std::logic_error otherwise.
    void row(std::vector<Cell> cells);
    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Aligned text. Cells are made printable; the last column is not padded. With `width`, text of the last column
    /// that would go beyond it is broken at blanks.
    void print(std::ostream& out, std::size_t indent = 0, std::size_t width = 0) const;
    /// An array with one object per row.
    [[nodiscard]] Json json() const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

/// Bytes as one line of valid UTF-8: control bytes and invalid sequences
/// become \n, \t, \\ or \xNN.
std::string printable(std::string_view bytes);
/// Columns a terminal needs for valid UTF-8, one per code point.
std::size_t display_width(std::string_view text);
/// Indented JSON and a newline. Strings that are not UTF-8 do not throw:
/// their bad bytes are replaced by U+FFFD. Pass them through printable() first
/// where they must stay apart.
void print_json(std::ostream& out, const Json& json);
/// To a file by way of FILE.partial and rename; "-" is standard output.
/// Throws Error (machine).
void write_json(const std::string& path, const Json& json);
/// To one that is begun already, and then whole.
void write_json(TextOutput& file, const Json& json);

}  // namespace reprise::cli
