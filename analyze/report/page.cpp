// SPDX-License-Identifier: MIT
#include "analyze/report/page.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "analyze/report/assets.h"
#include "formats/support/escape.h"
#include "formats/support/text_output.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

/// Valid UTF-8 without control characters.
std::string plain(std::string_view bytes) {
    std::string out;
    append_escaped(out, bytes);
    return out;
}

/// Text of an element, or an attribute's value between double quotes.
std::string markup(std::string_view bytes) {
    std::string out;
    for (const char c : plain(bytes)) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default: out += c;
        }
    }
    return out;
}

/// For a script element: nothing in it ends the element, begins a comment or is no ASCII.
std::string script_json(const Json& json) {
    std::string out;
    for (const char c : json.dump(-1, ' ', true)) {
        if (c == '<' || c == '>' || c == '&') {
            constexpr char kHex[] = "0123456789abcdef";
            out += "\\u00";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[static_cast<unsigned char>(c) & 15];
        } else {
            out += c;
        }
    }
    return out;
}

const char* unit_name(PageUnit unit) {
    switch (unit) {
        case PageUnit::count: return "count";
        case PageUnit::per_second: return "/s";
        case PageUnit::bytes: return "B";
        case PageUnit::bytes_per_second: return "B/s";
        case PageUnit::seconds: return "s";
        case PageUnit::percent: return "%";
    }
    return "";
}

const char* kind_name(PageChart::Kind kind) {
    switch (kind) {
        case PageChart::Kind::lines: return "lines";
        case PageChart::Kind::areas: return "areas";
        case PageChart::Kind::bars: return "bars";
        case PageChart::Kind::stacked_bars: return "stacked bars";
    }
    return "";
}

/// Six digits are more than a screen shows; null where there is no number.
Json numbers(std::span<const double> values) {
    Json out = Json::array();
    for (const double value : values) {
        if (!std::isfinite(value)) {
            out.push_back(nullptr);
        } else if (value == std::floor(value) && std::abs(value) < 1e6) {
            out.push_back(static_cast<int64_t>(value));
        } else {
            char text[32];
            std::snprintf(text, sizeof text, "%.6g", value);
            out.push_back(Json::parse(text));
        }
    }
    return out;
}

/// One letter for each share: '0' none of the time, 'o' all of it.
std::string letters(std::span<const float> shares) {
    constexpr float kSteps = 63;
    std::string out;
    out.reserve(shares.size());
    for (const float share : shares) {
        const float within = std::isfinite(share) ? std::min(std::max(share, 0.0F), 1.0F) : 0.0F;
        out += static_cast<char>('0' + static_cast<int>(std::lround(within * kSteps)));
    }
    return out;
}

}  // namespace

struct Page::Impl {
    std::string title, lead, body, contents;
    Json charts = Json::array();
    int sections = 0;

    /// The frame that the script fills.
    void figure(std::string_view id, std::string_view caption, std::string_view note, bool tall) {
        const std::string name = markup(id);
        body += "<figure class=\"chart" + std::string(tall ? " tall" : "") + "\" id=\"" + name + "\"><figcaption><h3>" +
                markup(caption) + "</h3><p id=\"" + name + "-note\">" + markup(note) +
                "</p></figcaption><div class=\"plot\"></div></figure>\n";
    }
};

Page::Page(std::string_view title, std::string_view lead) : impl_(std::make_unique<Impl>()) {
    impl_->title = title;
    impl_->lead = lead;
}
Page::~Page() = default;

void Page::section(std::string_view title, std::string_view text) {
    const std::string id = "section-" + std::to_string(++impl_->sections);
    if (impl_->sections > 1) {
        impl_->body += "</section>\n";
    }
    impl_->body += "<section aria-labelledby=\"" + id + "\"><h2 id=\"" + id + "\">" + markup(title) + "</h2>\n";
    impl_->contents += "<a href=\"#" + id + "\">" + markup(title) + "</a>\n";
    if (!text.empty()) {
        paragraph(text);
    }
}

void Page::paragraph(std::string_view text) { impl_->body += "<p>" + markup(text) + "</p>\n"; }

void Page::findings(const std::vector<std::string>& sentences) {
    impl_->body += "<ol class=\"findings\">\n";
    for (const std::string& sentence : sentences) {
        impl_->body += "<li>" + markup(sentence) + "</li>\n";
    }
    impl_->body += "</ol>\n";
}

