// SPDX-License-Identifier: MIT
// The summary of logs whose contents are known, and of a real recording.
#include "analyze/summary.h"

#include <nlohmann/json.hpp>

#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

TEST_CASE("the sample's summary has its numbers") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    const Summary all = summarize(log);
    CHECK(all.ops == 44);
    CHECK(all.left_out_ops == 0);
    CHECK(all.errors == 1);
    CHECK(all.tasks == 3);
    CHECK(all.tasks_with_ops == 2);
    CHECK(all.processes == 2);
    CHECK(all.files == 4);
    CHECK(all.bytes_read == 6 * 4096 + 4 * 16384);
    CHECK(all.bytes_written == 8192);
    CHECK(all.bytes_touched == 8192);
    CHECK(all.edges == 1);
    CHECK(all.inferred_edges == 1);
    CHECK(all.begin == -2'000'000);
    CHECK(all.end == 317'000'500);
    REQUIRE(all.kind(OpKind::pread));
    CHECK(all.kind(OpKind::pread)->ops == 4);
    CHECK(all.kind(OpKind::pread)->bytes == 65536);
    CHECK(all.kind(OpKind::pread)->latency.min == 10000);
    CHECK(all.kind(OpKind::pread)->latency.max == 40000);
    CHECK(all.kind(OpKind::pread)->latency.p50 == doctest::Approx(20000).epsilon(0.004));
    CHECK(all.kind(OpKind::open)->errors == 1);
    CHECK(all.kind(OpKind::rename) == nullptr);
    REQUIRE(all.roles.size() == 4);
    CHECK(all.roles[0].absent == 1);
    CHECK(all.roles[1].role == Role::dataset);
    CHECK(all.roles[1].files == 2);
    CHECK(all.roles[1].bytes_on_disk == 65536 + 131072);
    CHECK(all.roles[1].bytes_read == all.bytes_read);
    REQUIRE(all.devices.size() == 1);
    REQUIRE(all.devices[0].epochs.size() == 2);
    for (const EpochUtilisation& epoch : all.devices[0].epochs) {
        CHECK(*epoch.au() == doctest::Approx(0.6));
        CHECK(*epoch.au_mlperf() == doctest::Approx(40.0 / 60));
    }
    CHECK(*all.au_mlperf() == doctest::Approx(40.0 / 60));
    CHECK(all.busy() == 120'000'000);

    const Summary filtered = summarize(log, OpFilter());
    CHECK(filtered.ops == 39);
    CHECK(filtered.left_out_ops == 5);
    CHECK(filtered.bytes_touched == 0);
    const Summary dataset = summarize(log, OpFilter::from_words({"dataset"}, {}));
    CHECK(dataset.bytes_written == 0);
    CHECK(dataset.left_out_bytes == 8192);
}

TEST_CASE("the JSON has what the contract names, for any log") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    test::write_all_ops(dir / "b.oplog");
    LogWriter(dir / "c.oplog", Header()).finish();
    for (const char* name : {"a.oplog", "b.oplog", "c.oplog"}) {
        const LogReader log(dir / name);
        const nlohmann::ordered_json json = to_json(summarize(log), log.tables());
        for (const char* key : {"ops", "bytes", "elapsed_s", "ops_per_s", "errors", "au", "au_mlperf", "stall_ns",
                                "kinds", "roles", "devices"}) {
            INFO(name, " ", key);
            CHECK(json.contains(key));
        }
        (void)json.dump();
    }
    const LogReader empty(dir / "c.oplog");
    CHECK(to_json(summarize(empty), empty.tables())["au"].is_null());
}

TEST_CASE("bytes of asynchronous requests are counted where they complete, by the way they were submitted") {
    const test::TempDir dir;
    {
        LogWriter log(dir / "a.oplog", Header());
        log.add_process({1, 0, 0, 0});
        log.add_task({1, 1, 0});
        log.add_task({1, 2, 0});
        FileRow row;
        row.role = Role::dataset;
        const HandleId handle = log.add_handle({log.add_file(row), 0, HandleKind::file, true, 1, 3});
        const auto add = [&](TaskId task, OpKind kind, uint32_t request, int64_t arg, int64_t result) {
            Op op;
            op.kind = kind;
            op.request = request;
            op.handle = handle;
            op.arg = arg;
            op.result = result;
            log.append(task, op);
        };
        add(1, OpKind::uring_complete, 3, 0, 7);      // before its submission in the file
        add(1, OpKind::uring_complete, 99, 0, 1000);  // never submitted
        add(2, OpKind::uring_submit, 1, 22, 0);
        add(2, OpKind::uring_submit, 2, 23, 0);
        add(2, OpKind::uring_submit, 3, 22, 0);
        add(2, OpKind::uring_complete, 1, 0, 100);
        add(2, OpKind::uring_complete, 2, 0, 10);
        add(2, OpKind::aio_submit, 4, 1, 0);
        add(2, OpKind::aio_complete, 4, 0, -5);
        log.finish();
    }
    const Summary summary = summarize(LogReader(dir / "a.oplog"));
    CHECK(summary.bytes_read == 107);
    CHECK(summary.bytes_written == 10);
    CHECK(summary.errors == 1);
    REQUIRE(summary.roles.size() == 1);
    CHECK(summary.roles[0].bytes_read == 107);
    CHECK(summary.requests.all.requests == 4);
    CHECK(summary.requests.all.failed == 1);
    REQUIRE(summary.kind(OpKind::uring_complete));
    CHECK(summary.kind(OpKind::uring_complete)->bytes == 117);
    const auto json = to_json(summary.requests);
    CHECK(json["requests"] == 4);
    CHECK(json["bytes_read"] == 107);
    CHECK(json["rings"].size() == 2);
    CHECK(json["rings"][1]["interface"] == "libaio");
    CHECK(json["rings"][0]["fd"].is_null());
    CHECK(to_json(InFlight()).is_null());
}
