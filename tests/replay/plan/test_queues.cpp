// SPDX-License-Identifier: MIT
// Queues that left no trace: what is inferred of them, when nothing is, and what a replay by causes makes of it.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "replay/plan/queues.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

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

TEST_CASE("a task whose parent waits for its end while it reads feeds that parent") {
    // `waits`: when the parent begins to wait, in reads of 100.
    const auto doubts = [](int64_t waits, bool joins) {
        const TempDir dir;
        JobBuilder job(dir.path() / "job.oplog");
        const TaskId shell = job.lone_task(), command = job.lone_task(), next = job.lone_task();
        const HandleId handle = job.open(command, job.file("/data/in"));
        for (int64_t i = 0; i < 100; ++i) {
            job.add(command, {.kind = OpKind::pread,
                              .begin = kMs + i * kMs,
                              .duration = kMs / 2,
                              .result = kItem,
                              .handle = handle,
                              .fd = 3,
                              .offset = i * kItem,
                              .size = kItem});
        }
        const uint64_t exit = job.add(command, {.kind = OpKind::exit, .begin = 102 * kMs});
        const Edge edge{command, EdgeKind::lifecycle, 100, exit};
        Op join{.kind = OpKind::join, .begin = kMs / 2 + waits * kMs, .peer = command};
        join.duration = 103 * kMs - join.begin;
        if (joins) {
            join.edges = {&edge, 1};
        }
        job.add(shell, join);
        job.add(next, {.kind = OpKind::compute, .begin = 104 * kMs, .duration = 50 * kMs});
        return infer_queues(job.finish()).feed_nobody.size();
    };
    CHECK(doubts(0, true) == 0);
    CHECK(doubts(5, true) == 0);
    CHECK(doubts(0, false) == 1);  // nobody waits
    CHECK(doubts(50, true) == 1);  // the parent did something else while it read
}

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

