// SPDX-License-Identifier: MIT
#include "cli/regression_page.h"

#include <cmath>
#include <limits>

#include "analyze/report/page.h"
#include "cli/units.h"

namespace reprise::cli {
namespace {

constexpr int kColorA = 0, kColorB = 1;

PageUnit unit_of(const std::string& metric) {
    if (metric == "throughput") {
        return PageUnit::bytes_per_second;
    }
    return metric == "au" ? PageUnit::percent : PageUnit::seconds;
}

/// Of a metric's value in the unit of its axis.
double on_axis(const std::string& metric, double value) {
    switch (unit_of(metric)) {
        case PageUnit::seconds: return value / 1e9;
        case PageUnit::percent: return value * 100;
        default: return value;
    }
}

std::vector<double> padded(const std::string& metric, const std::vector<double>& runs, size_t size) {
    std::vector<double> out(size, std::numeric_limits<double>::quiet_NaN());
    for (size_t i = 0; i < runs.size(); ++i) {
        out[i] = on_axis(metric, runs[i]);
    }
    return out;
}

void add_runs(Page& page, const Regression& regression, const std::string& id) {
    for (size_t i = 0; i < regression.runs.size(); ++i) {
        const MetricRuns& metric = regression.runs[i];
        const MetricFinding& finding = regression.metrics[i];
        PageChart chart;
        chart.id = id + "-metric-" + std::to_string(i);
        chart.title = metric.name + ": " + std::string(finding_name(finding.finding));
        chart.note = "Each run of both sides, in the order in which they were given." +
                     (finding.change ? " Change of the median: " + signed_share(finding.change->median) + "." : "");
        chart.kind = PageChart::Kind::bars;
        chart.unit = unit_of(metric.name);
        chart.x_title = "run";
        const size_t most = std::max(metric.a.size(), metric.b.size());
        for (size_t run = 1; run <= most; ++run) {
            chart.labels.push_back(std::to_string(run));
        }
        chart.series = {{regression.side_a, padded(metric.name, metric.a, most), kColorA},
                        {regression.side_b, padded(metric.name, metric.b, most), kColorB}};
        page.chart(chart);
    }
}

void add_places(Page& page, const Regression& regression, const std::string& id) {
    constexpr double kShown = 0.002;
    double total = 0;
    for (const PlaceDifference& one : regression.places) {
        total += std::max(one.a, one.b);
    }
    PageChart chart;
    chart.id = id + "-places";
    chart.title = "Where the time of all tasks went";
    chart.note = "Medians of the runs of both sides; parts of less than 0.2 % are left out.";
    chart.kind = PageChart::Kind::bars;
    chart.unit = PageUnit::seconds;
    chart.sideways = true;
    chart.series = {{regression.side_a, {}, kColorA}, {regression.side_b, {}, kColorB}};
    for (const PlaceDifference& one : regression.places) {
        if (std::max(one.a, one.b) < kShown * total) {
            continue;
        }
        std::string label = one.place;
        for (size_t at = label.find(';'); at != std::string::npos; at = label.find(';', at)) {
            label.replace(at, 1, " / ");
        }
        chart.labels.push_back(label);
        chart.series[0].values.push_back(one.a / 1e9);
        chart.series[1].values.push_back(one.b / 1e9);
    }
    if (!chart.labels.empty()) {
        page.chart(chart);
    }
}

void add_metrics(Page& page, const Regression& regression) {
    PageTable table;
    table.title = "Metrics";
    table.columns = {{"metric"},     {regression.side_a, true}, {regression.side_b, true}, {"change", true},
                     {"95 %", true}, {"matters from", true},    {"shows from", true},      {"verdict"}};
    for (const MetricFinding& one : regression.metrics) {
        table.rows.push_back(
            {one.name, metric_value(one.name, one.a.median), metric_value(one.name, one.b.median),
             one.change ? signed_share(one.change->median) : "-",
             one.change ? signed_share(one.change->low) + " to " + signed_share(one.change->high) : "-",
             format_share(one.threshold), one.detectable ? format_share(*one.detectable) : "-",
             std::string(finding_name(one.finding))});
    }
    page.table(table);
}

void add_checks(Page& page, const std::vector<CheckedThing>& checks) {
    PageTable table;
    table.title = "Checks";
    table.columns = {{"check"}, {"result"}, {"what"}};
    for (const CheckedThing& one : checks) {
        if (one.failures.empty()) {
            table.rows.push_back(
                {one.name, one.skipped.empty() ? "ok" : "not checked", one.skipped.empty() ? one.note : one.skipped});
        }
        for (const std::string& failure : one.failures) {
            table.rows.push_back({one.name, "FAILED", failure});
        }
    }
    page.table(table);
}

}  // namespace

void write_regression_page(const std::filesystem::path& path, const std::string& title,
                           const std::vector<RegressionCase>& cases) {
    Page page(title, "Runs of one side beside runs of the other.");
    for (size_t i = 0; i < cases.size(); ++i) {
        const RegressionCase& one = cases[i];
        page.section(one.name);
        if (!one.checks.empty()) {
            add_checks(page, one.checks);
        }
        for (size_t k = 0; k < one.comparisons.size(); ++k) {
            const Regression& regression = one.comparisons[k];
            page.paragraph(regression.side_a + ": " + counted(regression.runs_a, "run") + "; " + regression.side_b +
                           ": " + counted(regression.runs_b, "run") + "; medians with 95 % intervals.");
            page.findings(regression.sentences());
            for (const MarkedRun& run : regression.marked) {
                page.paragraph((run.left_out ? "Left out: " : "Doubtful: ") + run.run + ": " + run.why);
            }
            for (const std::string& note : regression.notes) {
                page.paragraph(note);
            }
            const std::string id = "case-" + std::to_string(i) + "-" + std::to_string(k);
            add_metrics(page, regression);
            add_runs(page, regression, id);
            add_places(page, regression, id);
        }
    }
    page.write(path);
}

}  // namespace reprise::cli
