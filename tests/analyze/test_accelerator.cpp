// SPDX-License-Identifier: MIT
// Busy time, utilisation and stall of accelerators, on small queues whose answers are known.
#include "analyze/accelerator.h"

#include <nlohmann/json.hpp>
#include <random>

#include "analyze/summary.h"
#include "formats/oplog/oplog.h"
#include "tests/support.h"

using namespace reprise;
using reprise::test::TempDir;

namespace {

class Feed {
public:
    Feed() {
        tables_.processes.push_back({10, 0, 0, 0});
        tables_.processes.push_back({11, 0, 0, 0});
        tables_.tasks.push_back({1, 10, 0});  // 1
        tables_.tasks.push_back({2, 11, 0});  // 2
        tables_.tasks.push_back({1, 12, 0});  // 3: a second thread of the first process
        epoch_ = tables_.strings.intern("epoch");
        step_ = tables_.strings.intern("step");
        accelerator_ = tables_.strings.intern("accelerator");
        tracker_.emplace(tables_);
    }
    void submit(TaskId task, int64_t at, int64_t busy, int64_t device = 0, int64_t stream = 0) {
        Op op;
        op.kind = OpKind::gpu_submit;
        op.begin = at;
        op.size = busy;
        op.arg = device;
        op.flags = stream;
        tracker_->add(task, op);
    }
    void epoch(TaskId task, int64_t at, int64_t number, bool begin) { mark(task, at, epoch_, number, begin); }
    void accelerator(TaskId task, int64_t at, bool begin) { mark(task, at, accelerator_, 0, begin); }
    void step(TaskId task, int64_t at, bool begin) { mark(task, at, step_, -1, begin); }
    std::vector<DeviceUtilisation> finish(int64_t begin, int64_t end) { return tracker_->finish(begin, end); }

private:
    void mark(TaskId task, int64_t at, StringId text, int64_t number, bool begin) {
        Op op;
        op.kind = OpKind::marker;
        op.begin = at;
        op.text = text;
        op.arg = number;
        op.flags = begin ? 1 : 2;
        tracker_->add(task, op);
    }
    Tables tables_;
    StringId epoch_ = 0, step_ = 0, accelerator_ = 0;
    std::optional<AcceleratorTracker> tracker_;
};

}  // namespace

TEST_CASE("work queues behind earlier work; busy is their union") {
    Feed feed;
    feed.submit(1, 100, 50);
    feed.submit(3, 120, 50);  // waits until 150
    feed.submit(1, 300, 10);
    const auto devices = feed.finish(0, 400);
    REQUIRE(devices.size() == 1);
    CHECK(devices[0].busy == 110);
    CHECK(devices[0].first_work == 100);
    CHECK(devices[0].last_work == 310);
    CHECK(devices[0].stall() == 100);
    CHECK(*devices[0].au() == doctest::Approx(110.0 / 400));
    CHECK(*devices[0].au_mlperf() == doctest::Approx(60.0 / 160));  // from 150 to 310
}

TEST_CASE("processes and devices are kept apart; a run ends with its last work") {
    Feed feed;
    feed.submit(1, 0, 10, 0);
    feed.submit(1, 0, 30, 1);
    feed.submit(2, 0, 100, 0);
    const auto devices = feed.finish(0, 50);
    REQUIRE(devices.size() == 3);
    CHECK(devices[0].busy == 10);
    CHECK(devices[1].device == 1);
    CHECK(devices[1].busy == 30);
    CHECK(devices[2].process == 2);
    CHECK(devices[2].end == 100);
    CHECK(*devices[2].au() == 1);
    CHECK_FALSE(devices[2].au_mlperf());  // one step only
}

TEST_CASE("work queued across the borders of epochs is shared out") {
    Feed feed;
    feed.epoch(1, 0, 0, true);
    feed.submit(1, 10, 20);  // 10..30
    feed.submit(1, 40, 80);  // 40..120: 60 in epoch 0
    feed.epoch(1, 100, 0, false);
    feed.epoch(1, 105, 1, true);  // 15 of it in epoch 1
    feed.submit(1, 110, 30);      // 120..150
    feed.submit(1, 180, 10);
    feed.epoch(1, 200, 1, false);
    feed.epoch(1, 210, 2, true);
    feed.submit(1, 220, 5);
    const auto devices = feed.finish(0, 300);
    REQUIRE(devices.size() == 1);
    const auto& epochs = devices[0].epochs;
    REQUIRE(epochs.size() == 3);
    CHECK(epochs[0].number == 0);
    CHECK(epochs[0].busy == 80);
    CHECK(epochs[0].last_work == 100);
    CHECK(*epochs[0].au() == doctest::Approx(0.8));
    CHECK(*epochs[0].au_mlperf() == doctest::Approx(60.0 / 70));
    CHECK(epochs[1].busy == 55);
    CHECK(epochs[1].first_work == 105);
    CHECK(*epochs[1].au() == doctest::Approx(55.0 / 95));
    CHECK(*epochs[1].au_mlperf() == doctest::Approx(10.0 / 40));  // from 150 to 190
    CHECK_FALSE(epochs[2].complete);
    CHECK(epochs[2].end == 300);
    CHECK(devices[0].busy == 145);
    // By MLPerf's rule a run is the mean of its epochs, whoever asks; one with a single step has no part in it.
    const double mean = (60.0 / 70 + 10.0 / 40) / 2;
    CHECK(*devices[0].au_mlperf() == doctest::Approx(mean));
    CHECK(*devices[0].au_after_first_step() != doctest::Approx(mean));
    const AcceleratorUse use{devices};
    CHECK(*use.au_mlperf() == doctest::Approx(mean));
    CHECK(devices_json(use, Tables())[0]["au_mlperf"].get<double>() == doctest::Approx(mean));
}

