// SPDX-License-Identifier: MIT
// What tasks do with the same things stays in order where pieces of a recording are joined.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "tests/transform/scaled_job.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int kBatches = 30, kInBatch = 4, kEpochs = 2;

/// A loader process as PyTorch has them: its main thread reads a batch and writes it to a file in /dev/shm; its feeder
/// thread takes that over without a call, sends the descriptor, and is done with it. The trainer maps what it got. The
/// loader falls back from batch to batch, so that it is further behind at the end of an epoch than at its begin.
struct FeederJob : ScaledJob {
    enum class Wakes : uint8_t { all, some, none };
    ProcessId trainers = job.process(), loaders = job.process(trainers);
    TaskId main = job.task(trainers), reader = job.task(loaders), feeder = job.task(loaders);
    std::vector<FileId> files;
    HandleId pipe = 0;
    uint32_t maps = 0;
    int made = 0;

    explicit FeederJob(Wakes wakes) {
        for (int i = 0; i < kBatches * kInBatch; ++i) {
            files.push_back(sized("/data/" + std::to_string(i) + ".bin", 4'000));
        }
        const HandleId in = job.handle(0, 0, HandleKind::pipe);
        pipe = job.handle(0, 0, HandleKind::pipe);
        job.add(main, {.kind = OpKind::pipe, .handle = in, .fd = 50, .handle2 = pipe, .fd2 = 51, .arg = kPipe});
        spawn(main, reader);
        spawn(reader, feeder);
        std::mt19937 random(3);
        for (int epoch = 0; epoch < kEpochs; ++epoch) {
            std::shuffle(files.begin(), files.end(), random);
            const int64_t start = (1 + epoch) * 1000 * kMs;
            for (int i = 0; i < kBatches; ++i) {
                batch(start + i * 10 * kMs, (30 * kMs) - (i * kMs / 2), i,
                      wakes == Wakes::all || (wakes == Wakes::some && i % 3 != 0));
            }
            job.add(main, {.kind = OpKind::compute, .begin = start + 10 * kMs * kBatches, .duration = kMs});
            checkpoint(main, epoch);
        }
        for (const TaskId task : {feeder, reader}) {
            const uint64_t exit = job.add(task, {.kind = OpKind::exit});
            const Edge edge{task, EdgeKind::lifecycle, 100, exit};
            job.add(main, {.kind = OpKind::join, .peer = task, .edges = {&edge, 1}});
        }
    }

private:
    void spawn(TaskId by, TaskId task) {
        const uint64_t op = job.spawn(by, task);
        const Edge edge{by, EdgeKind::lifecycle, 100, op};
        job.add(task, {.kind = OpKind::compute, .flags = kComputeWorks, .edges = {&edge, 1}});
    }

    /// `ahead`: ns by which the loader begins it before the trainer takes it; it takes 9.5 ms.
    void batch(int64_t taken, int64_t ahead, int i, bool wakes) {
        int64_t now = taken - ahead;
        const auto step = [&](TaskId task, Op op) {
            op.begin = now;
            op.duration = op.duration == 0 ? 5'000 : op.duration;
            now += op.duration;
            return job.add(task, op);
        };
        const int end = (i + 1) * kInBatch;
        for (int k = i * kInBatch; k < end; ++k) {
            const FileId file = files[static_cast<size_t>(k)];
            const HandleId handle = job.handle(file);
            step(reader, {.kind = OpKind::open, .result = 12, .handle = handle, .file = file});
            step(reader, {.kind = OpKind::read, .result = 4'000, .handle = handle, .fd = 12, .size = 4'000});
            step(reader, {.kind = OpKind::close, .handle = handle, .fd = 12});
            step(reader, {.kind = OpKind::compute, .duration = 2 * kMs});
        }
        const FileId shared = job.file("/dev/shm/b" + std::to_string(made++), Origin::created, Role::ipc);
        const HandleId handle = job.handle(shared, O_RDWR | O_CREAT | O_EXCL);
        const int64_t flags = O_RDWR | O_CREAT | O_EXCL;
        now = taken - ahead + 9 * kMs;
        step(reader,
             {.kind = OpKind::open, .result = 12, .handle = handle, .file = shared, .flags = flags, .mode = 0600});
        step(reader, {.kind = OpKind::ftruncate, .handle = handle, .fd = 12, .size = 8'192});
        const uint32_t map = ++maps;
        step(reader,
             {.kind = OpKind::mmap, .handle = handle, .fd = 12, .size = 8'192, .flags = 1, .mode = 3, .map = map});
        step(reader, {.kind = OpKind::unlink, .file = shared});
        const uint64_t put = step(reader, {.kind = OpKind::compute, .duration = 100'000});
        // The feeder waited, for this or (as the recorder saw it) for a lock.
        const Edge woken{reader, EdgeKind::wake, 100, put};
        job.add(feeder, {.kind = OpKind::wait,
                         .begin = now - 200'000,
                         .duration = 201'000,
                         .arg = wakes ? kWaitFutex : kWaitLock,
                         .edges = {&woken, wakes ? size_t{1} : size_t{0}}});
        now += 2'000;
        step(feeder, {.kind = OpKind::dup, .result = 13, .handle = handle, .fd = 12, .arg = 1});
        step(feeder, {.kind = OpKind::fstat, .handle = handle, .fd = 12});
        step(feeder, {.kind = OpKind::close, .handle = handle, .fd = 12});
        step(feeder, {.kind = OpKind::munmap, .size = 8'192, .map = map});
        const uint64_t sent = step(feeder, {.kind = OpKind::send, .result = 8, .handle = pipe, .fd = 51, .size = 8});
        step(feeder, {.kind = OpKind::close, .handle = handle, .fd = 13});
        now = taken;
        const Edge message{feeder, EdgeKind::message, 100, sent};
        step(main, {.kind = OpKind::receive, .result = 8, .handle = pipe, .fd = 50, .size = 8, .edges = {&message, 1}});
        step(main, {.kind = OpKind::fstat, .handle = handle, .fd = 12});
        const uint32_t mine = ++maps;
        step(main,
             {.kind = OpKind::mmap, .handle = handle, .fd = 12, .size = 8'192, .flags = 1, .mode = 3, .map = mine});
        step(main, {.kind = OpKind::close, .handle = handle, .fd = 12});
        step(main, {.kind = OpKind::compute, .duration = kMs});
        step(main, {.kind = OpKind::munmap, .size = 8'192, .map = mine});
    }
};

/// Whatever is open, mapped or there in the order of time has been made, and is not ended yet.
void check_order(const LogReader& log) {
    std::set<HandleId> open;
    std::set<std::pair<ProcessId, uint32_t>> mapped;
    std::map<HandleId, int> descriptors;  // of the loader
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        const ProcessId process = log.tables().tasks[task].process;
        INFO("task ", task, " ", op.begin, " ", info(op.kind).name);
        if (op.handle != 0 && log.tables().handles[op.handle].kind == HandleKind::file) {
            if (op.kind == OpKind::open) {
                open.insert(op.handle);
                descriptors[op.handle] = 1;
            }
            CHECK(open.contains(op.handle));
            if (process == 2) {
                CHECK(descriptors[op.handle] > 0);
                descriptors[op.handle] += op.kind == OpKind::dup ? 1 : op.kind == OpKind::close ? -1 : 0;
            }
        }
        if (op.map != 0) {
            if (op.kind == OpKind::mmap) {
                mapped.emplace(process, op.map);
            } else {
                CHECK(mapped.erase({process, op.map}) == 1);
            }
        }
    });
}

void check_feeder(FeederJob::Wakes wakes) {
    FeederJob job(wakes);
    check_order(job.recorded());
    check_replay(job.recorded());
    for (const auto& asked : {std::pair{2.0, 0u}, {3.0, 0u}, {3.0, 5u}, {0.5, 0u}}) {
        const double factor = asked.first;
        const uint32_t epochs = asked.second;
        INFO(factor, " ", epochs);
        const LogReader& scaled = job.scale(factor, epochs);
        CHECK(job.result.edges_dropped == 0);
        CHECK(job.result.ops_dropped == 0);
        for (const uint64_t reads : job.result.epochs) {
            CHECK(std::abs(static_cast<double>(reads) - factor * kBatches * kInBatch) <= 2 * kInBatch);
        }
        check_edges(scaled);
        check_order(scaled);
        check_replay(scaled);
    }
}

}  // namespace

TEST_CASE("threads that hand over open files do so after they are opened, where pieces are joined, too") {
    check_feeder(FeederJob::Wakes::all);
}

TEST_CASE("where a recording has no cause for it, what both use tells who came first") {
    SUBCASE("some") { check_feeder(FeederJob::Wakes::some); }
    SUBCASE("none") { check_feeder(FeederJob::Wakes::none); }
}
