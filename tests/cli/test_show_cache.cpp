// SPDX-License-Identifier: MIT
// What is said of the page cache.
#include "cli/show_cache.h"
#include "tests/units.h"

#include <doctest/doctest.h>

#include <string>

using namespace reprise;

TEST_CASE("what was fetched around page faults of mapped files counts as fetched") {
    CacheReport report;
    report.choice = {CacheRegime::cold, std::nullopt, CacheChoice::Why::fetched};
    report.recorded = {.read_bytes = 4 * kMiB, .fetched_bytes = 3 * kMiB, .pages_known = true};
    report.files = 1;
    report.bytes = 200 * kMiB;
    report.before = 0;
    CHECK(cli::cache_line(report) ==
          "cold (default: the recording fetched 3.00 MiB of 4.00 MiB); 0 B of 200 MiB in memory before");
    report.recorded.around_bytes = 196 * kMiB;
    CHECK(cli::cache_line(report) ==
          "cold (default: the recording fetched 199 MiB of 200 MiB); 0 B of 200 MiB in memory before");
}
