// SPDX-License-Identifier: MIT
// The grid of `predict --sweep`: what its words stand for, and what a cell changes of the storage model.
#include "cli/predict_sweep.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"

using namespace reprise;
using namespace reprise::cli;

namespace {

StorageModel model() {
    StorageModel m;
    m.read = {{4'096, 100'000}, {1 << 20, 1'100'000}};
    m.read_bytes_per_s = 100 << 20;
    m.reads_per_s = 500;
    return m;
}

}  // namespace

TEST_CASE("axes: lists as given, ranges by even steps of the logarithm") {
    using Values = std::vector<std::string>;
    const std::vector<SweepAxis> axes = predicted_axes({"gpu-speed=1..128", "memory=1.5G,200M"});
    REQUIRE(axes.size() == 2);
    CHECK(axes[0] == SweepAxis{"gpu-speed", Values{"1", "2", "4", "8", "16", "32", "64", "128"}});
    CHECK(axes[1] == SweepAxis{"memory", Values{"1.5G", "200M"}});
    CHECK(predicted_axes({"memory=512K..64M"})[0].values ==
          Values{"512K", "1M", "2M", "4M", "8M", "16M", "32M", "64M"});
    CHECK(predicted_axes({"riops=1..2"})[0].values == Values{"1", "1.1", "1.2", "1.3", "1.5", "1.6", "1.8", "2"});
    // What rounds to the same is there once.
    CHECK(predicted_axes({"riops=100..104"})[0].values == Values{"100", "104"});
    for (const char* const wrong :
         {"", "=", "read=", "read=..", "read=1M..", "read=x", "riops=inf", "riops=-1", "riops=1x", "ratio=nan",
          "ratio=1,1.0", "memory=1G,1024M", "io-limit=read", "memory=0", "gpu-speed=0..1"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(predicted_axes({wrong}), Error);
    }
}

TEST_CASE("a cell changes what its axes say") {
    const std::vector<SweepAxis> axes = predicted_axes({"read=50M,200M", "riops=1000"});
    const PredictedCell slow = predicted_cell(axes, {0, 0}, model());
    CHECK(slow.storage.read_bytes_per_s == 50 << 20);
    CHECK(slow.storage.reads_per_s == 1'000);
    CHECK(slow.storage.read[1].ns == 1'100'000);  // the device beneath the limit is the same
    CHECK(!slow.memory);
    CHECK(!slow.ratio);
    CHECK(!slow.gpu);
    // Twice as fast: what more bytes take halves, the latency stays.
    const PredictedCell fast = predicted_cell(axes, {1, 0}, model());
    CHECK(fast.storage.read_bytes_per_s == 200 << 20);
    CHECK(fast.storage.read[0].ns == 100'000);
    CHECK(fast.storage.read[1].ns == 600'000);
    const std::vector<SweepAxis> others = predicted_axes({"ratio=4", "gpu-speed=2"});
    CHECK(predicted_cell(others, {0, 0}, model()).ratio == 4.0);
    CHECK(predicted_cell(others, {0, 0}, model()).gpu == 2.0);
    CHECK(predicted_cell(predicted_axes({"memory=1G"}), {0}, model()).memory == uint64_t{1} << 30);
}

TEST_CASE("a cell that cannot be is refused by itself") {
    PredictedSweep sweep("job.oplog", "model.json", predicted_axes({"ratio=1,2"}));
    sweep.run([](const SweepCell& cell) {
        if (cell[0] == 1) {
            throw machine_error("it would not run there", "allow more memory");
        }
        SweepRun run;
        run.trust = "good";
        run.elapsed_s = 3;
        return run;
    });
    const SweepResult result = sweep.result();
    REQUIRE(result.runs.size() == 2);
    CHECK(result.runs[0][0]->elapsed_s == 3);
    CHECK(result.runs[1][0]->refused == "it would not run there");
    CHECK(!sweep_believed(result));
    PredictedSweep broken("job.oplog", "model.json", predicted_axes({"ratio=1"}));
    CHECK_THROWS_AS(broken.run([](const SweepCell&) -> SweepRun { throw usage_error("wrong", ""); }), Error);
}
