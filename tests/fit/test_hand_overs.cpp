// SPDX-License-Identifier: MIT
// Batches of recorded loaders that nothing marks.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "fit/fit.h"
#include "tests/fit/loader_log.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

FittedJob fit_of(const LoaderJob& job) {
    const TempDir dir;
    const LoaderLog log(dir / "job.oplog", job);
    return fit_job(LogReader(dir / "job.oplog"));
}

std::string value(const FittedJob& job, std::string_view word) {
    const FittedWord* const found = job.find(word);
    return found == nullptr ? "" : found->value;
}

}  // namespace

TEST_CASE("batches are what the queue brings: neither what else is said nor who sends late counts") {
    for (const bool lengths : {false, true}) {
        LoaderJob asked;
        asked.lengths = lengths;
        const FittedJob job = fit_of(asked);
        CHECK(value(job, "batch") == "6");
        CHECK(value(job, "loader_workers") == "2");
        CHECK(value(job, "epochs") == "3");
        CHECK(job.find("steps") == nullptr);  // all of three epochs
        CHECK(job.sees("batch"));
        CHECK(job.sees("loader_workers"));
        CHECK(value(job, "prefetch") == "3");
        CHECK(job.sees("prefetch"));
        CHECK(job.differs.empty());
    }
}

TEST_CASE("an epoch that ends early is the last one, not a third of all") {
    LoaderJob asked;
    asked.last_epoch = 5;
    const FittedJob job = fit_of(asked);
    CHECK(value(job, "batch") == "6");
    CHECK(value(job, "loader_workers") == "2");
    CHECK(value(job, "steps") == "25");
    CHECK(job.differs.empty());
}

TEST_CASE("where batches cannot be told apart, they are guesses") {
    LoaderJob silent;
    silent.asks = false;
    const FittedJob job = fit_of(silent);
    CHECK_FALSE(job.sees("batch"));
    CHECK_FALSE(job.sees("steps"));
    CHECK(job.find("batch")->guessed);
    CHECK(value(job, "loader_workers") == "2");
}

TEST_CASE("a job that reads something else than the recording says so") {
    LoaderJob twice;
    twice.reads = 2;  // of each sample a second time, as a program does that looks for its size
    const FittedJob job = fit_of(twice);
    CHECK(value(job, "batch") == "6");
    CHECK(job.differs == "the fitted job reads 5.15 MiB in 180 samples, the recording 10.3 MiB in 180 samples");
    CHECK(job.text("x").find("; NOT THE RECORDED JOB: the fitted job reads") != std::string::npos);
    LoaderJob rest;
    rest.samples = 65;  // the last batch of each epoch is not full
    rest.batch = 10;
    CHECK(fit_of(rest).differs.find("in 180 samples, the recording 5.58 MiB in 195") != std::string::npos);
}

TEST_CASE("checkpoints lie as many samples apart where the job's epochs have fewer steps") {
    LoaderJob rest;
    rest.samples = 65;
    rest.batch = 10;
    rest.saves = 21;  // at the end of all: the last batch of each epoch is not full
    const FittedJob job = fit_of(rest);
    CHECK(value(job, "checkpoint_every") == "18");
    CHECK_FALSE(job.sees("checkpoint_every"));
    LoaderJob full;
    full.samples = 60;
    full.batch = 10;
    full.saves = 4;
    CHECK(value(fit_of(full), "checkpoint_every") == "4");
    CHECK(fit_of(full).sees("checkpoint_every"));
}
