// SPDX-License-Identifier: MIT
// Asynchronous requests in virtual time: how many the device serves at once, what waits for what, several rings.
#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <algorithm>

#include <deque>
#include <memory>
#include <vector>

#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kReadTime = 100 * kUs;
constexpr int64_t kThere = 10 * kUs;  // between two completions in the recording

/// A recording: its device completes one request every 10 us, in order.
struct Ringed {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    int64_t now = kUs;
    uint32_t number = 0;
    FileId file = job.file("/data/in");
    HandleId in = job.handle(file, O_RDONLY | O_DIRECT), out = job.handle(job.file("/data/out"), O_RDWR | O_DIRECT);
    struct Flying {
        uint32_t request = 0;
        int64_t done = 0;
    };
    struct Ring {
        TaskId task = 0;
        HandleId handle = 0;  // 0: libaio
        std::deque<Flying> flying{};
        int64_t free = 0;
        uint64_t last = UINT64_MAX;  // op of the completion that the job has taken last
    };

    uint64_t put(TaskId task, Op op) { return job.writer().append(task, op); }
    Ring ring(TaskId task) { return {task, job.handle(0, O_RDWR, HandleKind::other)}; }
    Ring of_each_kind() {
        const TaskId task = job.lone_task();
        Ring all{task};
        SUBCASE("io_uring") { all = ring(task); }
        SUBCASE("libaio") {}
        return all;
    }

    uint32_t submit(Ring& ring, int64_t flags = 0, HandleId of = 0, int64_t code = IORING_OP_READ, uint64_t after = 0) {
        std::vector<Edge> edges;
        if (ring.last != UINT64_MAX) {
            edges.push_back({ring.task, EdgeKind::reaped, 100, ring.last});
        }
        if (after != 0) {
            edges.push_back({ring.task, EdgeKind::resource, 100, after - 1});
        }
        const bool aio = ring.handle == 0;
        put(ring.task, {.kind = aio ? OpKind::aio_submit : OpKind::uring_submit,
                        .begin = now,
                        .result = 1,
                        .handle = of != 0 ? of : in,
                        .fd = 3,
                        .offset = int64_t{++number} * 4096,
                        .size = 4096,
                        .flags = flags,
                        .arg = aio ? int64_t{IOCB_CMD_PREAD} : code,
                        .request = number,
                        .edges = edges});
        ring.free = std::max(ring.free, now) + kThere;
        ring.flying.push_back({number, ring.free});
        return number;
    }
    /// Submits what is in line, waits for so many, and takes all that are there. The op of the last completion.
    uint64_t enter(Ring& ring, int64_t submits, int64_t waits) {
        const int64_t begin = now;
        if (waits > 0) {
            now = std::max(now, ring.flying.at(static_cast<size_t>(waits) - 1).done);
        }
        const bool aio = ring.handle == 0;
        std::vector<Edge> edges;
        if (ring.last != UINT64_MAX) {
            edges.push_back({ring.task, EdgeKind::reaped, 100, ring.last});
        }
        const auto taken = std::count_if(ring.flying.begin(), ring.flying.end(),
                                         [&](const auto& flying) { return flying.done <= now; });
        put(ring.task, {.kind = aio ? OpKind::aio_reap : OpKind::uring_enter,
                        .begin = begin,
                        .duration = now - begin,
                        .result = aio ? taken : submits,
                        .handle = ring.handle,
                        .fd = 4,
                        .size = submits,
                        .arg = waits,
                        .edges = aio ? std::vector<Edge>() : edges});
        while (!ring.flying.empty() && ring.flying.front().done <= now) {
            ring.last = put(ring.task, {.kind = aio ? OpKind::aio_complete : OpKind::uring_complete,
                                        .begin = aio ? begin : std::max(begin, ring.flying.front().done),
                                        .result = 4096,
                                        .size = 4096,
                                        .request = ring.flying.front().request});
            ring.flying.pop_front();
        }
        return ring.last;
    }
    /// So many, `depth` at a time: one more as one is done.
    void keep_full(Ring& ring, int depth, int count) {
        int made = 0;
        for (; made < depth; ++made) {
            submit(ring);
        }
        int done = 0, fresh = depth;
        while (done < count) {
            const auto before = static_cast<int>(ring.flying.size());
            enter(ring, fresh, 1);
            const int came = before - static_cast<int>(ring.flying.size());
            done += came;
            for (fresh = 0; fresh < came && made < count; ++fresh, ++made) {
                submit(ring);
            }
        }
    }

