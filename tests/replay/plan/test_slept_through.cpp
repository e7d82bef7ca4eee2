// SPDX-License-Identifier: MIT
// A thread that is done while another sleeps, for which nobody waits otherwise.
#include "replay/plan/slept_through.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

/// `while not done: sleep(0.1)` beside a thread that reads.
struct Sleeper {
    int reads = 16;
    bool joined = false;        // the sleeper waits for the thread afterwards
    bool process = false;       // not a thread: a process of its own
    int64_t read_ns = 4 * kMs;  // when recorded
    int64_t slept_class = kWaitSleep;

    Prediction predicted(int64_t read_here_ns) const {
        const TempDir dir;
        JobBuilder job{dir / "job.oplog"};
        const ProcessId parent = job.process();
        const ProcessId own = process ? job.process(parent) : parent;
        const TaskId main = job.task(parent), worker = job.task(own);
        job.add(main, {.kind = OpKind::spawn, .begin = 100, .duration = 1, .result = 1, .peer = worker});
        const HandleId in = job.inherited(job.file("/data/in"), own, 5);
        int64_t at = 200;
        uint64_t last = 0;
        for (int i = 0; i < reads; ++i, at += read_ns + 10) {
            last = job.add(worker, {.kind = OpKind::pread,
                                    .begin = at,
                                    .duration = read_ns,
                                    .result = 4096,
                                    .handle = in,
                                    .fd = 5,
                                    .offset = int64_t{i} << 20,
                                    .size = 4096});
        }
        job.add(main, {.kind = OpKind::wait, .begin = 300, .duration = 100 * kMs, .arg = slept_class});
        Op next{.kind = OpKind::compute, .begin = 101 * kMs, .duration = kMs};
        const Edge end{worker, EdgeKind::wake, 100, last};
        if (joined) {
            next.edges = {&end, 1};
        }
        job.add(main, next);
        const LogReader log = job.finish();
        PredictOptions options;
        options.storage.cold = true;
        options.storage.cached_bytes_per_s = 1e12;
        options.storage.read = {{4096, read_here_ns}};
        options.filter = OpFilter::all();
        return predict(log, options);
    }
};

}  // namespace

TEST_CASE("slept through: the thread is done later here than the sleep that it ended in when recorded") {
    const Prediction slow = Sleeper().predicted(20 * kMs);
    CHECK(slow.slept_through.sleeper == 1);
    CHECK(slow.slept_through.worker == 2);
    CHECK(slow.slept_through.late_ns / kMs == 220);  // 16 reads of 20 ms, 100 ms asleep
    const std::string words = slept_too_short(slow.slept_through, slow.elapsed_ns, kSomeShare);
    CHECK(words.starts_with("task 2 was done while task 1 slept when recorded, and 220 ms after that here"));
    StorageModel model;
    model.cold = true;
    CHECK(poor_reason(slow, model).find(words) != std::string::npos);
    CHECK(fair_reason(slow, {}).find(words) != std::string::npos);
    CHECK(slept_too_short(slow.slept_through, 10 * slow.elapsed_ns, kSomeShare).empty());
}

TEST_CASE("slept through: no doubt where the sleep is long enough, or something else tells that the thread is done") {
    CHECK(Sleeper().predicted(5 * kMs).slept_through.late_ns == 0);
    CHECK(Sleeper{.joined = true}.predicted(20 * kMs).slept_through.late_ns == 0);
    CHECK(Sleeper{.process = true}.predicted(20 * kMs).slept_through.late_ns == 0);
    CHECK(Sleeper{.slept_class = kWaitFutex}.predicted(20 * kMs).slept_through.late_ns == 0);
    CHECK(Sleeper{.reads = 7}.predicted(20 * kMs).slept_through.late_ns == 0);   // hardly any work
    CHECK(Sleeper{.reads = 40}.predicted(20 * kMs).slept_through.late_ns == 0);  // not done in the sleep
    CHECK(slept_too_short({1, 2, 5 * kMs}, 6 * kMs, 0.0).empty());               // noise
    CHECK_FALSE(slept_too_short({1, 2, 5 * kMs + 1}, 6 * kMs, 0.0).empty());
}

}  // namespace reprise::test
