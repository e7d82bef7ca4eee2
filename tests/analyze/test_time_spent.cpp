// SPDX-License-Identifier: MIT
// Where the time of tasks went: every part, and that they add up.
#include "analyze/time_spent.h"

#include <nlohmann/json.hpp>

#include "analyze/job_figures.h"
#include "analyze/summary.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

/// Files: 1 a dataset, 2 of /dev/shm; handles of the same numbers; two tasks.
Tables tables() {
    Tables tables;
    tables.processes.resize(2);
    tables.tasks.resize(3);
    tables.tasks[1].process = tables.tasks[2].process = 1;
    tables.files.resize(3);
    tables.files[1].role = Role::dataset;
    tables.files[2].role = Role::ipc;
    tables.handles.resize(3);
    tables.handles[1].file = 1;
    tables.handles[2].file = 2;
    return tables;
}

Op op(OpKind kind, int64_t begin, int64_t duration, int64_t arg = 0) {
    Op out;
    out.kind = kind;
    out.begin = begin;
    out.duration = duration;
    out.arg = arg;
    return out;
}

Op on(Op op, uint32_t handle, uint32_t map = 0) {
    op.handle = handle;
    op.map = map;
    return op;
}

void check_adds_up(const TimeSpent& time) {
    CHECK(time.compute + time.storage + time.accelerator + time.waits + time.rest() == time.total);
    CHECK(time.rest() >= 0);
}

}  // namespace

TEST_CASE("time spent: each kind of op has its part, and the rest is what no part takes") {
    const Tables of = tables();
    TimeSpentCounter counter(of);
    counter.add(1, op(OpKind::compute, 100, 10));
    counter.add(1, on(op(OpKind::pread, 120, 30), 1));
    counter.add(1, op(OpKind::wait, 150, 5, kWaitFutex));
    counter.add(1, op(OpKind::wait, 155, 7, kWaitWokeOthers));  // a call, not a wait
    counter.add(1, op(OpKind::gpu_wait, 170, 20));
    counter.add(1, op(OpKind::spawn, 190, 4));
    counter.add(1, op(OpKind::receive, 194, 6));
    counter.add(2, op(OpKind::idle, 0, 50));
    counter.add(2, op(OpKind::wait, 50, 50, kWaitSleep));
    const TimeSpent time = counter.result();
    CHECK(time.compute == 10);
    CHECK(time.storage == 30);
    CHECK(time.accelerator == 20);
    CHECK(time.waits == 5 + 6 + 50 + 50);
    CHECK(time.total == 100 + 100);
    CHECK(time.rest() == 10 + 7 + 8 + 4);
    check_adds_up(time);
    CHECK(to_json(time).dump() == R"({"compute_ns":10,"storage_ns":30,"accelerator_ns":20,"other_waits_ns":111,)"
                                  R"("rest_ns":29,"total_ns":200})");
}

TEST_CASE("time spent: memory is not storage, whether it has no file or one of /dev/shm") {
    const Tables of = tables();
    TimeSpentCounter counter(of);
    counter.add(1, on(op(OpKind::read, 0, 1), 2));
    counter.add(1, on(op(OpKind::mmap, 10, 1), 2, 5));
    counter.add(1, on(op(OpKind::touch, 20, 1), 0, 5));
    counter.add(1, on(op(OpKind::mmap, 30, 1), 0, 6));
    counter.add(1, on(op(OpKind::munmap, 40, 1), 0, 6));
    CHECK(counter.result().storage == 0);
    counter.add(1, on(op(OpKind::mmap, 50, 1), 1, 7));
    Op touch = on(op(OpKind::touch, 60, 100), 0, 7);
    const int64_t parts[] = {0, 4096, 4096, 8192};
    touch.list = parts;
    counter.add(1, touch);
    CHECK(counter.bytes_touched() == 12288);
    counter.add(1, op(OpKind::stat, 160, 1000));  // of no file that the tables know
    CHECK(counter.result().storage == 1 + 100 + 1000);
    check_adds_up(counter.result());
}

TEST_CASE("time spent: ops that overlap count once, and hostile times do not overflow") {
    const Tables of = tables();
    TimeSpentCounter counter(of);
    counter.add(1, on(op(OpKind::uring_submit, 0, 100), 1));
    counter.add(1, on(op(OpKind::uring_submit, 10, 50), 1));
    counter.add(1, op(OpKind::compute, 90, 20));
    CHECK(counter.result().storage == 100);
    CHECK(counter.result().compute == 10);
    CHECK(counter.result().total == 110);
    check_adds_up(counter.result());
    counter.add(2, op(OpKind::compute, INT64_MIN, INT64_MAX));
    counter.add(2, op(OpKind::compute, INT64_MAX - 1, INT64_MAX));
    counter.add(3, op(OpKind::compute, 0, 1));  // no such task
    CHECK(counter.result().total == INT64_MAX);
}

TEST_CASE("figures counted op by op are those of the log") {
    const test::TempDir dir;
    const auto check = [&](const std::filesystem::path& path) {
        const LogReader log(path);
        FigureCounter counter(log.tables());
        for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
            log.for_each(task, [&](const Op& op, uint64_t) { counter.add(task, op); });
        }
        JobFigures counted = counter.finish();
        const JobFigures summed = job_figures(summarize(log));
        counted.elapsed = summed.elapsed;
        counted.au = summed.au;
        counted.busy = summed.busy;
        counted.stall = summed.stall;
        CHECK(to_json(counted).dump() == to_json(summed).dump());
        check_adds_up(summed.time);
        return summed;
    };
    test::write_sample(dir / "sample.oplog");
    const JobFigures sample = check(dir / "sample.oplog");
    CHECK(sample.bytes_read == 6 * 4096 + 4 * 16384);
    CHECK(sample.bytes_touched == 8192);
    CHECK(sample.reads.count == 10);
    CHECK(sample.writes.count == 1);
    CHECK(sample.time.accelerator > 0);
    test::write_all_ops(dir / "all.oplog");
    check(dir / "all.oplog");
    for (const char* name : {"resnet.oplog", "bert.oplog", "py_loader_4workers.oplog"}) {
        check(test::source_dir() / "examples" / "recorded" / name);
    }
}

TEST_CASE("time spent: a mapping may be touched in one task before another, which made it, is seen") {
    const Tables of = tables();
    TimeSpentCounter counter(of);
    Op touch = on(op(OpKind::touch, 20, 100), 0, 5);
    touch.size = 77;
    counter.add(1, touch);
    CHECK(counter.bytes_touched() == 0);
    counter.add(1, on(op(OpKind::touch, 120, 10), 0, 6));
    counter.add(1, on(op(OpKind::touch, 130, 1), 0, 7));
    CHECK(counter.result().storage == 0);
    counter.add(2, on(op(OpKind::mmap, 0, 1000), 1, 5));
    counter.add(2, on(op(OpKind::mmap, 1000, 10000), 2, 6));
    CHECK(counter.result().storage == 100 + 1000);
    CHECK(counter.bytes_touched() == 77);
    check_adds_up(counter.result());
}
