// SPDX-License-Identifier: MIT
// The log of a run has the causes of its recording, so that it can be replayed and analyzed in its place.
#include "replay/run/run_edges.h"

#include <doctest/doctest.h>

#include "replay/plan/stored_queues.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

std::vector<std::vector<Edge>> edges_of(const LogReader& log, TaskId task) {
    std::vector<std::vector<Edge>> out;
    log.for_each(task, [&](const Op& op, uint64_t) { out.emplace_back(op.edges.begin(), op.edges.end()); });
    return out;
}

struct Job : PreparedRoot {
    JobBuilder job{dir / "job.oplog"};
    const ProcessId process = job.process();
    const TaskId reader = job.task(process), other = job.task(process);

    Job() {
        std::filesystem::create_directories(root / "data");
        write_file(root / "data/in", std::string(64 << 10, 'x'));
    }
    ReplayOptions options(const std::string& output) const {
        ReplayOptions options;
        options.root = root;
        options.pace = Pace::causal;
        options.output = dir / output;
        return options;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Job, "a run's log has the recording's edges, by the numbers that the ops have there") {
    const FileId program = job.file("/usr/lib/python3/os.py", Origin::existed, Role::program);
    const HandleId code = job.open(reader, program);             // 0, left out
    job.read(reader, code, 0, 100);                              // 1, left out
    const HandleId in = job.open(reader, job.file("/data/in"));  // 2
    job.pread(reader, in, 0, 4096);                              // 3
    job.read(reader, code, 100, 100);                            // 4, left out
    job.pread(reader, in, 4096, 4096);                           // 5
    const auto wait = [&](std::vector<Edge> edges) {
        job.add(other, {.kind = OpKind::wait, .duration = 4'000, .arg = kWaitFutex, .edges = edges});
    };
    wait({{reader, EdgeKind::wake, 100, 1}});  // of an op before any that is kept
    wait({{reader, EdgeKind::wake, 100, 3}});
    wait({{reader, EdgeKind::message, 90, 4}});
    wait({{reader, EdgeKind::wake, 100, 5}});
    const HandleId others_code = job.handle(program);
    const std::vector<Edge> early{{reader, EdgeKind::message, 100, 3}};
    job.add(other, {.kind = OpKind::open, .result = 9, .handle = others_code, .file = program, .edges = early});
    const HandleId again = job.open(other, job.file("/data/in"));
    job.pread(other, again, 0, 10);
    const LogReader log = job.finish();
    const ReplayResult first = replay(log, options("run.oplog"));
    INFO(describe(first));
    CHECK(first.ended == "complete");
    const LogReader run(dir / "run.oplog");
    const auto edges = edges_of(run, other);
    REQUIRE(edges.size() == 6);
    CHECK(edges[0].empty());
    CHECK(edges[1] == std::vector<Edge>{{reader, EdgeKind::wake, 100, 1}});
    CHECK(edges[2] == std::vector<Edge>{{reader, EdgeKind::message, 90, 1}});
    CHECK(edges[3] == std::vector<Edge>{{reader, EdgeKind::wake, 100, 2}});
    CHECK(edges[4] == std::vector<Edge>{{reader, EdgeKind::message, 100, 1}});  // of the op left out before it
    CHECK(edges[5].empty());
    CHECK(edges_of(run, reader) == std::vector<std::vector<Edge>>(3));
}

TEST_CASE_FIXTURE(Job, "a run's log can be replayed again: its waits are explained as the recording's") {
    const HandleId in = job.open(reader, job.file("/data/in"));
    for (int i = 0; i < 8; ++i) {
        job.add(reader, {.kind = OpKind::compute, .duration = 2 * kMs});
        job.pread(reader, in, i * 4096, 4096);
        const uint64_t op = static_cast<uint64_t>(2 * i + 2);
        const std::vector<Edge> edges{{reader, EdgeKind::wake, 100, op}};
        job.add(other, {.kind = OpKind::wait, .duration = 2 * kMs, .arg = kWaitFutex, .edges = edges});
        job.skip(2 * kMs);
    }
    const LogReader log = job.finish();
    const ReplayResult first = replay(log, options("run.oplog"));
    const LogReader run(dir / "run.oplog");
    const Plan recorded = make_plan(log, {}, PathMap{}), of_run = make_plan(run, {}, PathMap{});
    CHECK(recorded.explained_wait_ns == recorded.wait_ns);
    CHECK(of_run.wait_ns > 0);
    CHECK(of_run.explained_wait_ns == of_run.wait_ns);
    CHECK(of_run.edges_by_kind == recorded.edges_by_kind);
    for (const Pace pace : {Pace::causal, Pace::afap}) {
        ReplayOptions again = options("again.oplog");
        again.pace = pace;
        const ReplayResult second = replay(run, again);
        INFO(describe(second));
        CHECK(second.ended == "complete");
        CHECK(second.mismatches == 0);
        CHECK(second.ops == first.ops);
        CHECK(second.edges == first.edges);
        CHECK((pace == Pace::afap || second.trust.level != Trust::Level::good));
        CHECK((pace == Pace::afap || second.trust.reason.find("the log is of a run") != std::string::npos));
        CHECK(edges_of(LogReader(again.output), other) == edges_of(log, other));
    }
    // Nothing of the job's computing is in that.
    const ReplayResult timeless = replay(LogReader(dir / "again.oplog"), options("third.oplog"));
    CHECK(timeless.trust.level == Trust::Level::poor);
    CHECK(timeless.doubts.run_pace == "afap");
    // A machine that other programs kept busy is said first.
    CHECK((!timeless.fidelity.failures.empty() || timeless.trust.reason.find("pace afap") != std::string::npos));
}

TEST_CASE_FIXTURE(Job, "a run's log has the queues that its recording was found to have, and holes of its files") {
    const FileId program = job.file("/usr/lib/python3/os.py", Origin::existed, Role::program);
    job.open(reader, program);
    const FileId file = job.file("/data/in");
    const HandleId in = job.open(reader, file);
    for (int i = 0; i < 3; ++i) {
        job.pread(reader, in, i * 4096, 4096);
    }
    for (int i = 0; i < 3; ++i) {
        job.add(other, {.kind = OpKind::gpu_submit, .size = 1'000});
    }
    QueueInference queues;
    InferredQueue queue;
    queue.consumer = other;
    queue.readers = {reader};
    queue.edges = 2;
    queue.confidence = 70;
    queues.queues.push_back(queue);
    queues.edges[other] = {{0, Edge{reader, EdgeKind::queue, 70, 2}}, {2, Edge{reader, EdgeKind::queue, 70, 4}}};
    job.writer().keep(stored_queues(queues));
    Holes holes;
    holes[file].add(0, 8192);
    job.writer().keep(encode_holes(holes));
    const LogReader log = job.finish();
    const ReplayResult first = replay(log, options("run.oplog"));
    INFO(describe(first));
    const LogReader run(dir / "run.oplog");
    const QueueInference kept = queues_of(run);
    REQUIRE(kept.queues.size() == 1);
    CHECK(kept.queues.front().confidence == 70);
    REQUIRE(kept.edges.count(other) == 1);
    REQUIRE(kept.edges.at(other).size() == 2);
    CHECK(kept.edges.at(other)[0] == std::pair<uint64_t, Edge>{0, {reader, EdgeKind::queue, 70, 1}});
    CHECK(kept.edges.at(other)[1] == std::pair<uint64_t, Edge>{2, {reader, EdgeKind::queue, 70, 3}});
    CHECK(recorded_holes(run) == holes);
}

TEST_CASE("what a task of a run stood before it had what a queue has for it is no think time") {
    const TempDir dir;
    const auto elapsed = [&](const std::string& source) {
        Header header;
        header.source = source;
        WriterOptions how;
        how.sync = false;
        const std::filesystem::path path = dir / (source + ".oplog");
        LogWriter log(path, header, how);
        const ProcessId process = log.add_process({.pid = 1});
        const TaskId reader = log.add_task({.process = process, .tid = 1});
        const TaskId trainer = log.add_task({.process = process, .tid = 2});
        FileRow row;
        row.path = log.intern("/data/in");
        row.type = FileType::regular;
        row.role = Role::dataset;
        HandleRow opened;
        opened.file = log.add_file(row);
        const HandleId handle = log.add_handle(opened);
        log.append(reader, {.kind = OpKind::open, .duration = 10, .result = 3, .handle = handle, .file = 1});
        std::vector<std::pair<uint64_t, Edge>> edges;
        for (int64_t i = 0; i < 20; ++i) {
            log.append(reader, {.kind = OpKind::pread,
                                .begin = 20 + i * 20 * kMs,
                                .duration = 20 * kMs - 20,
                                .result = 4096,
                                .handle = handle,
                                .fd = 3,
                                .offset = i * 4096,
                                .size = 4096});
            log.append(trainer, {.kind = OpKind::gpu_submit, .begin = (i + 1) * 20 * kMs, .duration = 10, .size = kMs});
            edges.emplace_back(i, Edge{reader, EdgeKind::queue, 90, static_cast<uint64_t>(i) + 1});
        }
        QueueInference queues;
        InferredQueue queue;
        queue.consumer = trainer;
        queue.readers = {reader};
        queue.edges = edges.size();
        queues.queues.push_back(queue);
        queues.edges[trainer] = edges;
        log.keep(stored_queues(queues));
        log.finish();
        ReplayOptions options;
        options.pace = Pace::causal;
        options.engine = EngineKind::null;  // reads take no time
        return replay(LogReader(path), options).elapsed_ns;
    };
    CHECK(elapsed("test") > 300 * kMs);
    CHECK(elapsed("replay") < 200 * kMs);
}
