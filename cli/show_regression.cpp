// SPDX-License-Identifier: MIT
#include "cli/show_regression.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "cli/outputs.h"
#include "cli/regression_page.h"
#include "cli/report_files.h"
#include "cli/show_verdict.h"
#include "cli/units.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

std::string range_of(const MetricFinding& one, const Estimate& value) {
    return metric_value(one.name, value.low) + " to " + metric_value(one.name, value.high);
}

Table metrics_table(const Regression& regression) {
    Table table({{"metric", "metric"},
                 {regression.side_a, "a", true},
                 {"95 %", "", true},
                 {regression.side_b, "b", true},
                 {"95 %", "", true},
                 {"change", "change", true},
                 {"95 %", "", true},
                 {"matters", "threshold", true},
                 {"shows", "detectable", true},
                 {"", "finding"}});
    for (const MetricFinding& one : regression.metrics) {
        const bool single = one.runs_a == 1 && one.runs_b == 1;
        const auto range = [&](const Estimate& value) { return single ? "-" : range_of(one, value); };
        const std::string change = one.change ? signed_share(one.change->median) : "-";
        const std::string of_change =
            one.change && !single ? signed_share(one.change->low) + " to " + signed_share(one.change->high) : "-";
        table.row({one.name, Cell(metric_value(one.name, one.a.median), one.a.median), range(one.a),
                   Cell(metric_value(one.name, one.b.median), one.b.median), range(one.b), change, of_change,
                   share_cell(one.threshold), one.detectable ? share_cell(*one.detectable) : Cell("-", nullptr),
                   std::string(finding_name(one.finding))});
    }
    return table;
}

/// The tree of places: sums of what lies below, then these by size.
class PlaceTree {
public:
    explicit PlaceTree(const std::vector<PlaceDifference>& places) {
        for (const PlaceDifference& one : places) {
            for (size_t end = 0; end != std::string::npos;) {
                end = one.place.find(';', end + 1);
                PlaceDifference& sum = sums_[one.place.substr(0, end)];
                sum.a += one.a;
                sum.b += one.b;
            }
            total_ += std::max(one.a, one.b);
            a_ += one.a;
            b_ += one.b;
        }
    }

    Table table(const Regression& regression) const {
        Table table({{"where the time of all tasks went", ""},
                     {regression.side_a, "", true},
                     {regression.side_b, "", true},
                     {"difference", "", true},
                     {"", ""}});
        add(table, "", 0);
        table.row({"all", duration_cell(std::llround(a_)), duration_cell(std::llround(b_)), difference(b_ - a_), ""});
        return table;
    }

private:
    static std::string difference(double ns) {
        return (ns < 0 ? "-" : "+") + format_duration(std::llround(std::abs(ns)));
    }

    /// Those directly below `parent`, the largest difference first.
    void add(Table& table, const std::string& parent, size_t depth) const {  // NOLINT(misc-no-recursion): three deep
        constexpr double kShown = 0.002, kBar = 30;
        std::vector<const std::pair<const std::string, PlaceDifference>*> below;
        for (const auto& one : sums_) {
            const size_t end = one.first.rfind(';');
            if ((end == std::string::npos ? "" : one.first.substr(0, end)) == parent) {
                below.push_back(&one);
            }
        }
        const auto apart = [](const PlaceDifference& one) { return std::abs(one.b - one.a); };
        std::stable_sort(below.begin(), below.end(),
                         [&](auto* x, auto* y) { return apart(x->second) > apart(y->second); });
        for (const auto* const one : below) {
            const PlaceDifference& sum = one->second;
            if (std::max(sum.a, sum.b) < kShown * total_) {
                continue;
            }
            const auto bar = static_cast<size_t>(kBar * apart(sum) / std::max(total_, 1.0));
            table.row(
                {std::string(2 * depth, ' ') + printable(one->first.substr(parent.empty() ? 0 : parent.size() + 1)),
                 duration_cell(std::llround(sum.a)), duration_cell(std::llround(sum.b)), difference(sum.b - sum.a),
                 std::string(bar, sum.b > sum.a ? '+' : '-')});
            add(table, one->first, depth + 1);
        }
    }

    std::map<std::string, PlaceDifference> sums_;
    double total_ = 0, a_ = 0, b_ = 0;
};

void check_report_file(const po::variables_map& values, const char* option) {
    if (values.count(option) == 0) {
        return;
    }
    const std::filesystem::path path = values[option].as<std::string>();
    if (path.empty()) {
        throw usage_error("--" + std::string(option) + "= names no file", "name the file to write");
    }
    check_directory_of(path);
    if (std::filesystem::exists(path) && values.count("force") == 0) {
        throw usage_error("--" + std::string(option) + ": " + escape_line(path.string()) + " exists",
                          "choose another name, or overwrite it with -f");
    }
}

}  // namespace

