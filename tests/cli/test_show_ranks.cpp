// SPDX-License-Identifier: MIT
// What is said of the ranks of a run.
#include <doctest/doctest.h>

#include <sstream>

#include "cli/ranks.h"

namespace reprise::cli {
namespace {

constexpr int64_t kS = 1'000'000'000;

PeersReport report_of(const std::vector<int64_t>& held_up) {
    PeersReport report;
    for (const int64_t ns : held_up) {
        PeerRow row;
        row.rank = static_cast<uint32_t>(report.rows.size());
        row.host = "node" + std::to_string(row.rank);
        row.elapsed_ns = 10 * kS + row.rank;
        row.waited_ns = kS;
        row.held_up_ns = ns;
        row.ended = "complete";
        report.rows.push_back(row);
    }
    return report;
}

std::string printed(const PeersReport& report) {
    std::ostringstream out;
    print_ranks(out, report, 2);
    return out.str();
}

}  // namespace

TEST_CASE("the straggler is the rank that the others waited for most, with its share of all such waits") {
    const PeersReport report = report_of({kS, 0, 6 * kS, kS});
    const std::optional<Straggler> straggler = straggler_of(report);
    REQUIRE(straggler.has_value());
    CHECK(straggler->rank == 2);
    CHECK(straggler->waited_ns == 8 * kS);
    CHECK(straggler->share == doctest::Approx(0.75));
    CHECK(
        printed(report).find("straggler: rank 2, for which the ranks waited 75.0 % of the 8.00 s that they waited for "
                             "each other (if all were alike: 25.0 %)\n") != std::string::npos);
    const Json json = ranks_json(report);
    CHECK(json["straggler"] == 2);
    CHECK(json["straggler_share"] == doctest::Approx(0.75));
    CHECK(json["waited_s"] == doctest::Approx(8.0));
    CHECK(json["rows"][2]["held_up_ns"] == 6 * kS);
    CHECK(json["rows"][1]["waited_ns"] == kS);
}

TEST_CASE("where no rank waits for another there is no straggler") {
    const PeersReport report = report_of({0, 0});
    CHECK_FALSE(straggler_of(report).has_value());
    CHECK(printed(report).find("straggler") == std::string::npos);
    const Json json = ranks_json(report);
    CHECK(json["straggler"].is_null());
    CHECK(json["straggler_share"].is_null());
    CHECK(json["waited_s"].is_null());
}

}  // namespace reprise::cli
