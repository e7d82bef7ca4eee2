// SPDX-License-Identifier: MIT
// Several recordings of one job.
#include "experiment/recordings.h"

#include <doctest/doctest.h>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

RecordingFacts recording(const char* name, int64_t seconds) {
    return {name, "python train.py", 1'000, 64 << 20, seconds * kSecond, 0, kSecond, 4};
}

}  // namespace

TEST_CASE("recordings that did not do the same are named") {
    std::vector<RecordingFacts> all = {recording("a.oplog", 10), recording("b.oplog", 12), recording("c.oplog", 11)};
    CHECK(unlike_recordings(all).empty());
    all[2].ops = 1'049;
    CHECK(unlike_recordings(all).empty());
    all[2].ops = 1'100;
    CHECK(unlike_recordings(all).find("a.oplog has 1,000 ops and c.oplog 1,100") == 0);
    all[2].ops = 1'000;
    all[1].bytes *= 2;
    CHECK(unlike_recordings(all).find("b.oplog") != std::string::npos);
}

TEST_CASE("what a recording says of itself") {
    const TempDir dir;
    Header header;
    header.command = "python train.py";
    write_fact(header, fact::stolen, 7);
    write_fact(header, fact::run_queue, 8);
    write_fact(header, fact::capture_cpus, 3);
    LogWriter writer(dir / "job.oplog", header);
    ProcessRow process;
    process.pid = 1;
    const ProcessId owner = writer.add_process(process);
    for (const int64_t begin : {5 * kSecond, 3 * kSecond}) {
        TaskRow row;
        row.process = owner;
        row.tid = static_cast<int>(begin / kSecond);
        writer.append(writer.add_task(row), {.kind = OpKind::idle, .begin = begin, .duration = 4 * kSecond});
    }
    writer.finish();
    const RecordingFacts facts = recording_facts(LogReader(dir / "job.oplog"));
    CHECK(facts.path == dir / "job.oplog");
    CHECK(facts.command == "python train.py");
    CHECK(facts.ops == 2);
    CHECK(facts.elapsed_ns == 6 * kSecond);
    CHECK(facts.stolen_ns == 7);
    CHECK(facts.run_queue_ns == 8);
    CHECK(facts.cpus == 3);

    LogWriter other(dir / "empty.oplog", {});
    other.finish();
    const RecordingFacts empty = recording_facts(LogReader(dir / "empty.oplog"));
    CHECK(empty.elapsed_ns == 0);
    CHECK(empty.stolen_ns == -1);
    CHECK(empty.run_queue_ns == -1);
    CHECK(empty.cpus == 1);
    CHECK_FALSE(recording_outcomes({empty})[0].valid);
}

TEST_CASE("recordings that something disturbed do not speak for the job") {
    std::vector<RecordingFacts> all{recording("a", 10), recording("b", 14), recording("c", 11), recording("d", 12)};
    all[1].stolen_ns = 14 * kSecond / 2;  // half a CPU of four
    std::vector<RunOutcome> runs = recording_outcomes(all);
    CHECK(runs[0].counts());
    REQUIRE(runs[1].disturbed.size() == 1);
    CHECK(runs[1].disturbed[0] == "steal time: 0.50 of 4 CPUs");
    CHECK(judge_series(runs).median_run == 2);
    all[3].run_queue_ns = kSecond + 12 * kSecond / 10 + 10'000'000;
    runs = recording_outcomes(all);
    REQUIRE(runs[3].disturbed.size() == 1);
    CHECK(runs[3].disturbed[0] == "its tasks waited 1.21 s longer for CPUs than usual");
    std::vector<RecordingFacts> short_ones = all;
    for (RecordingFacts& one : short_ones) {
        one.run_queue_ns = 0;
        one.elapsed_ns = 40'000'000;
        one.stolen_ns = -1;
    }
    short_ones[3].run_queue_ns = 4'300'000;
    runs = recording_outcomes(short_ones);
    REQUIRE(runs[3].disturbed.size() == 1);
    CHECK(runs[3].disturbed[0] == "its tasks waited 4.30 ms longer for CPUs than usual");
    all[3].run_queue_ns = kSecond + 12 * kSecond / 10 - 10'000'000;
    CHECK(recording_outcomes(all)[3].counts());
    for (RecordingFacts& one : all) {
        one.stolen_ns = one.run_queue_ns = -1;
    }
    for (const RunOutcome& one : recording_outcomes(all)) {
        CHECK(one.counts());  // nothing is known against them
    }
}

TEST_CASE("recordings of different jobs are refused") {
    std::vector<RecordingFacts> all{recording("a", 10), recording("b", 14)};
    check_one_job(all);
    all[1].ops = 501;
    check_one_job(all);
    all[1].ops = 499;
    CHECK_THROWS_AS(check_one_job(all), Error);
    all[1].ops = 2'001;
    CHECK_THROWS_AS(check_one_job(all), Error);
    all[1] = recording("b", 14);
    all[1].command = "python other.py";
    CHECK_THROWS_AS(check_one_job(all), Error);
    check_one_job({});
}

TEST_CASE("cold and warm recordings are not to be mixed") {
    const auto mixed = [](const std::vector<int64_t>& fetched) {
        std::vector<RecordingFacts> recordings;
        for (const int64_t bytes : fetched) {
            recordings.push_back(recording("a", 10));
            recordings.back().fetched_bytes = bytes;
        }
        return mixed_caches(recordings);
    };
    constexpr int64_t kMiB = 1 << 20;
    CHECK_FALSE(mixed({}));
    CHECK_FALSE(mixed({60 * kMiB, 80 * kMiB, 100 * kMiB}));
    CHECK_FALSE(mixed({0, kMiB}));
    CHECK_FALSE(mixed({-1, 100 * kMiB}));
    CHECK(mixed({100 * kMiB, 0, 90 * kMiB}) == std::pair(int64_t{0}, 100 * kMiB));
    CHECK(mixed({49 * kMiB, 100 * kMiB}));
}