    Prediction run(int parallelism, CallTimes calls = CallTimes::model) {
        if (!reader) {
            reader = std::make_unique<LogReader>(job.finish());
        }
        model.parallelism = parallelism;
        PredictOptions options;
        options.calls = calls;
        options.storage = model;
        options.filter = OpFilter::all();
        options.output = dir / "run.oplog";
        return predict(*reader, options);
    }
    double us(int parallelism) { return static_cast<double>(run(parallelism).elapsed_ns) / kUs; }

    StorageModel model = [] {
        StorageModel m;
        m.read = {{4096, kReadTime}};
        m.read_bytes_per_s = m.write_bytes_per_s = m.cached_bytes_per_s = 1e15;
        return m;
    }();
    std::unique_ptr<LogReader> reader;
};

constexpr auto kClose = 0.05;

}  // namespace

TEST_CASE_FIXTURE(Ringed, "requests: a ring that is kept full at 32, on devices that serve 1, 8 and 64 at once") {
    Ring all = of_each_kind();
    keep_full(all, 32, 320);
    CHECK(us(1) == doctest::Approx(320 * 100).epsilon(kClose));
    CHECK(us(8) == doctest::Approx(320 * 100 / 8).epsilon(kClose));
    CHECK(us(64) == doctest::Approx(320 * 100 / 32).epsilon(kClose));
    const Prediction found = run(64);
    CHECK(found.storage_reads == 320);
    CHECK(found.bytes_read == 320 * 4096);
    CHECK(found.path.sum() == found.elapsed_ns);
    CHECK(found.path.of(PathPart::device) > found.elapsed_ns * 9 / 10);
    CHECK(poor_reason(found, model).find("one by one") == std::string::npos);
    CHECK(run(1, CallTimes::recorded).bytes_read == 320 * 4096);
    CHECK(static_cast<double>(run(1, CallTimes::recorded).elapsed_ns) ==
          doctest::Approx(static_cast<double>(found.recorded_ns)).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: limits hold for all that are in flight") {
    Ring all = ring(job.lone_task());
    keep_full(all, 32, 320);
    SUBCASE("of requests") { model.reads_per_s = 10'000; }
    SUBCASE("of bytes") { model.read_bytes_per_s = 4096 * 10'000; }
    CHECK(us(64) == doctest::Approx(320 * 100).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: memory serves a read within the call that makes it") {
    Ring all = of_each_kind();
    keep_full(all, 8, 80);
    CHECK(us(8) == doctest::Approx(10 * 100).epsilon(kClose));
    model.inline_reads = true;
    CHECK(us(8) == doctest::Approx(80 * 100).epsilon(kClose));
    model.reads_per_s = 5'000;
    CHECK(us(8) == doctest::Approx(80 * 200).epsilon(kClose));
    model.reads_per_s = 1e9;
    // A ring takes longer than a call, and that is work, too; its call counts by itself.
    model.read_depth = {{4096, 1, 125'000, 125'000, 8e3, false}};
    CHECK(us(8) == doctest::Approx(80 * 125).epsilon(kClose));
    model.read_depth = {{4096, 1, 80'000, 80'000, 12.5e3, false}};
    CHECK(us(8) == doctest::Approx(80 * 100).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: rows by depth say how many are served, whatever the parallelism") {
    Ring all = ring(job.lone_task());
    keep_full(all, 32, 320);
    const auto row = [](int depth, double per_s, bool limited = false) {
        const auto took = static_cast<int64_t>(depth * 1e9 / per_s);
        return DepthRow{4096, depth, took, took, per_s, limited};
    };
    model.read_depth = {row(1, 1e4), row(16, 8e4), row(64, 8e4)};
    CHECK(us(1) == doctest::Approx(320 * 1e6 / 8e4).epsilon(kClose));
    model.read_depth[2] = row(64, 4e4);  // worse than with 16; 32 lie between
    CHECK(us(1) > 320 * 1e6 / 8e4 * 1.1);
    CHECK(us(1) < 320 * 1e6 / 4e4);
    // What a limit decided says nothing about the device.
    model.read_depth = {row(1, 1e4), row(4, 2e4, true)};
    CHECK(us(1) == doctest::Approx(10 * 100).epsilon(kClose));
    // A size that has no other row is not as slow as a larger one.
    model.read_depth = {row(1, 1e4, true),
                        {131072, 1, 1'000'000, 1'000'000, 1e3, false},
                        {131072, 16, 70'000'000, 70'000'000, 200, false}};
    CHECK(us(1) == doctest::Approx(10 * 100).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: a batch and its drain, and one after the other") {
    Ring all = ring(job.lone_task());
    int batch = 8;
    SUBCASE("8 at a time") { batch = 8; }
    SUBCASE("1 at a time") { batch = 1; }
    for (int i = 0; i < 10; ++i) {
        for (int j = 0; j < batch; ++j) {
            submit(all);
        }
        enter(all, batch, batch);
    }
    CHECK(us(8) == doctest::Approx(10 * 100).epsilon(kClose));
    CHECK(us(2) == doctest::Approx(10 * 100 * std::max(batch / 2, 1)).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: two rings share the device, and wait each for its own") {
    const TaskId task = job.lone_task();
    Ring first = ring(task), second = ring(task);
    for (int i = 0; i < 10; ++i) {
        for (int j = 0; j < 4; ++j) {
            submit(first);
        }
        enter(first, 4, 0);
        for (int j = 0; j < 4; ++j) {
            submit(second);
        }
        enter(second, 4, 4);
        enter(first, 0, 4 - (4 - static_cast<int64_t>(first.flying.size())));
    }
    CHECK(us(8) == doctest::Approx(10 * 100).epsilon(kClose));
    CHECK(us(4) == doctest::Approx(10 * 200).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: a pipeline whose writes need the very read") {
    Ring all = ring(job.lone_task());
    for (int i = 0; i < 10; ++i) {
        submit(all);
        const uint64_t read = enter(all, 2, static_cast<int64_t>(all.flying.size()));
        submit(all, 0, out, IORING_OP_WRITE, read + 1);
    }
    enter(all, 1, 1);
    const Prediction found = run(8);
    CHECK(found.bytes_read == 10 * 4096);
    CHECK(found.bytes_written == 10 * 4096);
    CHECK(static_cast<double>(found.elapsed_ns) / kUs == doctest::Approx(11 * 100).epsilon(0.1));
}

TEST_CASE_FIXTURE(Ringed, "requests: those that are linked follow one another, and one that drains waits for all") {
    Ring all = ring(job.lone_task());
    double expected = 0;
    SUBCASE("linked") {
        submit(all, IOSQE_IO_LINK);
        submit(all, IOSQE_IO_HARDLINK);
        submit(all);
        submit(all);  // not linked
        expected = 300;
    }
    SUBCASE("drains") {
        submit(all);
        submit(all);
        submit(all, IOSQE_IO_DRAIN);
        submit(all);
        expected = 200;
    }
    enter(all, 4, 4);
    CHECK(us(8) == doctest::Approx(expected).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: the predicted log says when each was done") {
    Ring all = ring(job.lone_task());
    keep_full(all, 4, 40);
    run(2);
    const LogReader log(dir / "run.oplog");
    std::map<uint32_t, int64_t> submitted;
    int64_t before = INT64_MIN;
    size_t done = 0;
    log.for_each(1, [&](const Op& op, uint64_t) {
        CHECK(op.begin >= before);
        before = op.begin;
        if (op.kind == OpKind::uring_submit) {
            submitted[op.request] = op.begin;
        } else if (op.kind == OpKind::uring_complete) {
            REQUIRE(submitted.contains(op.request));
            const int64_t took = op.end() - submitted[op.request];
            CHECK(took >= kReadTime);
            CHECK(took <= 2 * kReadTime + 10 * kUs);
            ++done;
        }
    });
    CHECK(done == 40);
}

TEST_CASE_FIXTURE(Ringed, "requests: one task waits for what another one asked for") {
    const ProcessId process = job.process();
    const TaskId asks = job.task(process), waits = job.task(process);
    Ring mine = ring(asks);
    for (int i = 0; i < 8; ++i) {
        submit(mine);
    }
    enter(mine, 8, 0);
    Ring theirs = mine;
    theirs.task = waits;
    theirs.last = UINT64_MAX;
    now += kUs;
    enter(theirs, 0, 8);
    put(waits,
        {.kind = OpKind::pread, .begin = now, .duration = kUs, .result = 4096, .handle = in, .fd = 3, .size = 4096});
    CHECK(us(8) == doctest::Approx(200).epsilon(kClose));
    CHECK(us(1) == doctest::Approx(900).epsilon(kClose));
}

TEST_CASE_FIXTURE(Ringed, "requests: buffered ones use the page cache, and libaio waits for them where it submits") {
    in = job.handle(file, O_RDONLY);
    const TaskId task = job.lone_task();
    Ring all;
    double expected = 0;
    SUBCASE("io_uring") {
        all = ring(task);
        expected = 100;
    }
    SUBCASE("libaio") {
        all = {task};
        expected = 400;
    }
    model.read_ahead_bytes = 0;
    for (int i = 0; i < 4; ++i) {
        number += 1000;  // no neighbours
        submit(all);
    }
    enter(all, 4, 4);
    number = 0;
    for (int i = 0; i < 4; ++i) {
        number += 1000;  // the same again
        submit(all);
    }
    enter(all, 4, 4);
    CHECK(us(8) == doctest::Approx(expected).epsilon(0.15));
    CHECK(run(8).storage_reads == 4);
}

TEST_CASE_FIXTURE(Ringed, "requests: what can never be done holds nobody up") {
    const TaskId task = job.lone_task();
    Ring all = ring(task);
    submit(all);
    enter(all, 1, 1);
    // Linked behind one whose log ends; waited for by a task that has none.
    const uint64_t last =
        put(task, {.kind = OpKind::uring_enter, .begin = now, .handle = all.handle, .size = 0, .arg = 5});
    CHECK(last > 0);
    CHECK(run(1).ops == 4);
}

TEST_CASE_FIXTURE(Ringed, "requests: a call on a name counts for who waits in its ring") {
    const TaskId task = job.lone_task();
    Ring all = ring(task);
    submit(all);
    submit(all);
    put(task, {.kind = OpKind::uring_submit, .begin = now, .arg = IORING_OP_STATX, .request = ++number});
    const auto result = [&](uint32_t request, int64_t moved) {
        put(task, {.kind = OpKind::uring_complete, .begin = now, .result = moved, .size = moved, .request = request});
    };
    const int64_t begin = now;
    now += kThere;
    put(task, {.kind = OpKind::uring_enter,
               .begin = begin,
               .duration = kThere,
               .result = 3,
               .handle = all.handle,
               .fd = 4,
               .size = 3,
               .arg = 2});
    put(task, {.kind = OpKind::statx, .begin = now, .file = file});
    result(number, 0);
    result(1, 4096);
    put(task, {.kind = OpKind::compute, .begin = now, .duration = kReadTime});
    now += kReadTime;
    result(2, 4096);
    // The second read is done while the job computes: it waited for the first, and for the call.
    CHECK(us(1) == doctest::Approx(200).epsilon(0.15));
}

TEST_CASE_FIXTURE(Ringed, "requests: calls on names that are in flight together take their time together") {
    constexpr int64_t kCalls = 16, kStat = 500 * kUs;
    model.stat_ns = kStat;
    const TaskId task = job.lone_task();
    const Ring all = ring(task);
    int64_t together = 0;
    SUBCASE("together") { together = kCalls; }
    SUBCASE("one by one") { together = 1; }
    for (int64_t made = 0; made < kCalls; made += together) {
        for (int64_t i = 0; i < together; ++i) {
            put(task, {.kind = OpKind::uring_submit, .begin = now, .arg = IORING_OP_STATX, .request = ++number});
        }
        put(task, {.kind = OpKind::uring_enter,
                   .begin = now,
                   .duration = kThere,
                   .result = together,
                   .handle = all.handle,
                   .fd = 4,
                   .size = together,
                   .arg = together});
        now += kThere;
        for (int64_t i = together; i-- > 0;) {
            put(task, {.kind = OpKind::statx, .begin = now, .file = file});
            put(task, {.kind = OpKind::uring_complete, .begin = now, .request = number - static_cast<uint32_t>(i)});
        }
    }
    const double one = static_cast<double>(kStat) / kUs;
    CHECK(us(1) == doctest::Approx(one * static_cast<double>(kCalls / together)).epsilon(0.1));
}
