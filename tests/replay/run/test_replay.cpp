// SPDX-License-Identifier: MIT
// Replays as a whole: effects in the root, descriptors over fork and dup, the run's log.
#include <unistd.h>

#include <fstream>

#include "formats/support/error.h"
#include "formats/support/sanitized.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

struct Fixture : PreparedRoot {
    fs::path log = dir / "job.oplog";

    Fixture() { fs::create_directories(root / "data"); }
    void put(std::string_view name, size_t bytes) {
        fs::create_directories((root / name).parent_path());
        write_file(root / name, std::string(bytes, 'x'));
    }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "reads, writes and metadata happen below the root and match") {
    put("data/in", 10'000);
    JobBuilder job(log);
    const TaskId task = job.lone_task();
    const FileId in = job.file("/data/in");
    const FileId out = job.file("/data/out", Origin::created);
    const HandleId reading = job.open(task, in);
    job.add(task, {.kind = OpKind::fstat, .handle = reading, .fd = job.fd(reading)});
    job.read(task, reading, 0, 4096);
    job.read(task, reading, 4096, 4096);
    job.pread(task, reading, 9'000, 1'000);
    const HandleId writing = job.open(task, out, O_WRONLY | O_CREAT | O_TRUNC);
    job.write(task, writing, 0, 5'000);
    job.pwrite(task, writing, 8'000, 100);
    job.add(task, {.kind = OpKind::fsync, .handle = writing, .fd = job.fd(writing)});
    job.close(task, writing);
    job.close(task, reading);
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.output = dir / "run.oplog";
    const ReplayResult result = replay(reader, options);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.ops == 11);
    CHECK(result.bytes_read == 9'192);
    CHECK(result.bytes_written == 5'100);
    CHECK(fs::file_size(root / "data/out") == 8'100);
    CHECK(result.processes == 1);

    const LogReader run(options.output);
    CHECK(run.header().source == "replay");
    CHECK(run.header().extra.at("ended") == "complete");
    CHECK(run.op_count() == reader.op_count());
    std::vector<OpKind> recorded, replayed;
    reader.for_each(task, [&](const Op& op, uint64_t) { recorded.push_back(op.kind); });
    int64_t last = 0;
    run.for_each(task, [&](const Op& op, uint64_t) {
        replayed.push_back(op.kind);
        CHECK(op.begin >= last);
        CHECK(op.duration >= 0);
        last = op.begin + op.duration;
    });
    CHECK(recorded == replayed);
    CHECK(run.tables().files == reader.tables().files);
}

TEST_CASE_FIXTURE(Fixture, "a forked process shares positions with its parent") {
    put("data/in", 3'000);
    JobBuilder job(log);
    const ProcessId parent = job.process();
    const ProcessId child = job.process(parent);
    const TaskId a = job.task(parent), b = job.task(child);
    const HandleId shared = job.open(a, job.file("/data/in"));
    job.read(a, shared, 0, 1'000);
    job.spawn(a, b);
    job.read(b, shared, 1'000, 1'000);
    job.read(a, shared, 2'000, 1'000);
    // The file is at its end only if both moved the same position.
    job.add(
        b, {.kind = OpKind::read, .result = 0, .handle = shared, .fd = job.fd(shared), .offset = 3'000, .size = 1'000});
    job.close(b, shared);
    job.close(a, shared);
    const LogReader reader = job.finish();
    for (int turn = 0; turn < 20; ++turn) {
        const ReplayResult result = replay(reader, afap(root));
        INFO(describe(result));
        CHECK(result.mismatches == 0);
        CHECK(result.ops == 8);
        CHECK(result.processes == 2);
        CHECK(result.edges >= 2);
    }
}

TEST_CASE_FIXTURE(Fixture, "the null engine repeats the recorded results") {
    JobBuilder job(log);
    const TaskId task = job.lone_task();
    const HandleId handle = job.open(task, job.file("/nowhere/file"));
    for (int i = 0; i < 200'000; ++i) {
        job.pread(task, handle, i * 4096, 4096);
    }
    const LogReader reader = job.finish();
    ReplayOptions options = afap({});
    options.engine = EngineKind::null;
    const ReplayResult result = replay(reader, options);
    INFO(describe(result));
    CHECK(result.ops == 200'001);
    CHECK(result.mismatches == 0);
    CHECK(result.bytes_read == 200'000ull * 4096);
}

TEST_CASE_FIXTURE(Fixture, "timed replays last as long as the recording, and twice as long with scale 2") {
    put("data/in", 4'096);
    JobBuilder job(log);
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process);
    const FileId in = job.file("/data/in");
    const HandleId mine = job.open(a, in), yours = job.open(b, in);
    for (int i = 0; i < 20; ++i) {
        job.skip(1'000'000);
        job.pread(a, mine, 0, 4'096);
        job.pread(b, yours, 0, 4'096);
    }
    const LogReader reader = job.finish();
    for (const double scale : {1.0, 2.0}) {
        ReplayOptions options = afap(root);
        options.pace = Pace::timed;
        options.speeds.time_scale = scale;
        const ReplayResult result = replay(reader, options);
        INFO(describe(result));
        CHECK(result.mismatches == 0);
        // Never early; how late is for the benchmark to say.
        CHECK(static_cast<double>(result.elapsed_ns) >= static_cast<double>(result.recorded_ns - 5'000) * scale);
        CHECK(result.lateness.count() == result.ops);
    }
}

TEST_CASE_FIXTURE(Fixture, "processes fork processes, threads fork, and all of them read") {
#if defined(REPRISE_TSAN)
    // A child of a process with threads gets new threads where the dead ones lay; TSan takes them for the same ("dup
    // thread with used id") and ends the process, now and then.
    REPRISE_SKIP("ThreadSanitizer cannot follow threads of a process that was forked from one with threads");
#endif
    put("data/in", 100'000);
    JobBuilder job(log);
    std::vector<TaskId> tasks;
    ProcessId parent = job.process();
    TaskId spawner = job.task(parent);
    const HandleId h = job.open(spawner, job.file("/data/in"));
    tasks.push_back(spawner);
    for (int depth = 0; depth < 4; ++depth) {
        const TaskId thread = job.task(parent);
        job.spawn(spawner, thread);
        const ProcessId child = job.process(parent);
        const TaskId first = job.task(child);
        job.spawn(thread, first);  // from a thread of a process that has several
        tasks.push_back(thread);
        tasks.push_back(first);
        parent = child;
        spawner = first;
    }
    for (int i = 0; i < 500; ++i) {
        for (const TaskId task : tasks) {
            job.pread(task, h, i * 100, 100);
        }
    }
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.processes == 5);
    CHECK(result.bytes_read == 100 * 500 * tasks.size());
}

TEST_CASE_FIXTURE(Fixture, "a chain of forks: every process reads, writes and maps what is its own") {
    put("data/in", 100'000);
    JobBuilder job(log);
    constexpr int kDepth = 40;
    std::vector<TaskId> tasks{job.lone_task()};
    ProcessId parent = 1;
    const HandleId in = job.open(tasks[0], job.file("/data/in"));
    for (int depth = 1; depth < kDepth; ++depth) {
        const ProcessId child = job.process(parent);
        tasks.push_back(job.task(child));
        const HandleId out =
            job.open(tasks[tasks.size() - 2], job.file("/data/out" + std::to_string(depth), Origin::created),
                     O_WRONLY | O_CREAT | O_TRUNC);
        job.spawn(tasks[tasks.size() - 2], tasks.back());
        job.write(tasks.back(), out, 0, 1'000);  // opened by the parent
        job.pread(tasks.back(), in, depth * 100, 100);
        parent = child;
    }
    const LogReader reader = job.finish();
    const ReplayResult result = replay(reader, afap(root));
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.processes == kDepth);
    CHECK(result.bytes_read == 100 * (kDepth - 1));
    CHECK(fs::file_size(root / "data/out39") == 1'000);
}

TEST_CASE_FIXTURE(Fixture, "forked processes of several blocks end, and their parent with them") {
    put("data/in", 100'000);
    JobBuilder job(log, {.level = 1, .block_ops = 100});
    std::vector<TaskId> tasks{job.lone_task()};
    const HandleId in = job.open(tasks[0], job.file("/data/in"));
    for (int child = 0; child < 3; ++child) {
        tasks.push_back(job.task(job.process(1)));
        job.spawn(tasks[0], tasks.back());
        for (int i = 0; i < 1'000; ++i) {
            job.pread(tasks.back(), in, i * 100, 100);
        }
    }
    const LogReader reader = job.finish();
    for (int turn = 0; turn < 5; ++turn) {
        const ReplayResult result = replay(reader, afap(root));
        INFO(describe(result));
        CHECK(result.ended == "complete");
        CHECK(result.mismatches == 0);
        CHECK(result.bytes_read == 100 * 3'000);
    }
}

TEST_CASE_FIXTURE(Fixture, "results go to a file where memory is short") {
    put("data/in", 100'000);
    JobBuilder job(log);
    const TaskId task = job.lone_task();
    const HandleId h = job.open(task, job.file("/data/in"));
    for (int i = 0; i < 70'000; ++i) {
        job.pread(task, h, i % 1'000 * 100, 100);
    }
    const LogReader reader = job.finish();
    ReplayOptions options = afap(root);
    options.spool_memory = 1;
    options.output = dir / "run.oplog";
    const ReplayResult result = replay(reader, options);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    CHECK(result.ops == 70'001);
    CHECK(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator{}) == 3);  // root and two logs
}

TEST_CASE_FIXTURE(Fixture, "without the marker file a log that alters files is refused, or its changes left out") {
    put("data/in", 4'096);
    fs::remove(root / std::string(kMarkerName));
    JobBuilder job(log);
    const TaskId task = job.lone_task();
    const HandleId in = job.open(task, job.file("/data/in"));
    job.pread(task, in, 0, 4'096);
    const HandleId out = job.open(task, job.file("/data/out", Origin::created), O_WRONLY | O_CREAT);
    job.write(task, out, 0, 100);
    job.close(task, out);
    job.add(task, {.kind = OpKind::unlink, .file = job.file("/data/in")});
    const LogReader reader = job.finish();
    CHECK_THROWS_AS(replay(reader, afap(root)), Error);
    CHECK(fs::exists(root / "data/in"));
    ReplayOptions options = afap(root);
    options.read_only = true;
    const ReplayResult result = replay(reader, options);
    INFO(describe(result));
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    CHECK(result.ops == 2);
    CHECK(result.left_out[static_cast<size_t>(LeftOut::read_only)] == 4);
    CHECK(fs::exists(root / "data/in"));
    CHECK_FALSE(fs::exists(root / "data/out"));
}

}  // namespace reprise::test
