// SPDX-License-Identifier: MIT
// Tasks that wrote one after another when recorded, and at the same time on slower storage.
#include "replay/plan/serial_writers.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>

#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

/// A program that starts a thread every 100 ms, each of which writes a file and syncs it, or writes by a request.
struct Savers {
    int savers = 4, writes = 1;
    bool requests = false;
    int64_t sync_ns = 5 * kMs;  // when recorded

    LogReader log(const TempDir& dir) const {
        JobBuilder job{dir / "job.oplog"};
        const ProcessId process = job.process();
        const TaskId main = job.task(process);
        std::vector<TaskId> threads;
        threads.reserve(static_cast<size_t>(savers));
        for (int i = 0; i < savers; ++i) {
            threads.push_back(job.task(process));
        }
        int64_t at = 100;
        for (const TaskId thread : threads) {
            job.add(main, {.kind = OpKind::compute, .begin = at, .duration = 100 * kMs});
            at += 100 * kMs;
            job.add(main, {.kind = OpKind::spawn, .begin = at, .duration = 1, .result = 1, .peer = thread});
            const auto fd = static_cast<int32_t>(10 + thread);
            const FileId file = job.file("/data/out" + std::to_string(thread), Origin::created);
            const HandleId out = job.inherited(file, process, fd, O_WRONLY | (requests ? O_DIRECT : 0));
            int64_t then = at + 10;
            for (int i = 0; i < writes; ++i, then += sync_ns + 20) {
                if (requests) {
                    const auto request = static_cast<uint32_t>(thread * 100 + i);
                    job.add(thread, {.kind = OpKind::aio_submit,
                                     .begin = then,
                                     .duration = 5,
                                     .handle = out,
                                     .fd = fd,
                                     .size = 4096,
                                     .arg = IOCB_CMD_PWRITE,
                                     .request = request});
                    job.add(thread, {.kind = OpKind::aio_reap,
                                     .begin = then + 10,
                                     .duration = sync_ns,
                                     .result = 1,
                                     .size = 1,
                                     .arg = 1});
                    job.add(thread, {.kind = OpKind::aio_complete,
                                     .begin = then + 10 + sync_ns,
                                     .result = 4096,
                                     .size = 4096,
                                     .request = request});
                    continue;
                }
                job.add(thread, {.kind = OpKind::write,
                                 .begin = then,
                                 .duration = 5,
                                 .result = 4096,
                                 .handle = out,
                                 .fd = fd,
                                 .size = 4096});
                job.add(thread,
                        {.kind = OpKind::fsync, .begin = then + 10, .duration = sync_ns, .handle = out, .fd = fd});
            }
            at += 10;
        }
        return job.finish();
    }
    Prediction predicted(int64_t fsync_ns) const {
        const TempDir dir;
        PredictOptions options;
        options.storage.cold = true;
        options.storage.cached_bytes_per_s = 1e12;
        options.storage.read = options.storage.write = {{4096, 0}};
        options.storage.fsync_ns = fsync_ns;
        options.filter = OpFilter::all();
        return predict(log(dir), options);
    }
    /// What a run finds in which requests are done `longer` ns later than recorded.
    SerialWriters::Findings found(int64_t longer) const {
        const TempDir dir;
        const LogReader recorded = log(dir);
        const Plan plan = make_plan(recorded, OpFilter::all(), PathMap{});
        SerialWriters writers(plan);
        OpBlock block;
        for (const BlockInfo& where : recorded.blocks()) {
            recorded.decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                const bool done = info(static_cast<OpKind>(block.kind[i])).is(Trait::completes);
                const int64_t begin = block.begin[i] + (done ? longer : 0);
                writers.see(block.task, block, i, begin, begin + block.duration[i]);
            }
        }
        return writers.finish();
    }
};

}  // namespace

TEST_CASE("serial writers: savers pile up where a sync takes longer") {
    const Savers job;
    const Prediction slow = job.predicted(300 * kMs);
    CHECK(slow.serial_writers.tasks == 4);
    CHECK(slow.serial_writers.together_ns / kMs == 400);  // of 600: not the first and the last 100
    const std::string words = write_together(slow.serial_writers, slow.elapsed_ns);
    CHECK(
        words.starts_with("4 tasks that wrote one after another when recorded write at the same time for 400 ms here"));
    CHECK(fair_reason(slow, {}).find(words) != std::string::npos);
    StorageModel model;
    model.cold = true;
    CHECK(slow.shares_otherwise);
    CHECK(poor_reason(slow, model).find(words) != std::string::npos);
    CHECK(write_together(slow.serial_writers, 10 * slow.elapsed_ns).empty());
}

TEST_CASE("serial writers: so do those that write by requests") {
    const Savers job{.requests = true};
    CHECK(job.found(295 * kMs).tasks == 4);
    CHECK(job.found(295 * kMs).together_ns / kMs == 400);
    CHECK(job.found(50 * kMs).together_ns == 0);
}

TEST_CASE("serial writers: nothing is said where") {
    Savers job;
    int64_t fsync_ns = 300 * kMs;
    SUBCASE("they still do") { fsync_ns = 50 * kMs; }
    SUBCASE("they are few") { job.savers = 2, job.writes = 5; }
    SUBCASE("they do little") { job.savers = 3; }
    SUBCASE("they overlapped when recorded") { job.sync_ns = 150 * kMs; }
    CHECK(job.predicted(fsync_ns).serial_writers.together_ns == 0);
}

}  // namespace reprise::test
