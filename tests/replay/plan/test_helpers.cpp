// SPDX-License-Identifier: MIT
// Tasks that end when somebody else wants them to: beside what they help, and by a signal.
#include "replay/plan/helpers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "replay/plan/helper_time.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;

/// On storage that takes no time.
Prediction at_once(const LogReader& log) {
    PredictOptions options;
    options.storage.cold = true;
    options.storage.cached_bytes_per_s = 1e12;
    options.storage.read = options.storage.write = {{4096, 0}};
    options.filter = OpFilter::all();
    return predict(log, options);
}

std::string poor(const Prediction& prediction) {
    StorageModel model;
    model.cold = true;
    return poor_reason(prediction, model);
}

/// A thread that writes a line and sleeps, 20 times 100 ms, beside one that reads 100 ms at a time and then joins it.
struct Heartbeat {
    int reads = 20, beats = 20;
    int64_t read_ns = 100 * kMs, line = 24, write_ns = 10'000, sleep_ns = 100 * kMs, longer_ns = 0, more = 0;
    int64_t wait = kWaitSleep;

    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};
    TaskId main = 0, helper = 0;

    LogReader build() {
        const ProcessId process = job.process();
        main = job.task(process), helper = job.task(process);
        const FileId data = job.file("/data/in"), log = job.file("/data/log", Origin::created);
        const HandleId in = job.inherited(data, process, 3), out = job.inherited(log, process, 4, O_WRONLY);
        job.add(main, {.kind = OpKind::spawn, .begin = 1, .duration = 1, .result = 1, .peer = helper});
        int64_t at = 100;
        for (int i = 0; i < reads; ++i, at += read_ns) {
            job.add(main, {.kind = OpKind::pread,
                           .begin = at,
                           .duration = read_ns,
                           .result = kMiB,
                           .handle = in,
                           .fd = 3,
                           .offset = i * kMiB,
                           .size = kMiB});
        }
        const int64_t joins = at;
        at = 200;
        for (int i = 0; i < beats; ++i) {
            job.add(helper, {.kind = OpKind::write,
                             .begin = at,
                             .duration = write_ns,
                             .result = line + i % 2 * more,
                             .handle = out,
                             .fd = 4,
                             .offset = i * line,
                             .size = line});
            at += write_ns;
            const int64_t length = sleep_ns + i % 3 * longer_ns;
            job.add(helper, {.kind = OpKind::wait, .begin = at, .duration = length, .arg = wait});
            at += length;
        }
        const uint64_t ends = job.add(helper, {.kind = OpKind::exit, .begin = at, .duration = 1'000});
        const std::vector<Edge> by{{helper, EdgeKind::lifecycle, 100, ends}};
        job.add(main, {.kind = OpKind::join,
                       .begin = joins,
                       .duration = std::max<int64_t>(at + 2'000 - joins, 1'000),
                       .result = 1,
                       .peer = helper,
                       .edges = by});
        return job.finish();
    }
    Ranges series() {
        const LogReader log = build();
        const Plan plan = make_plan(log, OpFilter::all(), PathMap{});
        CHECK(plan.helpers.tasks[main].beats.empty());
        CHECK(plan.helpers.processes == 0);
        CHECK((plan.repeated_sleep_ns != 0) == (plan.helpers.beats_ns != 0));
        return plan.helpers.tasks[helper].beats;
    }
};

/// A process that reads for 500 ms until a signal ends it, started by one that a third one starts.
struct Killed {
    int signal = SIGTERM;
    int64_t result = -EINTR;
    int64_t idle_ns = 0;         // before the signal
    int64_t driven_at = -1;      // ns: it gets a message from the third one
    int64_t others_bytes = 0;    // that the third one reads
    bool both = true;            // else only the one in the middle is ended
    int64_t others_ns = 10'000;  // each read of the third one

    TempDir dir{};
    JobBuilder job{dir / "job.oplog"};
    TaskId top = 0, middle = 0, reader = 0;

    LogReader build() {
        const ProcessId first = job.process(), second = job.process(first), third = job.process(second);
        top = job.task(first), middle = job.task(second), reader = job.task(third);
        const FileId data = job.file("/data/in");
        const HandleId in = job.inherited(data, third, 3), other = job.inherited(data, first, 4);
        job.add(top, {.kind = OpKind::spawn, .begin = 1, .duration = 1, .result = 1, .peer = middle});
        job.add(middle, {.kind = OpKind::spawn, .begin = 10, .duration = 1, .result = 1, .peer = reader});
        const uint64_t sends = job.add(
            top, {.kind = OpKind::send, .begin = std::max<int64_t>(driven_at, 20), .duration = 1'000, .result = 4});
        for (int64_t i = 0; i < others_bytes / kMiB; ++i) {
            read(top, other, 4, 500 * kMs + i * others_ns, others_ns, i);
        }
        const std::vector<Edge> message{{top, EdgeKind::message, 100, sends}};
        bool driven = driven_at < 0;
        for (int i = 0; i < 50; ++i) {
            const int64_t at = 100 + i * 10 * kMs;
            if (!driven && at > driven_at + 2'000) {
                job.add(reader,
                        {.kind = OpKind::receive, .begin = at, .duration = 1'000, .result = 4, .edges = message});
                driven = true;
            }
            read(reader, in, 3, at + 2'000, 9 * kMs, i);
        }
        const int64_t end = 500 * kMs + idle_ns;
        const std::vector<Edge> ended{{reader, EdgeKind::lifecycle, 100, exit(reader, end, !both)}};
        job.add(middle, {.kind = OpKind::join,
                         .begin = 100,
                         .duration = end - 100 + 1'000,
                         .result = 1,
                         .peer = reader,
                         .edges = ended});
        exit(middle, end + 2'000, false);
        return job.finish();
    }
    HelperPlan plan() {
        const LogReader log = build();
        return make_plan(log, OpFilter::all(), PathMap{}).helpers;
    }

private:
    void read(TaskId task, HandleId handle, int fd, int64_t begin, int64_t duration, int64_t i) {
        job.add(task, {.kind = OpKind::pread,
                       .begin = begin,
                       .duration = duration,
                       .result = kMiB,
                       .handle = handle,
                       .fd = fd,
                       .offset = i * kMiB,
                       .size = kMiB});
    }
    uint64_t exit(TaskId task, int64_t begin, bool by_itself) {
        return job.add(task, {.kind = OpKind::exit,
                              .begin = begin,
                              .duration = 1,
                              .result = by_itself ? 0 : result,
                              .arg = by_itself ? 0 : 128 + signal});
    }
};

}  // namespace

TEST_CASE("helpers: sleeps of one length with little between them are a series") {
    Heartbeat job;
    SUBCASE("a heartbeat") { CHECK(job.series() == Ranges{{1, 39}}); }
    SUBCASE("two are none") {
        job.beats = 2;
        CHECK(job.series().empty());
    }
    SUBCASE("of other lengths each") {
        job.longer_ns = 60 * kMs;
        CHECK(job.series().empty());
    }
    SUBCASE("with work between") {
        job.write_ns = 40 * kMs;
        CHECK(job.series().empty());
    }
    SUBCASE("that yield the processor") {
        job.sleep_ns = kMs / 2;
        job.write_ns = 1'000;
        CHECK(job.series().empty());
    }
    SUBCASE("a rate limiter moves the data") {
        job.line = kMiB;
        CHECK(job.series().empty());
    }
    SUBCASE("a rate limiter does most of the calls") {
        job.reads = 0;
        CHECK(job.series().empty());
    }
}

TEST_CASE("helpers: what goes on without the others is told from what did so in the recording") {
    Heartbeat job;
    job.line = 1 << 14;  // more than a sampler writes
    SUBCASE("the others are faster") {
        const Prediction found = at_once(job.build());
        CHECK(static_cast<double>(found.helpers.beats_ns) / kMs == doctest::Approx(2'000).epsilon(0.01));
        CHECK(found.helpers.cut_ns == 0);
        CHECK(
            poor(found) ==
            "for 2.00 s of the 2.00 s nothing went on but sleeps one after the other, beside which others worked when "
            "recorded: the job would be done earlier here");
        CHECK(!found.interval);
    }
    SUBCASE("one that only samples ends with them") {
        job.line = 24;
        const Prediction found = at_once(job.build());
        CHECK(found.helpers.beats_ns == 0);
        CHECK(poor(found).empty());
        CHECK(found.elapsed_ns < 150 * kMs);  // with its next look
    }
    SUBCASE("it did not end with them when recorded, either") {
        job.reads = 12;
        const Prediction found = at_once(job.build());
        CHECK(found.helpers.beats_ns == 0);
        CHECK(poor(found).empty());
        REQUIRE(found.interval);
        CHECK(found.interval->low_ns > found.elapsed_ns - 50 * kMs);
    }
    SUBCASE("it was alone for a part, and a few of its sleeps are too many") {
        job.reads = 19;
        job.read_ns = 104 * kMs;
        job.beats = 20;
        const Prediction found = at_once(job.build());
        CHECK(static_cast<double>(found.helpers.beats_ns) / kMs == doctest::Approx(19 * 104).epsilon(0.01));
    }
}

TEST_CASE("helpers: a timer thread that wakes a worker now and then goes on where the others have ended") {
    const auto found = [](bool wakes, int count) {
        const TempDir dir;
        JobBuilder job(dir / "job.oplog");
        const ProcessId process = job.process();
        const TaskId main = job.task(process), timer = job.task(process), worker = job.task(process);
        const FileId data = job.file("/data/in"), log = job.file("/data/log", Origin::created);
        const HandleId in = job.inherited(data, process, 3), out = job.inherited(log, process, 4, O_WRONLY);
        for (int i = 0; i < 20; ++i) {
            job.add(main, {.kind = OpKind::pread,
                           .begin = 100 + i * 100 * kMs,
                           .duration = 100 * kMs,
                           .result = kMiB,
                           .handle = in,
                           .fd = 3,
                           .size = kMiB});
        }
        std::vector<uint64_t> ticks;
        std::vector<int64_t> times;
        int64_t at = 100;
        for (int i = 0; i < count; ++i) {
            // Of several lengths, as timers are; the work of those that look whether they may end is theirs alone.
            const int64_t wait = (i % 2 == 0 ? 60 : 140) * kMs;
            job.add(timer,
                    {.kind = OpKind::wait, .begin = at, .duration = wait, .result = -ETIMEDOUT, .arg = kWaitFutex});
            at += wait;
            ticks.push_back(
                job.add(timer, {.kind = OpKind::compute, .begin = at, .duration = kMs / 2, .flags = kComputeWorks}));
            times.push_back(at + kMs / 2);
            at += kMs / 2;
        }
        for (size_t i = 0; wakes && i < ticks.size(); ++i) {
            const std::vector<Edge> edges{{timer, EdgeKind::wake, 100, ticks[i]}};
            const int64_t from = i == 0 ? 100 : times[i - 1] + kMs;
            job.add(
                worker,
                {.kind = OpKind::wait, .begin = from, .duration = times[i] - from, .arg = kWaitFutex, .edges = edges});
            job.add(worker, {.kind = OpKind::pwrite,
                             .begin = times[i] + 1'000,
                             .duration = 10'000,
                             .result = 100,
                             .handle = out,
                             .fd = 4,
                             .offset = static_cast<int64_t>(i) * 100,
                             .size = 100});
        }
        return at_once(job.finish());
    };
    SUBCASE("it wakes another") {
        const Prediction sum = found(true, 20);
        CHECK(sum.helpers.beats_ns == 0);
        CHECK(static_cast<double>(sum.helpers.timers_ns) / kMs == doctest::Approx(2'000).epsilon(0.05));
        CHECK(
            poor(sum) ==
            "for 1.98 s of the 2.01 s nothing went on but sleeps one after the other, beside which others worked when "
            "recorded: the job would be done earlier here");
    }
    SUBCASE("two time-outs show no timer") { CHECK(found(true, 2).helpers.timers_ns == 0); }
}

TEST_CASE("helpers: sleeps between which as much is moved may limit a rate") {
    Heartbeat job;
    job.line = kMiB;
    const auto limited = [&] {
        const LogReader log = job.build();
        return make_plan(log, OpFilter::all(), PathMap{}).helpers.limited_ns;
    };
    SUBCASE("a limiter") { CHECK(limited() == 20 * 100 * kMs); }
    SUBCASE("by time-outs of select(), as pv and rsync") {
        job.wait = kWaitPoll;
        CHECK(limited() == 20 * 100 * kMs);
    }
    SUBCASE("now and then a little more") {
        job.more = kMiB / 4;
        CHECK(limited() == 20 * 100 * kMs);
    }
    SUBCASE("samples of any size, and sleeps in place of compute") {
        job.more = kMiB;
        CHECK(limited() == 0);
    }
    SUBCASE("a few sleeps") {
        job.beats = 7;
        CHECK(limited() == 0);
    }
    SUBCASE("a heartbeat") {
        job.line = 24;
        CHECK(limited() == 0);
    }
    HelperFindings found;
    found.limited_ns = 2'000 * kMs;
    CHECK(limits_rate(found, 1'500 * kMs, 2'000 * kMs, 2'050 * kMs).empty());  // here as recorded
    CHECK(limits_rate(found, 100 * kMs, 2'000 * kMs, 1'000 * kMs).empty());    // few of them on the path
    CHECK(limits_rate(found, 1'500 * kMs, 2'500 * kMs, 2'000 * kMs) ==
          "1.50 s are sleeps between which a task moves as much each time: if they limit a rate (pv -L, rsync "
          "--bwlimit), "
          "they would be shorter here");
    CHECK(limits_rate(found, 1'500 * kMs, 1'600 * kMs, 2'000 * kMs).ends_with("they would be longer here"));
    CHECK(kept_by_limit(found, 1'500 * kMs, 2'500 * kMs, 2'000 * kMs) == 500 * kMs);
    CHECK(kept_by_limit(found, 300 * kMs, 2'500 * kMs, 2'000 * kMs) == 300 * kMs);
    CHECK(kept_by_limit(found, 1'500 * kMs, 1'500 * kMs, 2'000 * kMs) == 0);
}

TEST_CASE("helpers: a process that a signal ended while it worked") {
    Killed job;
    SUBCASE("both of them") {
        const HelperPlan plan = job.plan();
        CHECK(plan.processes == 2);
        CHECK(plan.signal == SIGTERM);
        CHECK(plan.is_cut(job.reader));
        CHECK(plan.is_cut(job.middle));
        CHECK_FALSE(plan.is_cut(job.top));
    }
    SUBCASE("by a timer of its own") {
        job.signal = SIGALRM;
        CHECK(job.plan().signal == SIGALRM);
    }
    SUBCASE("what it had started belongs to it") {
        job.both = false;
        const HelperPlan plan = job.plan();
        CHECK(plan.processes == 1);
        CHECK(plan.is_cut(job.reader));
    }
    SUBCASE("its own exit with such a code") {
        job.result = 0;
        CHECK(job.plan().processes == 0);
    }
    SUBCASE("at what it did itself") {
        job.signal = SIGPIPE;
        CHECK(job.plan().processes == 0);
    }
    SUBCASE("it had nothing to do any more") {
        job.idle_ns = 100 * kMs;
        const HelperPlan plan = job.plan();
        CHECK(plan.processes == 0);
        CHECK_FALSE(plan.is_cut(job.reader));
    }
    SUBCASE("it got its work from others") {
        job.driven_at = 300 * kMs;
        const HelperPlan plan = job.plan();
        CHECK(plan.processes == 2);
        CHECK(plan.tasks[job.reader].cut_from > 300 * kMs);
        CHECK(plan.tasks[job.reader].cut_from < 320 * kMs);
    }
}

TEST_CASE("helpers: work until a signal came is told by its weight") {
    Killed job;
    SUBCASE("all of it") {
        const Prediction found = at_once(job.build());
        CHECK(found.helpers.cut_share > 0.9);
        CHECK(
            ended_by_signal(found.helpers) ==
            "2 processes were ended by a signal (SIGTERM): the replay does what was done until then, however long that "
            "takes");
        // It ended at once, and the real one not before the signal.
        CHECK(poor(found).starts_with("2 processes were ended"));
    }
    SUBCASE("hardly any") {
        job.others_bytes = 600 * kMiB;
        job.others_ns = 10 * kMs;
        CHECK(ended_by_signal(at_once(job.build()).helpers).empty());
    }
    SUBCASE("bytes count, too") {
        job.others_bytes = 100 * kMiB;
        job.others_ns = 100 * kMs;
        CHECK(at_once(job.build()).helpers.cut_share == doctest::Approx(50.0 / 150));
    }
}

TEST_CASE("helpers: what goes on at a time, in steps that get longer") {
    Goings goings;
    goings.add(Goings::beats, 0, 100 * kMs);
    goings.add(Goings::work, 20 * kMs, 50 * kMs);
    goings.add(Goings::work, 30 * kMs, 60 * kMs);  // both at once
    CHECK(goings.alone(Goings::beats) == 60 * kMs);
    CHECK(goings.alone(Goings::cut) == 0);
    goings.add(Goings::cut, 100'000 * kMs, 110'000 * kMs);
    CHECK(static_cast<double>(goings.alone(Goings::beats)) / kMs == doctest::Approx(60).epsilon(0.2));
    CHECK(static_cast<double>(goings.alone(Goings::cut)) / kMs == doctest::Approx(10'000).epsilon(0.01));
    goings.add(Goings::work, 0, INT64_MAX);
    CHECK(goings.alone(Goings::cut) == 0);
    goings.add(Goings::work, 5, 5);
    goings.add(Goings::work, INT64_MIN, -1);
}

}  // namespace reprise::test
