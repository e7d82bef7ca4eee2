// SPDX-License-Identifier: MIT
// Tables on the screen and the same rows as JSON.
#include "cli/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <stdexcept>

#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/text_output.h"

namespace reprise::cli {

namespace {

/// Length of the valid UTF-8 sequence at the start of `s`, 0 where invalid.
std::size_t utf8_length(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    const std::size_t length = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
    if (lead < 0xc2 || lead > 0xf4 || s.size() < length) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return 0;
        }
    }
    // Overlong forms, surrogates, beyond U+10FFFF.
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf0 && byte(1) < 0x90) ||
        (lead == 0xf4 && byte(1) > 0x8f)) {
        return 0;
    }
    return length;
}

constexpr std::size_t kLeastBroken = 20;  // columns; narrower text is left as it is

/// In lines of at most `width` columns, broken at blanks; a longer word stays whole.
std::vector<std::string> broken(std::string text, std::size_t width) {
    std::vector<std::string> lines;
    while (display_width(text) > width) {
        std::size_t at = 0;
        for (std::size_t blank = text.find(' '); blank != std::string::npos; blank = text.find(' ', blank + 1)) {
            if (display_width(std::string_view(text).substr(0, blank)) > width && at != 0) {
                break;
            }
            at = blank;
        }
        if (at == 0) {
            break;
        }
        lines.push_back(text.substr(0, at));
        text.erase(0, at + 1);
    }
    lines.push_back(std::move(text));
    return lines;
}

Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

}  // namespace

Cell count_cell(std::uint64_t count) { return {format_count(count), count}; }
Cell bytes_cell(std::uint64_t bytes) { return {format_bytes(bytes), bytes}; }
Cell duration_cell(std::int64_t nanoseconds) { return {format_duration(nanoseconds), nanoseconds}; }
Cell share_cell(double share) { return {format_share(share), finite_or_null(share)}; }

Cell number_cell(double number, int digits) {
    if (!std::isfinite(number)) {
        return {"-", nullptr};
    }
    std::array<char, 400> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, number);
    return {buffer.data(), Json(number)};
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::row(std::vector<Cell> cells) {
    if (cells.size() != columns_.size()) {
        throw std::logic_error("table row with another number of cells than columns");
    }
    rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out, std::size_t indent, std::size_t width) const {
    std::vector<std::vector<std::string>> lines(1);
    for (const auto& column : columns_) {
        lines[0].push_back(column.title);
    }
    for (const auto& row : rows_) {
        auto& line = lines.emplace_back();
        for (const auto& cell : row) {
            line.push_back(printable(cell.text));
        }
    }
    std::vector<std::size_t> widths(columns_.size(), 0);
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], display_width(line[i]));
        }
    }
    std::size_t last = indent;  // where the last column begins
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
        last += widths[i] + 2;
    }
    const bool breaks = width > last + kLeastBroken && !columns_.back().right;
    for (const auto& line : lines) {
        std::string text(indent, ' ');
        for (std::size_t i = 0; i + 1 < line.size(); ++i) {
            const std::string gap(widths[i] - display_width(line[i]), ' ');
            text += (columns_[i].right ? gap + line[i] : line[i] + gap) + "  ";
        }
        const std::string gap(columns_.back().right ? widths.back() - display_width(line.back()) : 0, ' ');
        for (const auto& part : broken(gap + line.back(), breaks ? width - last : SIZE_MAX)) {
            text += part;
            text.erase(text.find_last_not_of(' ') + 1);
            out << text << '\n';
            text.assign(last, ' ');
        }
    }
}

Json Table::json() const {
    Json rows = Json::array();
    for (const auto& row : rows_) {
        Json object = Json::object();
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (!columns_[i].key.empty()) {
                object[columns_[i].key] = row[i].value;
            }
        }
        rows.push_back(std::move(object));
    }
    return rows;
}

std::string printable(std::string_view bytes) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const std::size_t length = utf8_length(bytes);
        if (length == 0) {
            const auto byte = static_cast<unsigned char>(bytes[0]);
            out += "\\x";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
            bytes.remove_prefix(1);
        } else {
            out += length == 1 ? escape_line(bytes.substr(0, 1)) : std::string(bytes.substr(0, length));
            bytes.remove_prefix(length);
        }
    }
    return out;
}

std::size_t display_width(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void print_json(std::ostream& out, const Json& json) {
    out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void write_json(const std::string& path, const Json& json) {
    std::cout.flush();
    TextOutput out(path);
    write_json(out, json);
}

void write_json(TextOutput& file, const Json& json) {
    file.text = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
    file.finish();
}

}  // namespace reprise::cli
