// SPDX-License-Identifier: MIT
// The text of a scrape: grouping, escaping, numbers, histograms.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include "metrics/exposition.h"

namespace reprise::test {

TEST_CASE("samples of a metric stand together after its help and type, in the order of the table") {
    Exposition out;
    out.add(Metric::replay_ops_total, {"read"}, uint64_t{18446744073709551615u});
    out.add(Metric::replay_progress_ratio, {}, 0.25);
    out.add(Metric::replay_ops_total, {"open"}, uint64_t{3});
    CHECK(out.text() ==
          "# HELP reprise_replay_progress_ratio Share of the log's ops that the present run has passed\n"
          "# TYPE reprise_replay_progress_ratio gauge\n"
          "reprise_replay_progress_ratio 0.25\n"
          "# HELP reprise_replay_ops_total Ops performed, of all runs\n"
          "# TYPE reprise_replay_ops_total counter\n"
          "reprise_replay_ops_total{op=\"read\"} 18446744073709551615\n"
          "reprise_replay_ops_total{op=\"open\"} 3\n");
    CHECK(Exposition().text().empty());
}

TEST_CASE("buckets are cumulative, and the last one is the count") {
    Exposition out;
    const std::array<double, 3> bounds{1e-6, 0.001, 2.5};
    const std::array<uint64_t, 4> counts{2, 0, 5, 1};
    out.add(Metric::replay_op_duration_seconds, {"fsync"}, bounds, counts, 7.5);
    const std::string text = out.text();
    CHECK(text.find("_bucket{op=\"fsync\",le=\"1e-06\"} 2\n") != std::string::npos);
    CHECK(text.find("_bucket{op=\"fsync\",le=\"0.001\"} 2\n") != std::string::npos);
    CHECK(text.find("_bucket{op=\"fsync\",le=\"2.5\"} 7\n") != std::string::npos);
    CHECK(text.find("_bucket{op=\"fsync\",le=\"+Inf\"} 8\n") != std::string::npos);
    CHECK(text.find("_sum{op=\"fsync\"} 7.5\n") != std::string::npos);
    CHECK(text.find("_count{op=\"fsync\"} 8\n") != std::string::npos);

    Exposition plain;
    plain.add(Metric::replay_lateness_seconds, {}, bounds, counts, 1);
    CHECK(plain.text().find("reprise_replay_lateness_seconds_bucket{le=\"1e-06\"} 2\n") != std::string::npos);
    CHECK(plain.text().find("reprise_replay_lateness_seconds_count 8\n") != std::string::npos);
}

TEST_CASE("labels and help cannot break out of their line") {
    CHECK(label_value("a\\b\"c\nd") == "a\\\\b\\\"c\\nd");
    CHECK(label_value("Größe") == "Größe");
    CHECK(label_value("\xff"
                      "a\xc3") ==
          "\xef\xbf\xbd"
          "a\xef\xbf\xbd");
    CHECK(label_value("\xe0\x80\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // overlong
    CHECK(label_value("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
    CHECK(help_text("one\ntwo\\ \"three\"") == "one\\ntwo\\\\ \"three\"");
    Exposition out;
    out.add(Metric::capture_info, {"x\"} 1\nevil 2"}, uint64_t{1});
    CHECK(out.text().find("reprise_capture_info{log=\"x\\\"} 1\\nevil 2\"} 1\n") != std::string::npos);
}

TEST_CASE("numbers read back as they were") {
    CHECK(sample_value(0) == "0");
    CHECK(sample_value(0.1) == "0.1");
    CHECK(sample_value(1.0 / 3) == "0.3333333333333333");
    CHECK(sample_value(std::numeric_limits<double>::infinity()) == "+Inf");
    CHECK(sample_value(-std::numeric_limits<double>::infinity()) == "-Inf");
    CHECK(sample_value(std::nan("")) == "NaN");
}

TEST_CASE("the table keeps Prometheus's conventions") {
    const std::regex name("reprise_[a-z]+(_[a-z]+)*"), labels("([a-z]+(,[a-z]+)*)?");
    std::set<std::string_view> seen;
    for (const MetricInfo& row : all_metrics()) {
        INFO(row.name);
        CHECK(seen.insert(row.name).second);
        CHECK(std::regex_match(std::string(row.name), name));
        CHECK(std::regex_match(std::string(row.labels), labels));
        CHECK(row.name.ends_with("_total") == (row.type == MetricType::counter));
        CHECK(!row.help.empty());
        CHECK(row.help.find('\n') == std::string_view::npos);
        CHECK(!row.help.ends_with('.'));
        if (row.type == MetricType::histogram) {
            CHECK(row.name.ends_with("_seconds"));
        }
    }
}

}  // namespace reprise::test