TEST_CASE("where steps are marked, the first step is all work submitted in it") {
    Feed feed;
    feed.epoch(1, 0, 0, true);
    feed.step(1, 0, true);
    feed.step(1, 5, false);  // a step that submitted nothing is none
    feed.step(1, 5, true);
    feed.submit(1, 10, 10);
    feed.submit(1, 12, 10);  // 20..30
    feed.step(1, 40, false);
    feed.step(1, 40, true);
    feed.submit(1, 50, 20);
    feed.step(1, 80, false);
    feed.epoch(1, 100, 0, false);
    const auto devices = feed.finish(0, 100);
    REQUIRE(devices[0].epochs.size() == 1);
    CHECK(*devices[0].epochs[0].au_mlperf() == doctest::Approx(20.0 / 40));  // from 30 to 70
    CHECK(*devices[0].au_mlperf() == doctest::Approx(20.0 / 40));
}

TEST_CASE("hostile times and sizes neither overflow nor divide by zero") {
    Feed feed;
    constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
    feed.epoch(1, least, 0, true);
    feed.submit(1, least, most);
    feed.submit(1, 0, -5);
    feed.submit(1, most, most);
    feed.epoch(1, most, 0, false);
    feed.epoch(1, 0, 7, false);
    feed.submit(99, 0, 1);  // no such task
    for (const DeviceUtilisation& device : feed.finish(least, most)) {
        (void)device.au();
        (void)device.au_mlperf();
        (void)device.stall();
    }
}

TEST_CASE("streams of a device work side by side; time both work counts once") {
    Feed feed;
    feed.submit(1, 0, 50, 0, 1);    // 0..50
    feed.submit(1, 20, 50, 0, 2);   // 20..70
    feed.submit(1, 30, 30, 0, 1);   // behind the first of its stream: 50..80
    feed.submit(1, 35, 100, 0, 3);  // 35..135, all over the others
    feed.submit(1, 200, 10, 0, 2);  // 200..210
    feed.submit(1, 201, 4, 0, 3);   // inside
    const auto devices = feed.finish(0, 300);
    REQUIRE(devices.size() == 1);
    CHECK(devices[0].busy == 145);
    CHECK(devices[0].stall() == 65);
    CHECK(devices[0].last_work == 210);
}

TEST_CASE("work of a stream that runs far ahead leaves room for another's before it") {
    Feed feed;
    feed.submit(1, 0, 10, 0, 1);
    feed.submit(1, 0, 10, 0, 1);
    feed.submit(1, 1, 100, 0, 2);  // 1..101
    feed.submit(1, 50, 10, 0, 1);  // 50..60, inside
    feed.submit(1, 90, 20, 0, 1);  // 90..110
    const auto devices = feed.finish(0, 110);
    CHECK(devices[0].busy == 110);
    CHECK(devices[0].stall() == 0);
}