void Page::figures(const std::vector<std::pair<std::string, std::string>>& named) {
    impl_->body += "<dl class=\"figures\">\n";
    for (const auto& [name, value] : named) {
        impl_->body += "<div><dt>" + markup(name) + "</dt><dd>" + markup(value) + "</dd></div>\n";
    }
    impl_->body += "</dl>\n";
}

void Page::chart(const PageChart& chart) {
    impl_->figure(chart.id, chart.title, chart.note, chart.sideways);
    Json series = Json::array();
    for (const PageSeries& one : chart.series) {
        series.push_back(
            {{"name", plain(one.name)}, {"color", one.color}, {"dashed", one.dashed}, {"values", numbers(one.values)}});
    }
    Json labels = Json::array();
    for (const std::string& label : chart.labels) {
        labels.push_back(plain(label));
    }
    impl_->charts.push_back({{"id", chart.id},
                             {"kind", kind_name(chart.kind)},
                             {"title", plain(chart.title)},
                             {"unit", unit_name(chart.unit)},
                             {"log", chart.logarithmic},
                             {"x", numbers(chart.x)},
                             {"x_unit", unit_name(chart.x_unit)},
                             {"x_title", plain(chart.x_title)},
                             {"zoom", chart.zoom},
                             {"labels", std::move(labels)},
                             {"sideways", chart.sideways},
                             {"series", std::move(series)}});
}

void Page::lanes(const PageLanes& lanes) {
    impl_->figure(lanes.id, lanes.title, lanes.note, true);
    Json states = Json::array(), rows = Json::array();
    for (const PageLanes::State& state : lanes.states) {
        states.push_back({{"name", plain(state.name)}, {"color", state.color}});
    }
    for (const PageLanes::Lane& lane : lanes.lanes) {
        rows.push_back({{"name", plain(lane.name)}, {"shares", letters(lane.shares)}});
    }
    impl_->charts.push_back({{"id", lanes.id},
                             {"kind", "lanes"},
                             {"title", plain(lanes.title)},
                             {"begin", lanes.begin},
                             {"end", lanes.end},
                             {"x_unit", "s"},
                             {"zoom", lanes.zoom},
                             {"states", std::move(states)},
                             {"lanes", std::move(rows)}});
}

void Page::table(const PageTable& table) {
    std::string& out = impl_->body;
    out += "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"" + markup(table.title) +
           "\"><table><caption>" + markup(table.title) + "</caption><thead><tr>";
    for (const PageTable::Column& column : table.columns) {
        out += std::string("<th scope=\"col\"") + (column.right ? " class=\"right\"" : "") + ">" +
               markup(column.title) + "</th>";
    }
    out += "</tr></thead><tbody>\n";
    for (const std::vector<std::string>& row : table.rows) {
        out += "<tr>";
        for (size_t i = 0; i < row.size() && i < table.columns.size(); ++i) {
            out += std::string("<td") + (table.columns[i].right ? " class=\"right\"" : "") + ">" + markup(row[i]) +
                   "</td>";
        }
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
}

std::string Page::html() const {
    const Impl& page = *impl_;
    std::string out =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
        markup(page.title) + "</title>\n<style>\n";
    out += page_style();
    out += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the figures</a>\n<header>\n<div><h1>" +
           markup(page.title) + "</h1>\n<p>" + markup(page.lead) +
           "</p></div>\n<button type=\"button\" id=\"theme\">Theme: as the system</button>\n</header>\n"
           "<nav aria-label=\"Contents\">\n" +
           page.contents + "</nav>\n<main id=\"main\">\n" + page.body + (page.sections > 0 ? "</section>\n" : "") +
           "</main>\n<div id=\"said\" class=\"unseen\" aria-live=\"polite\"></div>\n"
           "<noscript><p>The charts need JavaScript; tables and figures do not.</p></noscript>\n"
           "<script type=\"application/json\" id=\"page-data\">" +
           script_json({{"charts", page.charts}}) + "</script>\n<script>\n";
    out += chart_library();
    out += "\n</script>\n<script>\n";
    out += page_script();
    out += "</script>\n</body>\n</html>\n";
    return out;
}

void Page::write(const std::filesystem::path& path) const {
    TextOutput out(path);
    out.put(html());
    out.finish();
}

}  // namespace reprise
