// SPDX-License-Identifier: MIT
// Queues that left no trace: what is inferred of them, when nothing is, and what a replay by causes makes of it.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "replay/plan/queues.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kItem = 4096;
constexpr int64_t kWokeOthers = 6, kFutex = 1;  // arg of wait

/// A reader and a consumer of a bounded queue as a capture shows them, on storage so fast that the queue is always
/// full: the consumer computes a millisecond per item; the reader reads one in 0.1 ms and waits for room.
struct QueueJob {
    TempDir dir;
    fs::path root = dir.path() / "root";
    JobBuilder job{dir.path() / "job.oplog"};
    TaskId consumer = 0, reader = 0, relay = 0;
    HandleId handle = 0;

    explicit QueueJob(int64_t items, int64_t capacity, EdgeKind carrier = EdgeKind::queue, bool by_relay = false) {
        fs::create_directories(root / "data");
        write_file(root / "data/in", std::string(static_cast<size_t>(items * kItem), 'x'));
        const ProcessId process = job.process();
        consumer = job.task(process);
        reader = job.task(process);
        relay = by_relay ? job.task(process) : TaskId{0};
        handle = job.open(reader, job.file("/data/in"));
        // When each item is taken, and each read: not before there is room for it.
        const int64_t start = kMs;
        std::vector<int64_t> taken(static_cast<size_t>(items)), read(static_cast<size_t>(items));
        for (int64_t i = 0; i < items; ++i) {
            const auto at = static_cast<size_t>(i);
            const int64_t before = i == 0 ? start : read[at - 1];
            const int64_t room = i < capacity ? 0 : taken[static_cast<size_t>(i - capacity)];
            read[at] = std::max(before, room) + kMs / 10;
            taken[at] = i == 0 ? read[0] : std::max(taken[at - 1] + kMs, read[at]);
        }
        // The reader: item i is read after room was made by the consumer's op for item i - capacity.
        std::map<int64_t, uint64_t> made_room;  // by item: the op
        uint64_t consumer_ops = 0, relay_ops = 0;
        job.add(consumer, {.kind = OpKind::wait,
                           .begin = start,
                           .duration = read[0] - start,
                           .arg = kFutex,
                           .edges = edge(reader, EdgeKind::wake, 1)});
        ++consumer_ops;
        for (int64_t i = 0; i < items; ++i) {
            const int64_t at = taken[static_cast<size_t>(i)] + 10'000;
            if (i + capacity < items) {
                job.add(consumer, {.kind = OpKind::wait, .begin = at, .duration = 5'000, .arg = kWokeOthers});
                made_room[i] = consumer_ops++;
            }
            if (carrier == EdgeKind::message) {
                job.add(consumer, {.kind = OpKind::compute,
                                   .begin = at + 10'000,
                                   .duration = kMs - 50'000,
                                   .flags = 3,
                                   .edges = edge(reader, EdgeKind::message, reads_before(i, capacity))});
            } else {
                job.add(consumer,
                        {.kind = OpKind::compute, .begin = at + 10'000, .duration = kMs - 50'000, .flags = 3});
            }
            ++consumer_ops;
        }
        if (by_relay) {
            for (int64_t i = 0; i + capacity < items; ++i) {
                const int64_t at = taken[static_cast<size_t>(i)] + 10'000;
                job.add(relay, {.kind = OpKind::wait,
                                .begin = at - kMs / 2,
                                .duration = kMs / 2 + 1'000,
                                .arg = kFutex,
                                .edges = edge(consumer, EdgeKind::wake, made_room[i])});
                job.add(relay, {.kind = OpKind::wait, .begin = at + 2'000, .duration = 1'000, .arg = kWokeOthers});
                made_room[i] = relay_ops + 1;
                relay_ops += 2;
            }
        }
        for (int64_t i = 0; i < items; ++i) {
            if (i >= capacity) {
                const int64_t from = read[static_cast<size_t>(i - 1)];
                const int64_t to = read[static_cast<size_t>(i)] - kMs / 10;
                job.add(reader, {.kind = OpKind::wait,
                                 .begin = from,
                                 .duration = std::max<int64_t>(to - from, 0),
                                 .arg = kFutex,
                                 .edges = edge(by_relay ? relay : consumer, EdgeKind::wake, made_room[i - capacity])});
            }
            job.add(reader, {.kind = OpKind::pread,
                             .begin = read[static_cast<size_t>(i)] - kMs / 10,
                             .duration = kMs / 10,
                             .result = kItem,
                             .handle = handle,
                             .fd = 3,
                             .offset = i * kItem,
                             .size = kItem});
        }
    }

    /// The number of the reader's op that reads item i: the open and its waits come before.
    static uint64_t reads_before(int64_t i, int64_t capacity) {
        return static_cast<uint64_t>(1 + i + std::max<int64_t>(i - capacity + 1, 0));
    }
    std::span<const Edge> edge(TaskId task, EdgeKind kind, uint64_t op) {
        kept_.push_back(std::make_unique<Edge>(Edge{task, kind, 100, op}));
        return {kept_.back().get(), 1};
    }

private:
    std::vector<std::unique_ptr<Edge>> kept_;
};

}  // namespace

TEST_CASE("a queue that was full: its capacity, and what each step needs") {
    QueueJob job(100, 8);
    const LogReader log = job.job.finish();
    const QueueInference found = infer_queues(log);
    REQUIRE(found.queues.size() == 1);
    const InferredQueue& queue = found.queues[0];
    CHECK(queue.consumer == job.consumer);
    CHECK(queue.readers == std::vector<TaskId>{job.reader});
    CHECK(queue.bytes == 100 * kItem);
    CHECK(queue.capacity_bytes >= 6 * kItem);
    CHECK(queue.capacity_bytes <= 9 * kItem);
    CHECK(queue.bytes_per_s == doctest::Approx(1000.0 * kItem).epsilon(0.05));
    CHECK(queue.confidence == 90);
    CHECK(found.feed_nobody.empty());
    CHECK(found.event_loops.empty());
    // Every step waits for a read, none for one that came after it in the recording, and later ones for later ones.
    const auto& edges = found.edges.at(job.consumer);
    CHECK(edges.size() >= 85);
    CHECK(edges.size() == queue.edges);
    std::vector<int64_t> begins, ends;
    log.for_each(job.consumer, [&](const Op& op, uint64_t) { begins.push_back(op.begin); });
    log.for_each(job.reader, [&](const Op& op, uint64_t) { ends.push_back(op.begin + op.duration); });
    uint64_t last_op = 0, last_source = 0;
    for (const auto& [op, edge] : edges) {
        CHECK(edge.kind == EdgeKind::queue);
        CHECK(edge.task == job.reader);
        CHECK(ends.at(edge.op) <= begins.at(op));
        CHECK(op >= last_op);
        CHECK(edge.op > last_source);
        last_op = op;
        last_source = edge.op;
    }
}

TEST_CASE("a queue whose consumer acts through another task") {
    QueueJob job(100, 8, EdgeKind::queue, true);
    const QueueInference found = infer_queues(job.job.finish());
    REQUIRE(found.queues.size() == 1);
    CHECK(found.queues[0].consumer == job.consumer);
    CHECK(found.queues[0].capacity_bytes >= 6 * kItem);
    CHECK(found.queues[0].capacity_bytes <= 9 * kItem);
}

TEST_CASE("no queue is inferred where messages carry the data, or where it was hardly ever full") {
    SUBCASE("messages") {
        QueueJob job(100, 8, EdgeKind::message);
        CHECK(infer_queues(job.job.finish()).queues.empty());
    }
    SUBCASE("too few wakes") {
        QueueJob job(20, 8);
        CHECK(infer_queues(job.job.finish()).queues.empty());
    }
    SUBCASE("one task") {
        TempDir dir;
        JobBuilder one(dir.path() / "none.oplog");
        CHECK(infer_queues(one.finish()).empty());
    }
}

TEST_CASE("conservation: readers that never waited, and an accelerator fed evenly") {
    const auto make = [](bool in_order) {
        auto dir = std::make_unique<TempDir>();
        JobBuilder job(dir->path() / "job.oplog");
        const ProcessId process = job.process();
        const TaskId consumer = job.task(process), reader = job.task(process);
        const HandleId handle = job.open(reader, job.file("/data/in"));
        for (int64_t i = 0; i < 50; ++i) {
            job.add(reader, {.kind = OpKind::pread,
                             .begin = kMs + i * kMs / 10 + (in_order ? 0 : 60 * kMs),
                             .duration = kMs / 20,
                             .result = kItem,
                             .handle = handle,
                             .fd = 3,
                             .offset = i * kItem,
                             .size = kItem});
            job.add(consumer, {.kind = OpKind::gpu_submit, .begin = 2 * kMs + i * kMs, .size = kMs / 2});
        }
        return std::pair{std::move(dir), infer_queues(job.finish())};
    };
    {
        const auto [dir, found] = make(true);
        REQUIRE(found.queues.size() == 1);
        CHECK(found.queues[0].by == InferredQueue::By::conservation);
        CHECK(found.queues[0].confidence == 40);
        CHECK(found.queues[0].edges == 50);
        CHECK(found.feed_nobody.empty());
    }
    {
        // The accelerator worked before anything was read: it does not need it.
        const auto [dir, found] = make(false);
        CHECK(found.queues.empty());
        CHECK(found.feed_nobody.size() == 1);
    }
}

TEST_CASE("event loops are pointed out") {
    TempDir dir;
    JobBuilder job(dir.path() / "job.oplog");
    const ProcessId process = job.process();
    const TaskId loop = job.task(process), reader = job.task(process);
    const HandleId handle = job.open(reader, job.file("/data/in"));
    for (int64_t i = 0; i < 40; ++i) {
        job.pread(reader, handle, i * kItem, kItem);
        job.add(loop, {.kind = OpKind::wait, .arg = 7});
    }
    CHECK(infer_queues(job.finish()).event_loops == std::vector<TaskId>{loop});
}

TEST_CASE("a replay waits for what an inferred queue needs") {
    QueueJob job(60, 4);
    // Ten times slower storage is not at hand; a consumer ten times as fast is.
    const LogReader reader = job.job.finish();
    ReplayOptions options = afap(job.root);
    options.pace = Pace::causal;
    options.filter = OpFilter::all();
    options.output = job.dir.path() / "run.oplog";
    const ReplayResult result = replay(reader, options);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
    REQUIRE(result.queues.queues.size() == 1);
    CHECK(result.edges_by_kind[static_cast<size_t>(EdgeKind::queue)] == result.queues.queues[0].edges);
    // Whatever the times were: no step began before the read that it needs had ended.
    const LogReader run(options.output);
    std::vector<int64_t> begins, ends;
    run.for_each(job.consumer, [&](const Op& op, uint64_t) { begins.push_back(op.begin); });
    run.for_each(job.reader, [&](const Op& op, uint64_t) { ends.push_back(op.begin + op.duration); });
    const QueueInference found = infer_queues(reader);
    for (const auto& [op, edge] : found.edges.at(job.consumer)) {
        CHECK(ends.at(edge.op) <= begins.at(op));
    }
}