TEST_CASE("steps are marks, else spans of the accelerator, else submissions") {
    Feed feed;
    const auto lengths = [&](int64_t end) { return feed.finish(0, end).at(0).steps; };
    for (int64_t at = 0; at < 10'000; at += 100) {
        feed.submit(1, at, 50);
    }
    SUBCASE("submissions") {
        const StepTimes steps = lengths(10'000);
        CHECK(steps.rule == StepRule::submission);
        CHECK(steps.lengths.count() == 99);
        CHECK(steps.lengths.percentile(0.5) == 100);
    }
    SUBCASE("spans, then marks") {
        for (int64_t at = 10'000; at < 10'800; at += 200) {
            feed.submit(1, at, 50);
            feed.accelerator(1, at + 50, false);
            feed.accelerator(1, at + 60, false);  // nothing was done since: no step
        }
        StepRule rule = StepRule::span;
        SUBCASE("spans only") {}
        SUBCASE("and marks") {
            for (int64_t at = 11'000; at < 11'800; at += 200) {
                feed.submit(1, at, 50);
                feed.accelerator(1, at + 50, false);
                feed.step(1, at + 70, false);
            }
            rule = StepRule::mark;
        }
        const StepTimes steps = lengths(12'000);
        CHECK(steps.rule == rule);
        CHECK(steps.lengths.count() == 3);
        CHECK(steps.lengths.max() == 200);
        CHECK(steps.lengths.min() == 200);
    }
}

TEST_CASE("the time between epochs is no step's") {
    Feed feed;
    feed.epoch(1, 0, 0, true);
    feed.submit(1, 0, 10);
    feed.submit(1, 20, 10);
    feed.epoch(1, 40, 0, false);
    feed.epoch(1, 1000, 1, true);
    feed.submit(1, 1000, 10);
    feed.submit(1, 1020, 10);
    const auto devices = feed.finish(0, 2000);
    CHECK(devices[0].steps.lengths.count() == 2);
    CHECK(devices[0].steps.lengths.max() == 20);
}

namespace {

bool same(const Utilisation& a, const Utilisation& b) {
    return a.begin == b.begin && a.end == b.end && a.submits == b.submits && a.busy == b.busy &&
           a.first_work == b.first_work && a.last_work == b.last_work && a.later_busy == b.later_busy &&
           a.later_elapsed == b.later_elapsed;
}

}  // namespace

TEST_CASE("an observer of a run says what the summary of its log says, tasks in any order") {
    const TempDir dir;
    std::mt19937_64 random(7);
    for (int round = 0; round < 20; ++round) {
        CAPTURE(round);
        LogWriter log(dir / "a.oplog", Header(), {.sync = false});
        const StringId marks[] = {log.intern("epoch"), log.intern("step"), log.intern("accelerator"),
                                  log.intern("other")};
        const ProcessId processes[] = {log.add_process({.pid = 1}), log.add_process({.pid = 2})};
        std::vector<std::pair<TaskId, Op>> ops;
        for (int t = 0; t < 4; ++t) {
            const TaskId task = log.add_task({.process = processes[t % 2]});
            int64_t at = static_cast<int64_t>(random() % 50);
            for (int i = 0; i < 60; ++i) {
                Op op;
                op.begin = at += static_cast<int64_t>(random() % 3) * 20;  // often at the same time as another task's
                op.duration = static_cast<int64_t>(random() % 30);
                op.kind = random() % 3 == 0 ? OpKind::marker : random() % 3 == 0 ? OpKind::compute : OpKind::gpu_submit;
                if (op.kind == OpKind::marker) {
                    op.text = marks[random() % 4];
                    op.flags = static_cast<int64_t>(1 + random() % 2);
                    op.arg = static_cast<int64_t>(random() % 3);
                } else if (op.kind == OpKind::gpu_submit) {
                    op.size = static_cast<int64_t>(random() % 100);
                    op.arg = static_cast<int64_t>(random() % 2);
                    op.flags = static_cast<int64_t>(random() % 2);
                }
                log.append(task, op);
                ops.emplace_back(task, op);
            }
        }
        AcceleratorObserver observer(log.tables());
        const bool backwards = round % 2 == 1;
        for (TaskId i = 1; i <= 4; ++i) {
            for (const auto& [task, op] : ops) {
                if (task == (backwards ? 5 - i : i)) {
                    observer.add(task, op);
                }
            }
        }
        const AcceleratorUse use = observer.finish();
        log.finish();
        const Summary summary = summarize(LogReader(dir / "a.oplog"));
        REQUIRE(use.devices.size() == summary.devices.size());
        CHECK(use.devices.size() == 4);
        for (size_t i = 0; i < use.devices.size(); ++i) {
            const DeviceUtilisation &a = use.devices[i], &b = summary.devices[i];
            CHECK(a.process == b.process);
            CHECK(a.device == b.device);
            CHECK(same(a, b));
            CHECK(a.steps.rule == b.steps.rule);
            CHECK(a.steps.lengths.count() == b.steps.lengths.count());
            CHECK(a.steps.lengths.sum() == b.steps.lengths.sum());
            REQUIRE(a.epochs.size() == b.epochs.size());
            for (size_t e = 0; e < a.epochs.size(); ++e) {
                CHECK(same(a.epochs[e], b.epochs[e]));
                CHECK(a.epochs[e].number == b.epochs[e].number);
            }
        }
        CHECK(use.au() == summary.au());
        CHECK(use.au_mlperf() == summary.au_mlperf());
        CHECK(use.stall() == summary.stall());
    }
}

TEST_CASE("a stretch without length has no utilisation") {
    Utilisation use;
    use.begin = 5;
    use.busy = use.later_busy = 1;
    for (const int64_t end : {4, 5}) {
        use.end = end;
        CHECK_FALSE(use.au());
    }
    use.end = 7;
    CHECK(*use.au() == 0.5);
    CHECK_FALSE(use.au_after_first_step());
    use.later_elapsed = 4;
    CHECK(*use.au_after_first_step() == 0.25);
}
