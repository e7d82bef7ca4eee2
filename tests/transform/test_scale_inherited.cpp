// SPDX-License-Identifier: MIT
// Pipes that loader processes inherit: whether a process closes what it inherited before it ends differs from epoch to
// epoch.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "tests/transform/scaled_job.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int kSteps = 20, kInStep = 4;

/// A trainer that starts a loader for each epoch. The loader gets numbers by one pipe and answers by another, and holds
/// all four ends. `tidy`: by epoch, whether it closes before it ends what it inherited and never used.
struct LoaderJob : ScaledJob {
    ProcessId trainers = job.process();
    TaskId main = job.task(trainers);
    std::vector<FileId> files;

    explicit LoaderJob(const std::vector<bool>& tidy) {
        for (int i = 0; i < kSteps * kInStep; ++i) {
            files.push_back(sized("/data/" + std::to_string(i) + ".bin", 4'000));
        }
        std::mt19937 random(5);
        for (size_t epoch = 0; epoch < tidy.size(); ++epoch) {
            std::shuffle(files.begin(), files.end(), random);
            play(tidy[epoch]);
            checkpoint(main, static_cast<int>(epoch));
        }
    }

private:
    struct Pipe {
        HandleId in = 0, out = 0;
    };
    Pipe pipe(int fd) {
        const Pipe made{job.handle(0, 0, HandleKind::pipe), job.handle(0, 0, HandleKind::pipe)};
        job.add(main,
                {.kind = OpKind::pipe, .handle = made.in, .fd = fd, .handle2 = made.out, .fd2 = fd + 1, .arg = kPipe});
        return made;
    }
    void close(TaskId task, HandleId handle, int fd) {
        job.add(task, {.kind = OpKind::close, .handle = handle, .fd = fd});
    }
    /// One message, and who waits for it.
    void message(TaskId from, HandleId out, int out_fd, TaskId to, HandleId in, int in_fd) {
        const uint64_t sent =
            job.add(from, {.kind = OpKind::send, .result = 8, .handle = out, .fd = out_fd, .size = 8});
        const Edge edge{from, EdgeKind::message, 100, sent};
        job.add(to, {.kind = OpKind::receive, .result = 8, .handle = in, .fd = in_fd, .size = 8, .edges = {&edge, 1}});
    }

    void play(bool tidy) {
        const Pipe data = pipe(50), index = pipe(60);
        const TaskId loader = job.task(job.process(trainers));
        const Edge begun{main, EdgeKind::lifecycle, 100, job.spawn(main, loader)};
        job.add(loader, {.kind = OpKind::compute, .flags = kComputeWorks, .edges = {&begun, 1}});
        for (int step = 0; step < kSteps; ++step) {
            message(main, index.out, 61, loader, index.in, 60);
            for (int i = 0; i < kInStep; ++i) {
                const HandleId sample = job.open(loader, files[static_cast<size_t>((step * kInStep) + i)]);
                job.read(loader, sample, 0, 4'000);
                job.close(loader, sample);
                compute(loader, kMs);
            }
            message(loader, data.out, 51, main, data.in, 50);
            compute(main, 3 * kMs);
        }
        if (tidy) {
            close(loader, index.in, 60);
            close(loader, data.in, 50);
        }
        const uint64_t exit = job.add(loader, {.kind = OpKind::exit});
        const Edge ended{loader, EdgeKind::lifecycle, 100, exit};
        job.add(main, {.kind = OpKind::join, .peer = loader, .edges = {&ended, 1}});
        for (const auto& [handle, fd] : {std::pair{data.in, 50}, {data.out, 51}, {index.in, 60}, {index.out, 61}}) {
            close(main, handle, fd);
        }
    }
};

void check_loader(const std::vector<bool>& tidy) {
    LoaderJob job(tidy);
    check_replay(job.recorded());
    for (const auto& asked : {std::pair{1.0, 5u}, {2.0, 0u}, {2.0, 5u}, {0.5, 4u}}) {
        INFO(asked.first, " ", asked.second);
        const LogReader& scaled = job.scale(asked.first, asked.second);
        CHECK(job.result.edges_dropped == 0);
        std::map<OpKind, uint64_t> count;
        scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            ++count[op.kind];
            if (op.kind == OpKind::receive) {
                CHECK(op.edges.size() == 1);
            }
        });
        CHECK(count[OpKind::receive] == count[OpKind::send]);
        check_edges(scaled);
        check_replay(scaled);
    }
}

}  // namespace

TEST_CASE("a loader that did not close what it inherited is played in place of one that did, and the reverse") {
    SUBCASE("none closes") { check_loader({false, false, false}); }
    SUBCASE("all close") { check_loader({true, true, true}); }
    SUBCASE("the last does not") { check_loader({true, true, false}); }
    SUBCASE("the last does") { check_loader({false, false, true}); }
    SUBCASE("one in the middle") { check_loader({false, true, false}); }
}
