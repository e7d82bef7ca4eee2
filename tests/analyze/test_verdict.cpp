// SPDX-License-Identifier: MIT
// What a run comes to: whether the numbers of its ops add up, and which cache served its reads.
#include "analyze/verdict.h"

#include <nlohmann/json.hpp>

#include "analyze/compare.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

Verdict verdict_with(const test::RunChanges& changes) {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    test::write_sample_run(dir / "b.oplog", changes);
    const LogReader a(dir / "a.oplog"), b(dir / "b.oplog");
    return verdict_of(compare(a, b), b.header());
}

Temperature temperature_of(std::optional<uint64_t> device, uint64_t read, uint64_t touched = 0) {
    Verdict verdict;
    verdict.device_read = device;
    verdict.here.bytes_read = verdict.here.storage_bytes_read = read;
    verdict.here.bytes_touched = touched;
    return verdict.temperature();
}

}  // namespace

TEST_CASE("a verdict's ops add up to those of the recording, whatever differs") {
    struct Row {
        test::RunChanges changes;
        uint64_t alike, differ, extra;
    };
    for (const Row& row :
         {Row{{}, 19, 0, 0}, Row{{.short_read = true}, 18, 1, 0}, Row{{.missing_op = true}, 18, 1, 0},
          Row{{.extra_op = true}, 19, 0, 1}, Row{{.swapped = true}, 18, 1, 0}, Row{{.other_size = true}, 18, 1, 0}}) {
        const Verdict verdict = verdict_with(row.changes);
        CHECK(verdict.ops.alike == row.alike);
        CHECK(verdict.ops.differ == row.differ);
        CHECK(verdict.ops.extra == row.extra);
        CHECK(verdict.ops.left_out == 5);
        REQUIRE(verdict.ops.left_out_by.size() == 1);
        CHECK(verdict.ops.left_out_by[0].second == 5);
        CHECK(verdict.ops.recorded() == 24);
        CHECK(verdict.same_job == (row.differ + row.extra == 0));
        CHECK(verdict.ended == "complete");
        const auto json = to_json(verdict);
        CHECK(json["io_ops"]["alike"].get<uint64_t>() + json["io_ops"]["differ"].get<uint64_t>() +
                  json["io_ops"]["left_out"].get<uint64_t>() ==
              json["io_ops"]["recorded"].get<uint64_t>());
    }
}

TEST_CASE("times alone never make it another job") {
    const Verdict verdict = verdict_with({.slower = 3});
    CHECK(verdict.same_job);
    CHECK(verdict.here.elapsed == doctest::Approx(3.0 * static_cast<double>(verdict.recorded.elapsed)).epsilon(0.1));
    CHECK(verdict.here.reads.p50 > 2 * verdict.recorded.reads.p50);
    CHECK(verdict.here.time.total > 2 * verdict.recorded.time.total);
}

TEST_CASE("cold, warm and mixed by the share of bytes that the device served") {
    CHECK(temperature_of(std::nullopt, 1000) == Temperature::unknown);
    CHECK(temperature_of(0, 0) == Temperature::unknown);
    CHECK(temperature_of(0, 1000) == Temperature::warm);
    CHECK(temperature_of(100, 1000) == Temperature::warm);
    CHECK(temperature_of(101, 1000) == Temperature::mixed);
    CHECK(temperature_of(899, 1000) == Temperature::mixed);
    CHECK(temperature_of(900, 1000) == Temperature::cold);
    CHECK(temperature_of(5000, 1000) == Temperature::cold);  // read-ahead
    CHECK(temperature_of(900, 0, 1000) == Temperature::cold);
    CHECK(temperature_of(500, 500, 9500) == Temperature::warm);
    Verdict shared_memory;  // bytes of /dev/shm come from no device
    shared_memory.here.bytes_read = 1'000'000;
    shared_memory.here.storage_bytes_read = 1000;
    shared_memory.device_read = 1000;
    CHECK(shared_memory.temperature() == Temperature::cold);
    Verdict null_engine;
    null_engine.here.storage_bytes_read = 1000;
    null_engine.device_read = 0;
    null_engine.no_storage = true;
    CHECK(null_engine.temperature() == Temperature::unknown);
}

TEST_CASE("what the device read beyond the data that it has is metadata; what neither it nor memory had is no data") {
    const auto temperature = [](uint64_t device, std::optional<uint64_t> data) {
        Verdict verdict;
        verdict.here.storage_bytes_read = 1000;
        verdict.device_read = device;
        verdict.device_data = data;
        return verdict.temperature();
    };
    CHECK(temperature(5000, 0) == Temperature::metadata);
    CHECK(temperature(500, 0) == Temperature::metadata);
    CHECK(temperature(5000, 2499) == Temperature::metadata);
    CHECK(temperature(5000, 2500) == Temperature::cold);
    CHECK(temperature(5000, std::nullopt) == Temperature::cold);
    CHECK(temperature(100, 0) == Temperature::warm);
    Verdict sparse;
    sparse.here.storage_bytes_read = 1000;
    sparse.device_read = 0;
    sparse.no_data = true;
    CHECK(sparse.temperature() == Temperature::no_data);
    CHECK(to_json(sparse)["cache"] == "no data");

    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    const LogReader a(dir / "a.oplog");
    Header run;
    run.extra["device.read_bytes"] = "900000";
    run.extra["device.data_bytes"] = "4096";
    const auto json = to_json(verdict_of(compare(a, a), run));
    CHECK(json["cache"] == "metadata");
    CHECK(json["device_data_bytes"] == 4096);
    run.extra["device.no_data"] = "yes";
    CHECK(to_json(verdict_of(compare(a, a), run))["cache"] == "no data");
}

TEST_CASE("what a run's log says of its device and its trust is in the verdict, and what no log says is null") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    const LogReader a(dir / "a.oplog");
    Header run;
    run.extra["device.read_bytes"] = "90112";
    run.extra["device.write_bytes"] = "17";
    run.extra["trust"] = "fair";
    run.extra["trust.reason"] = "steal time 0.20 of 2 CPUs";
    run.extra["pace"] = "causal";
    const Verdict verdict = verdict_of(compare(a, a), run);
    CHECK(verdict.pace == "causal");
    CHECK(verdict.device_written == 17);
    CHECK(verdict.trust == "fair");
    const auto json = to_json(verdict);
    CHECK(json["cache"] == "cold");
    CHECK(json["device_share"].get<double>() == doctest::Approx(90112.0 / (6 * 4096 + 4 * 16384 + 8192)));
    CHECK(json["trust_reason"] == "steal time 0.20 of 2 CPUs");
    const auto unknown = to_json(verdict_of(compare(a, a), a.header()));
    CHECK(unknown["cache"] == "unknown");
    for (const char* key : {"device_share", "device_read_bytes", "device_write_bytes", "trust", "trust_reason"}) {
        CHECK(unknown[key].is_null());
    }
}
