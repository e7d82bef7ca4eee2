// SPDX-License-Identifier: MIT
// Whole analyses of logs that are made here, and of recordings.
#include "analyze/job/analysis.h"
#include "analyze/job/findings.h"

#include <fcntl.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analyze/job/job_page.h"
#include "analyze/job/not_recorded.h"
#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/open_flags.h"
#include "tests/samples.h"
#include "tests/support.h"
#include "tests/units.h"
#include "transform/epochs.h"

using namespace reprise;

namespace {

/// A log in the making. Files are of the data set unless said otherwise.
struct Made {
    test::TempDir dir;
    LogWriter writer{dir / "made.oplog", header(), {.sync = false}};
    ProcessId process = writer.add_process({.pid = 10});

    static Header header() {
        Header out;
        out.source = "capture";
        return out;
    }
    TaskId task(ProcessId of = 1) { return writer.add_task({.process = of, .tid = 100}); }
    FileId file(std::string_view path, Role role = Role::dataset, FileType type = FileType::regular) {
        FileRow row;
        row.path = writer.intern(path);
        row.role = role;
        row.type = type;
        row.origin = Origin::existed;
        return writer.add_file(row);
    }
    HandleId handle(FileId file) { return writer.add_handle({.file = file}); }
    void add(TaskId task, OpKind kind, int64_t begin, int64_t duration, const std::function<void(Op&)>& more = {}) {
        Op op;
        op.kind = kind;
        op.begin = begin;
        op.duration = duration;
        if (more) {
            more(op);
        }
        writer.append(task, op);
    }
    HandleId open(TaskId task, FileId file, int64_t begin) {
        const HandleId opened = handle(file);
        add(task, OpKind::open, begin, 1000, [&](Op& op) {
            op.file = file;
            op.handle = opened;
            op.result = 3;
        });
        return opened;
    }
    void read(TaskId task, HandleId handle, int64_t begin, int64_t duration, int64_t offset, int64_t bytes,
              OpKind kind = OpKind::pread) {
        add(task, kind, begin, duration, [&](Op& op) {
            op.handle = handle;
            op.fd = 3;
            op.offset = offset;
            op.size = op.result = bytes;
        });
    }
    JobAnalysis analyze() {
        writer.finish();
        const LogReader log(dir / "made.oplog");
        JobAnalysis out = analyze_job(log);
        CHECK(nlohmann::json::parse(to_json(out, log.tables()).dump())["summary"]["ops"] == out.summary.ops);
        return out;
    }
};

double sum(const OverTime& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

TEST_CASE("analysis: bytes, calls and queue depth over time") {
    Made made;
    const HandleId handle = made.handle(made.file("/data/a"));
    const TaskId one = made.task(), two = made.task();
    // 600 ms: two reads at once in the first half, one of 300 ms alone in the second.
    made.read(one, handle, 0, 300 * kMs, 0, 3000);
    made.read(one, handle, 300 * kMs, 300 * kMs, 3000, 6000);
    made.read(two, handle, 0, 300 * kMs, 50'000, 9000);
    const JobAnalysis job = made.analyze();
    REQUIRE(job.time.grid.count() == kIntervals);
    CHECK(job.time.grid.width_ns() == kMs);
    CHECK(sum(job.time.read_bytes) == doctest::Approx(18'000));
    CHECK(job.time.read_bytes[10] == doctest::Approx(40));
    CHECK(job.time.read_bytes[500] == doctest::Approx(20));
    CHECK(job.time.reads[0] == 2);
    CHECK(job.time.reads[300] == 1);
    CHECK(job.time.in_flight_ns[10] == doctest::Approx(2 * kMs));
    CHECK(job.time.in_flight_ns[400] == doctest::Approx(kMs));
    CHECK(job.depths[0] == doctest::Approx(0));
    CHECK(job.depths[1] == doctest::Approx(0.5).epsilon(0.001));
    CHECK(job.depths[2] == doctest::Approx(0.5).epsilon(0.001));
    CHECK(job.mean_depth == doctest::Approx(1.5).epsilon(0.001));
    CHECK(job.most_depth == doctest::Approx(2).epsilon(0.001));
    CHECK(job.reads_by_size[12].calls == 1);  // 3000: up to 4096
    CHECK(job.reads_by_size[13].calls == 1);
    CHECK(job.reads_by_size[14].bytes == 9000);
    REQUIRE(job.orders.size() == 1);
    CHECK(job.orders[0].orders == AccessOrders{2, 0, 1});
    REQUIRE(job.hot_files.size() == 1);
    CHECK(job.hot_files[0].use.read == 18'000);
    CHECK(job.hot_directories.at(0).path == "/data");
}

TEST_CASE("analysis: calls and accelerators at the same time") {
    Made made;
    const HandleId handle = made.handle(made.file("/data/a"));
    const TaskId host = made.task(), loader = made.task();
    made.add(host, OpKind::gpu_submit, 0, 0, [](Op& op) { op.size = 60 * kMs; });
    made.add(host, OpKind::gpu_wait, 0, 60 * kMs);
    made.add(host, OpKind::compute, 60 * kMs, 60 * kMs, [](Op& op) { op.flags = kComputeWorks; });
    made.read(loader, handle, 30 * kMs, 60 * kMs, 0, 4096);
    const JobAnalysis job = made.analyze();
    CHECK(job.overlap.busy == doctest::Approx(60 * kMs).epsilon(0.001));
    CHECK(job.overlap.storage == doctest::Approx(60 * kMs).epsilon(0.001));
    CHECK(job.overlap.both == doctest::Approx(30 * kMs).epsilon(0.001));
    REQUIRE(job.lanes.size() == 3);
    CHECK(job.lanes[0].accelerator);
    CHECK(job.lanes[1].parts[0][2] > 0);                   // waits for the accelerator
    CHECK(job.lanes[1].parts[kLaneIntervals - 1][0] > 0);  // computes
    CHECK(job.lanes[2].parts[kLaneIntervals / 2][1] > 0);  // reads
    CHECK(sum(job.time.compute_ns) == doctest::Approx(60 * kMs));
}

TEST_CASE("analysis: requests are in flight until they are reaped, in whichever task") {
    Made made;
    const HandleId handle = made.handle(made.file("/data/a"));
    const TaskId one = made.task(), two = made.task();
    constexpr int64_t kRead = 0;  // IOCB_CMD_PREAD
    for (uint32_t request = 1; request <= 4; ++request) {
        made.add(one, OpKind::aio_submit, request * 1000, 500, [&](Op& op) {
            op.handle = handle;
            op.request = request;
            op.size = 8192;
            op.offset = request * 8192;
            op.arg = kRead;
        });
    }
    for (uint32_t request = 1; request <= 4; ++request) {
        made.add(two, OpKind::aio_complete, 100 * kMs, 0, [&](Op& op) {
            op.request = request;
            op.size = op.result = 8192;
        });
    }
    const JobAnalysis job = made.analyze();
    CHECK(job.mean_depth == doctest::Approx(4).epsilon(0.01));
    CHECK(sum(job.time.read_bytes) == doctest::Approx(4 * 8192));
    CHECK(job.reads_by_size[13].calls == 4);
    CHECK(job.reads_by_size[13].latency.count() == 0);
    CHECK(job.reads_by_size[13].request_latency.count() == 4);
    CHECK(job.reads_by_size[13].request_latency.max() == 100 * kMs - 1000);
    CHECK(job.summary.requests.all.depth.max() == 4);
}

TEST_CASE("analysis: calls that wait for requests, and timers, are not in flight") {
    Made made;
    const HandleId handle = made.handle(made.file("/data/a"));
    const HandleId ring = made.writer.add_handle({.kind = HandleKind::other});
    const TaskId one = made.task();
    constexpr int64_t kRead = 22, kTimeout = 11;  // IORING_OP_*
    for (uint32_t request = 1; request <= 3; ++request) {
        made.add(one, OpKind::uring_submit, 0, 0, [&](Op& op) {
            op.handle = request == 3 ? 0 : handle;
            op.request = request;
            op.size = request == 3 ? 0 : 4096;
            op.arg = request == 3 ? kTimeout : kRead;
        });
    }
    made.add(one, OpKind::uring_enter, 0, 100 * kMs, [&](Op& op) {
        op.handle = ring;
        op.size = op.result = 3;
        op.arg = 2;
    });
    for (uint32_t request = 1; request <= 3; ++request) {
        made.add(one, OpKind::uring_complete, 100 * kMs, 0, [&](Op& op) {
            op.request = request;
            op.result = request == 3 ? -62 : 4096;
        });
    }
    const JobAnalysis job = made.analyze();
    CHECK(job.mean_depth == doctest::Approx(2).epsilon(0.01));
    CHECK(job.most_depth == doctest::Approx(2).epsilon(0.01));
    REQUIRE(job.summary.requests.rings.size() == 1);
    CHECK(job.summary.requests.rings[0].depth.mean() == doctest::Approx(2));
    CHECK(job.summary.bytes_read == 8192);
    const nlohmann::ordered_json json = to_json(job, LogReader(made.dir / "made.oplog").tables());
    CHECK(json["reads_by_size"][0]["requests"] == 2);
    CHECK(json["reads_by_size"][0]["request_p50_ns"] == 100 * kMs);
    CHECK(json["reads_by_size"][0]["p50_ns"].is_null());
    CHECK(json["summary"]["requests"]["in_flight"]["mean"] == 2.0);
    CHECK(json["summary"]["requests"]["by_kind"]["other"] == 1);
}

TEST_CASE("analysis: skew between processes, checkpoints and metadata") {
    Made made;
    const ProcessId other = made.writer.add_process({.pid = 11});
    const TaskId one = made.task(), two = made.task(other);
    const HandleId data = made.handle(made.file("/data/a")), saved = made.handle(made.file("/c.pt", Role::checkpoint));
    made.read(one, data, 0, kMs, 0, 30'000);
    made.read(two, data, 0, kMs, 0, 10'000);
    const FileId looked_at = made.file("/data/b");
    made.add(one, OpKind::stat, 5 * kMs, kMs, [&](Op& op) { op.file = looked_at; });
    made.add(one, OpKind::pwrite, 100 * kMs, kMs, [&](Op& op) {
        op.handle = saved;
        op.size = op.result = 20'000;
    });
    made.add(one, OpKind::fsync, 101 * kMs, 2 * kMs, [&](Op& op) { op.handle = saved; });
    made.add(one, OpKind::compute, 200 * kMs, 100 * kMs);
    const JobAnalysis job = made.analyze();
    CHECK(job.by_process.count == 2);
    CHECK(job.by_process.most == 50'000);
    CHECK(job.bursts_of_checkpoints);
    REQUIRE(job.bursts.bursts.size() == 1);
    CHECK(job.bursts.bursts[0].bytes == doctest::Approx(20'000));
    CHECK(job.metadata_calls == 1);
    CHECK(job.metadata_ns == kMs);
    CHECK(job.sync_calls == 1);
    CHECK(job.sync_ns == 2 * kMs);
    CHECK(job.data_ns == 3 * kMs);
    // What is absent is said.
    CHECK_FALSE(job.fetched);
    CHECK_FALSE(job.amplification());
    CHECK(not_recorded(job).size() >= 5);
}

TEST_CASE("analysis: what the device read for others is no amplification of the job's") {
    JobAnalysis job;
    job.filter = OpFilter::all().to_string();
    job.summary.storage_bytes_read = 15 << 20;
    job.device_read = 345 << 20;
    const auto said = [&] {
        std::string all;
        for (const std::string& one : top_findings(job, nullptr)) {
            all += one;
        }
        return all;
    };
    CHECK(said().find("23 bytes were read from storage for each byte that was asked for") != std::string::npos);
    job.fetched = 15 << 20;
    CHECK(said().find("from storage for each byte") == std::string::npos);
    CHECK(*job.read_for_others() == doctest::Approx(330 << 20));
    job.fetched = 45 << 20;
    CHECK(said().find("3 bytes were read from storage for each byte that was asked for (45.0 MiB for 15.0 MiB)") !=
          std::string::npos);
    job.device_read = 30 << 20;  // it cannot have given more than it read
    CHECK(said().find("2 bytes were read from storage for each byte") != std::string::npos);
}

TEST_CASE("analysis: what goes to devices as /dev/null is not written to storage") {
    for (const FileType type : {FileType::character, FileType::unknown, FileType::regular}) {
        Made made;
        const TaskId one = made.task();
        const HandleId null = made.handle(made.file("/dev/null", Role::system, type));
        for (const int64_t begin : {0, 100, 200}) {
            made.add(one, OpKind::write, begin * kMs, kMs, [&](Op& op) {
                op.handle = null;
                op.size = op.result = 2 << 20;
            });
        }
        made.add(one, OpKind::compute, 201 * kMs, 99 * kMs);
        const JobAnalysis job = made.analyze();
        CAPTURE(static_cast<int>(type));
        const bool storage = type == FileType::regular;
        CHECK(job.bursts.bursts.size() == (storage ? 3 : 0));
        CHECK((job.by_process.most > 0) == storage);
        CHECK((job.data_ns > 0) == storage);
        CHECK(job.summary.ops == 4);
    }
}

TEST_CASE("analysis: what is read with O_DIRECT passes the page cache by") {
    constexpr int64_t kPage = 4096, kUringRead = 22;
    Made made;
    const TaskId task = made.task();
    const FileId other = made.file("/b");
    const HandleId direct = made.writer.add_handle({.file = made.file("/a"), .flags = kOpenDirect});
    RangeSet fetched;
    fetched.add(0, kPage);
    made.writer.keep(encode_fetched({{other, fetched}}));
    made.read(task, direct, 0, kMs, 0, 40 * kPage);
    made.add(task, OpKind::uring_submit, kMs, 1000, [&](Op& op) {
        op.handle = direct;
        op.request = 1;
        op.arg = kUringRead;
        op.size = 20 * kPage;
    });
    made.add(task, OpKind::uring_complete, 2 * kMs, 1000, [&](Op& op) {
        op.request = 1;
        op.result = 20 * kPage;
    });
    const auto cache = [](JobAnalysis&& job) {
        for (const auto& [name, value] : key_figures({{}, std::move(job), {}})) {
            if (name == "page cache") {
                return value;
            }
        }
        return std::string();
    };
    SUBCASE("alone") {
        JobAnalysis job = made.analyze();
        CHECK(job.direct_read == 60 * kPage);
        CHECK(job.asked() == 60 * kPage);
        CHECK_FALSE(job.hit_share());
        CHECK(cache(std::move(job)) == "240 KiB read past it (O_DIRECT); nothing else read");
    }
    SUBCASE("beside others") {
        made.read(task, made.handle(other), 5 * kMs, kMs, 0, 4 * kPage);
        JobAnalysis job = made.analyze();
        CHECK(job.asked() == 64 * kPage);
        CHECK(job.hit_share() == doctest::Approx(0.75));
        CHECK(cache(std::move(job)) ==
              "240 KiB read past it (O_DIRECT); 75.0 % of the other bytes were in memory, 4.00 KiB fetched");
    }
}

TEST_CASE("analysis: what is read of a file system without a page cache was fetched") {
    constexpr int64_t kPage = 4096;
    Made made;
    const TaskId task = made.task();
    const FileId data = made.file("/d/a", Role::dataset);
    const HandleId handle = made.handle(data);
    made.writer.keep(encode_fetched({}));
    bool passes = false;
    SUBCASE("none of it came into memory") {
        made.writer.keep(encode_cached({{data, 0}}));
        passes = true;
    }
    SUBCASE("the job wrote it") {
        made.writer.keep(encode_cached({{data, 0}}));
        made.add(task, OpKind::pwrite, 0, 1000, [&](Op& op) {
            op.handle = handle;
            op.size = op.result = 8 * kPage;
        });
    }
    SUBCASE("it was opened with O_DIRECT") {
        made.writer.keep(encode_cached({{data, 0}}));
        made.writer.add_handle({.file = data, .flags = kOpenDirect});
    }
    SUBCASE("some of it was in memory") { made.writer.keep(encode_cached({{data, 1}})); }
    made.read(task, handle, kMs, kMs, 0, 8 * kPage);
    CHECK(made.analyze().fetched == (passes ? 8 * kPage : 0));
}

TEST_CASE("analysis: what was dropped and read again was fetched again") {
    constexpr int64_t kPage = 4096;
    Made made;
    const TaskId task = made.task();
    const FileId data = made.file("/d/a", Role::dataset);
    const HandleId handle = made.handle(data);
    made.writer.keep(encode_fetched({}));  // in memory when the recording began
    made.writer.keep(encode_refetched({{data, 8}}));
    for (const int64_t begin : {0, 2, 4}) {
        made.read(task, handle, begin * kMs, kMs, 0, 4 * kPage);
    }
    const JobAnalysis job = made.analyze();
    CHECK(job.fetched == uint64_t{8 * kPage});
    CHECK(job.hit_share() == doctest::Approx(1.0 / 3));
    REQUIRE(job.summary.roles.size() == 1);
    CHECK(job.summary.roles[0].bytes_fetched == uint64_t{8 * kPage});
}

TEST_CASE("analysis: epochs of a set of files, their order, and whether it is the same again") {
    Made made;
    const TaskId task = made.task();
    std::vector<FileId> files;
    for (int i = 0; i < 100; ++i) {
        files.push_back(made.file("/data/" + std::to_string(i) + ".jpg"));
    }
    int64_t now = 0;
    const auto pass = [&](int step) {
        for (int i = 0; i < 100; ++i) {
            const FileId file = files[static_cast<size_t>(i * step % 100)];
            const HandleId handle = made.open(task, file, now);
            made.read(task, handle, now + 1000, 1000, 0, 5000);
            made.read(task, handle, now + 2000, 1000, 5000, 5000);
            now += 10'000;
        }
    };
    pass(1);
    pass(37);
    pass(37);
    const JobAnalysis job = made.analyze();
    CHECK(job.passes.by == JobEpochs::By::samples);
    CHECK(job.passes.data_set == 100);
    REQUIRE(job.epochs.size() == 3);
    CHECK(job.epochs[0].epoch.files.kind == SampleOrder::Kind::in_order);
    CHECK(job.epochs[1].epoch.files.kind == SampleOrder::Kind::shuffled);
    CHECK(job.epochs[1].epoch.as_before == false);
    CHECK(job.epochs[2].epoch.as_before == true);
    CHECK(job.epochs[1].epoch.begin == 1'000'000 + 1000);
    CHECK(job.epochs[1].read_bytes == doctest::Approx(1'000'000).epsilon(0.01));
    CHECK(job.reuse.again_bytes == doctest::Approx(2'000'000));
}

TEST_CASE("analysis: small reads of a page and a large one that begins in it, as HDF5 makes them, twice") {
    Made made;
    const TaskId task = made.task();
    const FileId file = made.file("/data/a.h5");
    int64_t now = 0;
    for (int pass = 0; pass < 2; ++pass) {
        const HandleId handle = made.handle(file);
        for (const auto& [offset, bytes] : {std::pair<int64_t, int64_t>{0, 8}, {8, 16}, {24, 80}, {2048, 1'000'000}}) {
            made.read(task, handle, now += 1000, 500, offset, bytes);
        }
    }
    const JobAnalysis job = made.analyze();
    CHECK(job.reuse.first_bytes == 1'000'008);
    CHECK(job.reuse.again_bytes == 1'000'008);
    CHECK(job.reuse.longest == 1'000'000);
}

TEST_CASE("analysis: epochs that have a loader each are all epochs, those of a validation are none") {
    Made made;
    const TaskId task = made.task();
    int64_t now = 0;
    const auto mark = [&](const char* text, MarkerPhase phase, int64_t number) {
        made.add(task, OpKind::marker, now, 0, [&](Op& op) {
            op.text = made.writer.intern(text);
            op.flags = static_cast<int64_t>(phase);
            op.arg = number;
        });
        now += 1000;
    };
    const auto pass = [&](const std::vector<FileId>& files, const char* text, int64_t number) {
        mark(text, MarkerPhase::begin, number);
        for (const FileId file : files) {
            const HandleId handle = made.open(task, file, now);
            made.read(task, handle, now + 1000, 1000, 0, 5000);
            now += 10'000;
        }
        mark(text, MarkerPhase::end, number);
    };
    std::vector<FileId> files, others;
    for (int i = 0; i < 100; ++i) {
        files.push_back(made.file("/data/" + std::to_string(i) + ".jpg"));
        others.push_back(made.file("/val/" + std::to_string(i) + ".jpg"));
    }
    pass(files, "epoch", 0);
    SUBCASE("a new loader for each") {
        pass(files, "epoch.2", 0);
        const JobAnalysis job = made.analyze();
        CHECK(job.passes.by == JobEpochs::By::marks);
        REQUIRE(job.epochs.size() == 2);
        CHECK(job.epochs[1].epoch.number == 1);
        CHECK(job.epochs[1].epoch.samples == 100);
        CHECK(job.epochs[1].epoch.as_before == true);
    }
    SUBCASE("one that validates") {
        pass(others, "epoch.2", 0);
        const JobAnalysis job = made.analyze();
        CHECK(job.passes.by == JobEpochs::By::marks);
        REQUIRE(job.epochs.size() == 1);
        CHECK(job.epochs[0].epoch.samples == 100);
    }
    SUBCASE("both new in each epoch: how often samples are read decides") {
        pass(others, "epoch.2", 0);
        pass(files, "epoch.3", 0);
        pass(others, "epoch.4", 0);
        const JobAnalysis job = made.analyze();
        CHECK(job.passes.by == JobEpochs::By::samples);
        CHECK(job.epochs.size() == 2);
    }
}

TEST_CASE("analysis: the epochs of recordings are those that scaling finds") {
    for (const char* name : {"resnet.oplog", "bert.oplog"}) {
        const LogReader log(test::source_dir() / "examples" / "recorded" / name);
        const JobAnalysis job = analyze_job(log);
        const std::vector<LogEpoch> found = find_epochs(log);
        INFO(name);
        if (job.passes.by == JobEpochs::By::samples) {
            REQUIRE(job.epochs.size() == found.size());
            for (size_t i = 0; i < found.size(); ++i) {
                CHECK(job.epochs[i].epoch.samples ==
                      doctest::Approx(static_cast<double>(found[i].accesses)).epsilon(0.02));
            }
        }
        CHECK(sum(job.time.read_bytes) == doctest::Approx(static_cast<double>(job.summary.storage_bytes_read)));
    }
}

TEST_CASE("analysis: every op of the table, hostile values and an empty log") {
    const test::TempDir dir;
    test::write_all_ops(dir / "all.oplog");
    const LogReader all(dir / "all.oplog");
    const JobAnalysis job = analyze_job(all);
    CHECK_FALSE(to_json(job, all.tables()).dump(-1, ' ', false, nlohmann::json::error_handler_t::strict).empty());
    test::write_sample(dir / "sample.oplog");
    const LogReader sample(dir / "sample.oplog");
    CHECK(analyze_job(sample).summary.ops == summarize(sample).ops);
    {
        Made made;
        made.read(made.task(), made.handle(made.file("/a")), INT64_MIN / 4, INT64_MAX, INT64_MAX, INT64_MAX);
        made.analyze();
    }
    Made empty;
    const JobAnalysis nothing = empty.analyze();
    CHECK(nothing.summary.ops == 0);
    CHECK(nothing.epochs.empty());
}
