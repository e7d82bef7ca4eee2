// SPDX-License-Identifier: MIT
// Sweeps whose cells differ in more than what is varied.
#include "cli/sweep_cache.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace reprise;
using namespace reprise::cli;

namespace {

SweepRun served(double share) {
    SweepRun run;
    run.trust = "fair";
    run.elapsed_s = 1;
    run.device_share = share;
    return run;
}

}  // namespace

TEST_CASE("sweep: a cell whose device served another share is marked, said first, and fails; not over the memory") {
    const SweepRun cold = served(1), nearly = served(0.95), warm = served(0), half = served(0.5);
    SweepResult result{
        "t.oplog", "root", {{"gpu-speed", {"1", "2", "4"}}}, sweep_cells({{"gpu-speed", {"1", "2", "4"}}}), {}, 2, {}};
    result.cache = "cold at the start of each run (as asked)";
    const auto text = [&] {
        std::ostringstream out;
        print_sweep(out, result, {});
        return out.str();
    };
    result.runs = {{&cold, &cold}, {&nearly, &cold}, {&nearly}};
    CHECK(cells_of_other_cache(result).empty());
    CHECK(sweep_believed(result));
    CHECK(text().starts_with("cache: cold at the start of each run (as asked)\n"));
    result.runs = {{&cold, &cold}, {&warm, &cold}, {&nearly}};  // one run is enough
    CHECK(cells_of_other_cache(result) == std::vector<size_t>{1});
    CHECK_FALSE(sweep_believed(result));
    CHECK(text().starts_with(
        "DO NOT COMPARE: the device served another share of the bytes in 1 cell of 3 (--gpu-speed 2)"));
    CHECK(text().find("FAIR, other share from the device") != std::string::npos);
    CHECK(sweep_json(result)["cells"][1]["problem"] == "other share from the device");
    CHECK(sweep_json(result)["cells"][0]["problem"].is_null());
    result.predicted = true;
    CHECK(cells_of_other_cache(result).empty());
    result.predicted = false;

    result.axes = {{"ratio", {"0.5", "2"}}, {"gpu-speed", {"1", "2"}}};
    result.cells = sweep_cells(result.axes);
    result.runs = {{&half}, {&half}, {&cold}, {&cold}};
    CHECK(cells_of_other_cache(result).empty());
    result.runs = {{&half}, {&half}, {&cold, &cold}, {&half}};
    CHECK(cells_of_other_cache(result) == std::vector<size_t>{3});
}