void add_regression_options(po::options_description& options) {
    options.add_options()(
        "threshold", po::value<std::vector<std::string>>()->composing()->value_name("METRIC=SHARE|FILE"),
        "from which change on a metric is worse or better, e.g. elapsed=3%, p99=20%; or a file of such "
        "lines; may be repeated [default: 2 %, p50=5%, p99=10%]")(
        "exclude-doubtful", "leave out runs with losses, that did not finish, or with trust POOR")(
        "junit", po::value<std::string>()->value_name("FILE"), "write JUnit XML")(
        "markdown", po::value<std::string>()->value_name("FILE"), "write Markdown")(
        "html", po::value<std::string>()->value_name("FILE"), "write a page with both sides in each chart");
}

Thresholds wanted_thresholds(const po::variables_map& values) {
    Thresholds out;
    if (values.count("threshold") != 0) {
        for (const std::string& text : values["threshold"].as<std::vector<std::string>>()) {
            text.find('=') == std::string::npos ? out.read(text) : out.add(text);
        }
    }
    return out;
}

void check_report_files(const po::variables_map& values) {
    check_report_file(values, "junit");
    check_report_file(values, "markdown");
    check_report_file(values, "html");
}

void write_reports(const po::variables_map& values, const std::string& title,
                   const std::vector<RegressionCase>& cases) {
    if (values.count("junit") != 0) {
        write_text(values["junit"].as<std::string>(), junit_xml(title, cases));
    }
    if (values.count("markdown") != 0) {
        write_text(values["markdown"].as<std::string>(), markdown_text(title, cases));
    }
    if (values.count("html") != 0) {
        write_regression_page(values["html"].as<std::string>(), title, cases);
    }
}

void print_regression(std::ostream& out, const Regression& regression) {
    for (const std::string& sentence : regression.sentences()) {
        for (const std::string& line : wrapped("", sentence)) {
            out << line << '\n';
        }
    }
    for (const MarkedRun& run : regression.marked) {
        const std::string text =
            std::string(run.left_out ? "left out: " : "DOUBTFUL: ") + run.run + " (" + run.why + ")";
        for (const std::string& line : wrapped("", text)) {
            out << line << '\n';
        }
    }
    for (const std::string& note : regression.notes) {
        for (const std::string& line : wrapped("note: ", note)) {
            out << line << '\n';
        }
    }
    out << regression.side_a << ": " << counted(regression.runs_a, "run") << ", " << regression.side_b << ": "
        << counted(regression.runs_b, "run") << "; medians with 95 % intervals\n\n";
    metrics_table(regression).print(out, 2);
    if (!regression.name.empty() && verbosity() <= 0) {
        return;  // one of many
    }
    out << '\n';
    PlaceTree(regression.places).table(regression).print(out, 2);
}

Json regression_json(const Regression& regression) {
    const auto estimate = [](const Estimate& value) {
        return Json{{"median", value.median}, {"low", value.low}, {"high", value.high}};
    };
    Json metrics = Json::array();
    for (const MetricFinding& one : regression.metrics) {
        const bool single = one.runs_a == 1 && one.runs_b == 1;
        metrics.push_back({{"metric", one.name},
                           {"a", single ? Json{{"median", one.a.median}} : estimate(one.a)},
                           {"b", single ? Json{{"median", one.b.median}} : estimate(one.b)},
                           {"change", one.change ? estimate(*one.change) : Json(nullptr)},
                           {"threshold", one.threshold},
                           {"detectable", one.detectable ? Json(*one.detectable) : Json(nullptr)},
                           {"p", one.p},
                           {"p_adjusted", one.p_adjusted},
                           {"finding", finding_name(one.finding)}});
    }
    Json marked = Json::array(), places = Json::array();
    for (const MarkedRun& run : regression.marked) {
        marked.push_back({{"run", run.run}, {"why", run.why}, {"left_out", run.left_out}});
    }
    for (const PlaceDifference& one : regression.places) {
        places.push_back({{"place", printable(one.place)}, {"a_ns", one.a}, {"b_ns", one.b}});
    }
    return {{"passed", regression.passed()},
            {"finding", finding_name(regression.finding())},
            {"sentences", regression.sentences()},
            {"same_cache", regression.other_cache.empty()},
            {"a", {{"name", regression.side_a}, {"runs", regression.runs_a}}},
            {"b", {{"name", regression.side_b}, {"runs", regression.runs_b}}},
            {"marked", std::move(marked)},
            {"notes", regression.notes},
            {"metrics", std::move(metrics)},
            {"spent", std::move(places)}};
}

}  // namespace reprise::cli