TEST_CASE("a queue whose consumer touches two pages far apart of a mapped file") {
    QueueJob job(100, 8);
    const HandleId handle = job.job.open(job.consumer, job.job.file("/data/index"));
    job.job.add(job.consumer, {.kind = OpKind::mmap, .handle = handle, .fd = 3, .size = 1000 * kItem, .map = 1});
    const int64_t list[] = {0, 16, 999 * kItem, 16};
    job.job.add(job.consumer, {.kind = OpKind::touch, .size = 999 * kItem + 32, .map = 1, .list = list});
    const QueueInference found = infer_queues(job.job.finish());
    REQUIRE(found.queues.size() == 1);
    CHECK(found.queues[0].consumer == job.consumer);
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

TEST_CASE("event loops that hear of reads are pointed out") {
    TempDir dir;
    JobBuilder job(dir.path() / "job.oplog");
    const ProcessId process = job.process();
    const TaskId loop = job.task(process), reader = job.task(process);
    const HandleId handle = job.open(reader, job.file("/data/in"));
    bool told = true, itself = false;
    SUBCASE("of others' reads") {}
    SUBCASE("of its own") { told = false, itself = true; }
    SUBCASE("of something else, as the network loop of a distributed job") { told = false; }
    for (int64_t i = 0; i < 40; ++i) {
        const uint64_t read =
            job.add(itself ? loop : reader,
                    {.kind = OpKind::pread, .result = kItem, .handle = handle, .offset = i * kItem, .size = kItem});
        const std::vector<Edge> by{{reader, EdgeKind::wake, 100, read}};
        job.add(loop, {.kind = OpKind::wait, .arg = kWaitEpoll, .edges = told ? by : std::vector<Edge>{}});
    }
    const std::vector<TaskId> found = infer_queues(job.finish()).event_loops;
    CHECK(found == (told || itself ? std::vector<TaskId>{loop} : std::vector<TaskId>{}));
}

TEST_CASE("tasks that take work as they get free are pointed out") {
    struct Worker {
        int64_t reads, until;  // the last one, us
        int64_t bytes = kItem;
    };
    const auto found = [](const std::vector<Worker>& workers, bool processes = false, const char* other = nullptr) {
        TempDir dir;
        JobBuilder job(dir.path() / "job.oplog");
        const ProcessId first = job.process();
        job.task(first);
        const HandleId handle = job.handle(job.file("/data/in", Origin::existed, Role::dataset));
        for (size_t n = 0; n < workers.size(); ++n) {
            const Worker& worker = workers[n];
            ProcessId process = first;
            if (processes) {
                process = job.process(first);
            }
            const TaskId task = job.named_task(process, other != nullptr && n == 0 ? other : "python3");
            for (int64_t i = 0; i < worker.reads; ++i) {
                job.add(task, {.kind = OpKind::pread,
                               .begin = 1'000 + worker.until * i * 1'000 / worker.reads,
                               .duration = 10,
                               .result = worker.bytes,
                               .handle = handle,
                               .fd = 3,
                               .size = worker.bytes});
            }
        }
        return infer_queues(job.finish());
    };
    const std::vector<Worker> uneven{{84, 1'000}, {50, 1'000}, {13, 1'000}};
    const QueueInference threads = found(uneven);
    REQUIRE(threads.shared.size() == 1);
    CHECK(threads.shared[0].tasks.size() == 3);
    CHECK(threads.shared[0].least == 13);
    CHECK(threads.shared[0].most == 84);
    CHECK(threads.shared_work() ==
          "3 tasks take work as they get free (13 to 84 reads each): on other storage they would share it otherwise");
    CHECK(found(uneven, true).shared.size() == 1);
    CHECK(found(uneven, true, "cat").shared.empty());                      // two of one program
    CHECK(found({{50, 1'000}, {50, 1'000}, {47, 1'000}}).shared.empty());  // even
    CHECK(found({{84, 1'000}, {50, 600}, {13, 155}}).shared.empty());      // each has its own part
    CHECK(found({{20, 1'000}, {15, 1'000}, {4, 1'000}}).shared.empty());   // few
    CHECK(found({{84, 1'000}, {13, 1'000}}).shared.size() == 1);           // two
    CHECK(found({{84, 1'000}, {13, 1'000}}, true).shared.empty());         // may be two jobs
    CHECK(found({{84, 1'000}, {13, 700}}).shared.empty());                 // each has its own part
    CHECK(found({{55, 1'000}, {45, 1'000}}).shared.empty());               // even
    CHECK(found({{84, 1'000}, {13, 1'000, 2 * kItem}}).shared.empty());    // not the same work
    CHECK(QueueInference{}.shared_work().empty());
    CHECK(QueueInference::shares_otherwise(151, 100));
    CHECK_FALSE(QueueInference::shares_otherwise(149, 100));
    CHECK(QueueInference::shares_otherwise(100, 151));
}

TEST_CASE("children that are started as others end are pointed out") {
    // `count` children that read for 10 ms, each begun so long after the one before, us.
    const auto found = [](int64_t count, int64_t apart, size_t names = 1) {
        TempDir dir;
        JobBuilder job(dir.path() / "job.oplog");
        const ProcessId first = job.process();
        job.task(first);
        const HandleId handle = job.handle(job.file("/data/in", Origin::existed, Role::dataset));
        for (int64_t n = 0; n < count; ++n) {
            const TaskId task =
                job.named_task(job.process(first), "cat" + std::to_string(static_cast<size_t>(n) % names));
            job.add(task, {.kind = OpKind::pread,
                           .begin = 1'000 + n * apart * 1'000,
                           .duration = 10'000'000,
                           .result = kItem,
                           .handle = handle,
                           .fd = 3,
                           .size = kItem});
        }
        return infer_queues(job.finish());
    };
    const QueueInference pool = found(40, 4'000);  // two or three at a time
    REQUIRE(pool.shared.size() == 1);
    CHECK(pool.shared_work() == "task 1 starts 40 children as others end: on other storage others would run at once");
    CHECK(found(40, 11'000).shared.empty());  // one after the other
    CHECK(found(40, 10).shared.empty());      // all at once
    CHECK(found(19, 4'000).shared.empty());   // few
    CHECK(found(40, 4'000, 3).shared.empty());
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

TEST_CASE("a prediction waits for what an inferred queue needs") {
    QueueJob job(60, 4);
    const LogReader reader = job.job.finish();
    PredictOptions options;
    options.filter = OpFilter::all();
    options.storage.read = {{4096, 3 * kMs}};  // the consumer takes a millisecond an item
    options.storage.read_ahead_bytes = 0;
    options.storage.read_bytes_per_s = options.storage.write_bytes_per_s = options.storage.cached_bytes_per_s = 1e15;
    options.output = job.dir.path() / "predicted.oplog";
    predict(reader, options);
    const LogReader run(options.output);
    std::vector<int64_t> begins, ends;
    run.for_each(job.consumer, [&](const Op& op, uint64_t) { begins.push_back(op.begin); });
    run.for_each(job.reader, [&](const Op& op, uint64_t) { ends.push_back(op.begin + op.duration); });
    const QueueInference found = infer_queues(reader);
    for (const auto& [op, edge] : found.edges.at(job.consumer)) {
        CHECK(ends.at(edge.op) <= begins.at(op));
    }
    CHECK(begins.back() - begins.front() > 60 * 3 * kMs * 9 / 10);
}

namespace {

/// Consumer (task 1) and readers as a recording shows them, each op at a time of its own. A step is a power of two, and
/// so is an item, that rates and capacities come out exactly.
struct Hands {
    static constexpr int64_t kStep = 1 << 20, kQuarter = kStep / 4, kStart = 64 * kStep;

    TempDir dir;
    JobBuilder job{dir.path() / "job.oplog"};
    ProcessId process = job.process();
    TaskId consumer = job.task(process), reader = job.task(process);
    HandleId handle = job.handle(job.file("/data/in"));
    std::map<TaskId, uint64_t> ops;  // that each task has

    uint64_t add(TaskId task, Op op) {
        job.add(task, op);
        return ops[task]++;
    }
    uint64_t read(TaskId task, int64_t ends, int64_t items = 1) {
        return add(task, {.kind = OpKind::pread,
                          .begin = ends - 1000,
                          .duration = 1000,
                          .result = items * kItem,
                          .handle = handle,
                          .fd = 3,
                          .size = items * kItem});
    }
    uint64_t wakes(TaskId task, int64_t at) {
        return add(task, {.kind = OpKind::wait, .begin = at, .duration = 1000, .arg = kWokeOthers});
    }
    uint64_t computes(TaskId task, int64_t at) {
        return add(task, {.kind = OpKind::compute, .begin = at, .duration = 1000, .flags = 3});
    }
    uint64_t waits(TaskId task, int64_t begin, int64_t end, TaskId source, uint64_t op,
                   EdgeKind kind = EdgeKind::wake) {
        const Edge edges[] = {{source, kind, 100, op}};
        return add(task,
                   {.kind = OpKind::wait, .begin = begin, .duration = end - begin, .arg = kFutex, .edges = edges});
    }
    /// The consumer makes room, for which the reader has waited, and goes on for a step; the reader reads an item.
    void full() {
        const uint64_t op = wakes(consumer, now);
        waits(reader, now - kQuarter, now + 2000, consumer, op);
        read(reader, now + kQuarter);
        now += kStep;
    }
    int64_t now = kStart;
    std::string text() { return queue_text(infer_queues(job.finish())); }

    /// A line for each queue, one for each op with the reads it needs, then who else is of note.
    static std::string queue_text(const QueueInference& found) {
        std::string out;
        for (const InferredQueue& queue : found.queues) {
            out += std::to_string(queue.consumer) + " <";
            for (const TaskId task : queue.readers) {
                out += " " + std::to_string(task);
            }
            out += queue.by == InferredQueue::By::conservation ? " conserved" : "";
            out += ", " + std::to_string(queue.wakes) + " wakes, " + std::to_string(queue.waits) + " waits, " +
                   std::to_string(queue.bytes / kItem) + " items, capacity " + std::to_string(queue.capacity_bytes) +
                   ", a step " + std::to_string(queue.bytes_per_s * kStep / 1e9) + ", " +
                   std::to_string(queue.confidence) + " %, " + std::to_string(queue.edges) + " edges\n";
            if (const auto edges = found.edges.find(queue.consumer); edges != found.edges.end()) {
                for (const auto& [op, edge] : edges->second) {
                    out += " " + std::to_string(op) + "<" + (edge.task == 2 ? "" : std::to_string(edge.task) + ".") +
                           std::to_string(edge.op);
                }
                out += "\n";
            }
        }
        for (const TaskId task : found.feed_nobody) {
            out += "feeds nobody: " + std::to_string(task) + "\n";
        }
        for (const TaskId task : found.event_loops) {
            out += "event loop: " + std::to_string(task) + "\n";
        }
        return out;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Hands, "a queue that was full from the start: exact edges, and those after its last moment") {
    for (int64_t i = 0; i < 4; ++i) {
        read(reader, kStart - kStep + i * 2000);
    }
    for (int64_t k = 0; k < 24; ++k) {
        full();
        computes(consumer, now - kStep / 2);
    }
    for (int64_t k = 0; k < 6; ++k) {
        computes(consumer, now);
        now += kStep;
    }
    CHECK(
        text() ==
        "1 < 2, 24 wakes, 0 waits, 28 items, capacity 16384, a step 4096.000000, 70 %, 26 edges\n"
        " 2<0 4<1 6<2 8<3 10<5 12<7 14<9 16<11 18<13 20<15 22<17 24<19 26<21 28<23 30<25 32<27 34<29 36<31 38<33 40<35"
        " 42<37 44<39 46<41 49<45 51<49 53<51\n");
}

TEST_CASE_FIXTURE(Hands, "a queue that was empty before it was full, and when its consumer waited") {
    // Nine items before the queue is full; three of them when it was empty, two steps before.
    read(reader, kStart - 3 * kStep);
    read(reader, kStart - 2 * kStep, 2);
    waits(consumer, kStart - 4 * kStep, kStart - 2 * kStep, reader, 1);
    for (int64_t i = 0; i < 6; ++i) {
        read(reader, kStart - kStep + i * 2000);
    }
    for (int64_t k = 0; k < 12; ++k) {
        full();
    }
    waits(consumer, now, now + 19'999, reader, ops[reader] - 1);  // too short to tell anything
    now += 19'999;
    for (int64_t k = 0; k < 6; ++k) {
        full();
    }
    // Another reader waited for room meanwhile: the queue was not empty.
    const TaskId other = job.task(process);
    const uint64_t op = wakes(consumer, now);
    waits(other, now - 1000, now + 30'000, consumer, op);
    read(other, now + 31'000);
    waits(consumer, now + 2000, now + 28'000, reader, ops[reader] - 1);
    now += kStep + 26'000;
    for (int64_t k = 0; k < 6; ++k) {
        full();
    }
    waits(consumer, now, now + 20'000, reader, ops[reader] - 1);
    now += 20'000 + kStep;
    computes(consumer, now);
    CHECK(text() ==
          "1 < 2 3, 25 wakes, 2 waits, 34 items, capacity 16384, a step 4096.000000, 90 %, 25 edges\n"
          " 1<3 2<4 3<5 4<6 5<7 6<9 7<11 8<13 9<15 10<17 11<19 12<21 14<23 15<25 16<27 17<29 18<31 19<33 20<35 22<37"
          " 23<39 24<41 25<43 26<3.1 27<45\n");
}

TEST_CASE_FIXTURE(Hands, "data is what is read of files, and touched of mappings of them") {
    const HandleId program = job.handle(job.file("/bin/x", Origin::existed, Role::program));
    const HandleId pipe = job.handle(0, O_RDONLY, HandleKind::pipe), nothing = job.handle(0);
    const TaskId mapper = job.task(process);
    uint32_t map = 0;
    for (const HandleId mapped : {handle, program, HandleId{0}}) {
        add(mapper, {.kind = OpKind::mmap, .handle = mapped, .fd = 3, .size = kItem, .map = ++map});
    }
    const auto reads = [&](int64_t at, HandleId of, int64_t result) {
        const auto kind = result == 7 ? OpKind::uring_enter : OpKind::read;
        add(reader,
            {.kind = kind, .begin = at, .duration = 100, .result = result, .handle = of, .fd = 3, .size = kItem});
    };
    const auto touches = [&](int64_t at, uint32_t of, int64_t size, std::span<const int64_t> list = {}) {
        add(reader, {.kind = OpKind::touch, .begin = at, .duration = 100, .size = size, .map = of, .list = list});
    };
    const int64_t parts[] = {0, kItem / 4, 4096, kItem / 4, 0, -4096};
    for (int64_t i = 0; i < 4; ++i) {
        read(reader, kStart - kStep + i * 2000);
    }
    for (int64_t k = 0; k < 20; ++k) {
        const uint64_t op = wakes(consumer, now);
        waits(reader, now - kQuarter, now + 2000, consumer, op);
        reads(now + 3000, program, kItem);
        reads(now + 4000, pipe, kItem);
        reads(now + 5000, nothing, kItem);
        reads(now + 6000, handle, -5);
        reads(now + 7000, handle, 7);
        touches(now + 8000, 2, kItem);
        touches(now + 9000, 3, kItem);
        touches(now + 10'000, 4, kItem);
        touches(now + 11'000, 1, kItem / 2);
        touches(now + 12'000, 1, 64 * kItem, parts);
        now += kStep;
    }
    CHECK(text() ==
          "1 < 2, 20 wakes, 0 waits, 24 items, capacity 16384, a step 4096.000000, 70 %, 19 edges\n"
          " 1<0 2<1 3<2 4<3 5<14 6<25 7<36 8<47 9<58 10<69 11<80 12<91 13<102 14<113 15<124 16<135 17<146 18<157"
          " 19<168\n");
}

TEST_CASE_FIXTURE(Hands, "wakes that go through two others are the consumer's") {
    const TaskId first = job.task(process), second = job.task(process);
    for (int64_t i = 0; i < 4; ++i) {
        read(reader, kStart - kStep + i * 2000);
    }
    for (int64_t k = 0; k < 20; ++k) {
        const uint64_t order = wakes(consumer, now);
        computes(consumer, now + 3000);
        waits(first, now - kQuarter, now + 1000, consumer, order);
        const uint64_t passed_on = wakes(first, now + 1000);
        waits(second, now - kQuarter, now + 2000, first, passed_on, EdgeKind::message);
        const uint64_t op = wakes(second, now + 3000);
        waits(reader, now - kQuarter, now + 4000, second, op);
        read(reader, now + kQuarter);
        now += kStep;
    }
    computes(consumer, now - 1000);  // works most
    CHECK(text() ==
          "1 < 2, 20 wakes, 0 waits, 24 items, capacity 16384, a step 4096.000000, 70 %, 19 edges\n"
          " 2<0 4<1 6<2 8<3 10<5 12<7 14<9 16<11 18<13 20<15 22<17 24<19 26<21 28<23 30<25 32<27 34<29 36<31 38<33\n");
}

TEST_CASE("queues: how often, how long, and with how few messages") {
    // `gap`: after so many moments of a full queue the consumer waits for data.
    const auto found = [](int64_t wakes, int64_t gap, int64_t messages) {
        Hands hands;
        for (int64_t i = 0; i < 4; ++i) {
            hands.read(hands.reader, Hands::kStart - Hands::kStep + i * 2000);
        }
        for (int64_t k = 0; k < wakes; ++k) {
            if (gap != 0 && k != 0 && k % gap == 0) {
                hands.waits(hands.consumer, hands.now, hands.now + 20'000, hands.reader, hands.ops[hands.reader] - 1);
                hands.now += 21'000 + Hands::kQuarter;
            }
            hands.full();
        }
        for (int64_t i = 0; i < messages; ++i) {
            const EdgeKind kind = i % 2 == 0 ? EdgeKind::message : EdgeKind::marker;
            hands.waits(hands.consumer, hands.now + 2000 * i, hands.now + 2000 * i + 1000, hands.reader, 0, kind);
        }
        return !infer_queues(hands.job.finish()).queues.empty();
    };
    CHECK(found(20, 0, 0));
    CHECK_FALSE(found(19, 0, 0));
    CHECK(found(24, 8, 0));
    CHECK_FALSE(found(24, 7, 0));
    CHECK(found(24, 0, 11));
    CHECK_FALSE(found(24, 0, 12));
}

TEST_CASE("conservation: one step in twenty may contradict, one task feeds the accelerator, and reads little") {
    const auto found = [](int64_t early, bool another, int64_t own_bytes, int64_t submits = 20) {
        Hands hands;
        for (int64_t i = 0; i < 100; ++i) {
            hands.read(hands.reader, Hands::kStart + i * 2000);
        }
        for (int64_t k = 0; k < submits; ++k) {
            const int64_t at = k < early ? 1000 + k : Hands::kStart + (k + 1) * Hands::kStep;
            hands.add(hands.consumer, {.kind = OpKind::gpu_submit, .begin = at, .size = 1000});
        }
        if (own_bytes != 0) {
            hands.add(hands.consumer, {.kind = OpKind::pread,
                                       .begin = 100 * Hands::kStep,
                                       .result = own_bytes,
                                       .handle = hands.handle,
                                       .fd = 3,
                                       .size = own_bytes});
        }
        if (another) {
            const TaskId task = hands.job.task(hands.process);
            for (int64_t k = 0; k < 20; ++k) {
                hands.add(task, {.kind = OpKind::gpu_submit, .begin = 200 * Hands::kStep + k, .size = 1000});
            }
        }
        return hands.text();
    };
    const std::string nobody = "feeds nobody: 2\n";
    CHECK(found(0, false, 0) ==
          "1 < 2 conserved, 20 wakes, 0 waits, 100 items, capacity 0, a step 0.000000, 40 %, 20 edges\n"
          " 0<4 1<9 2<14 3<19 4<24 5<29 6<34 7<39 8<44 9<49 10<54 11<59 12<64 13<69 14<74 15<79 16<84 17<89 18<94"
          " 19<99\n");
    CHECK(found(1, false, 0).find("19 edges\n 1<9 2<14 ") != std::string::npos);
    CHECK(found(2, false, 0) == nobody);
    CHECK(found(0, true, 0) == nobody);
    CHECK(found(0, false, 0, 19) == nobody);
    CHECK(found(0, false, kItem).starts_with("1 < 2 conserved, 20 wakes, 0 waits, 100 items"));
    CHECK(found(0, false, 2 * kItem) == nobody);
}

TEST_CASE(
    "event loops poll often and do little else; readers that feed nobody read much and have no work of their own") {
    struct Row {
        int64_t polls, futexes, reads, computing, submits, messages;
        const char* text;
    };
    const char* const loop = "event loop: 1\n";
    const char* const nobody = "feeds nobody: 2\n";
    const Row rows[] = {
        {20, 0, 1, 0, 0, 0, loop},     {19, 0, 1, 0, 0, 0, ""},     {20, 19, 1, 0, 0, 0, loop},
        {20, 20, 1, 0, 0, 0, ""},      {0, 0, 20, 0, 0, 0, nobody}, {0, 0, 19, 0, 0, 0, ""},
        {0, 0, 20, 332, 0, 0, nobody}, {0, 0, 20, 333, 0, 0, ""},   {0, 0, 20, 0, 1, 0, ""},
        {0, 0, 20, 0, 0, 1, nobody},   {0, 0, 20, 0, 0, 2, ""},
    };
    for (const Row& row : rows) {
        Hands hands;
        CAPTURE(&row - rows);
        int64_t at = 0;
        for (int64_t i = 0; i < row.polls + row.futexes; ++i) {
            hands.add(hands.consumer, {.kind = OpKind::wait, .begin = at += 5000, .arg = i < row.polls ? 7 : kFutex});
        }
        hands.add(hands.consumer, {.kind = OpKind::wait, .begin = at += 5000, .arg = kWaitLock});
        hands.add(hands.consumer, {.kind = OpKind::compute, .begin = at += 5000, .duration = 1000});
        for (int64_t i = 0; i < row.reads; ++i) {
            hands.read(row.polls != 0 ? hands.consumer : hands.reader, at += 5000);
        }
        hands.add(hands.reader, {.kind = OpKind::compute, .begin = at += 5000, .duration = row.computing + 1});
        for (int64_t i = 0; i < row.submits; ++i) {
            hands.add(hands.reader, {.kind = OpKind::gpu_submit, .begin = at += 5000, .size = 1});
        }
        for (int64_t i = 0; i < row.messages; ++i) {
            hands.waits(hands.consumer, at, at + 1000, hands.reader, 0, i == 0 ? EdgeKind::message : EdgeKind::marker);
            at += 5000;
        }
        CHECK(hands.text() == row.text);
    }
}
