// SPDX-License-Identifier: MIT
// A log that threads decode while their process forks: the children decode it, too. What stays decoded.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "formats/oplog/oplog.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("processes that are forked while other threads decode can decode, too") {
    // Tasks of few ops share a section, whose decoded blocks are looked up in a table.
    TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    for (int i = 0; i < 40; ++i) {
        job.add(job.task(process), {.kind = OpKind::compute, .duration = 1000});
    }
    const LogReader log = job.finish();
    REQUIRE(log.blocks().size() >= 40);

    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            OpBlock block;
            while (!stop.load()) {
                for (const BlockInfo& one : log.blocks()) {
                    log.decode(one, block);
                }
            }
        });
    }
    int stuck = 0;
    for (int i = 0; i < 300; ++i) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            alarm(20);
            OpBlock block;
            log.decode(log.blocks().front(), block);
            log.decode(log.blocks().back(), block);
            _exit(block.count() == 1 ? 0 : 1);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        stuck += status != 0 ? 1 : 0;
        if (stuck > 0) {
            break;
        }
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(stuck == 0);
}

TEST_CASE("a section of many blocks stays decoded for the tasks to come") {
    TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    constexpr size_t kTasks = 100;
    for (size_t i = 0; i < kTasks; ++i) {
        job.add(job.task(process), {.kind = OpKind::compute, .duration = 1000});
    }
    const LogReader log = job.finish();
    const uint8_t* first = nullptr;
    std::vector<std::vector<uint8_t>> taken;  // the memory that another decoding would get
    taken.reserve(kTasks);
    for (const BlockInfo& one : log.blocks()) {
        OpBlock block;
        log.decode(one, block);
        REQUIRE(block.count() == one.ops);
        CHECK(block.task == one.task);
        first = first == nullptr ? block.kind - one.start : first;
        CHECK(block.kind - one.start == first);
        taken.emplace_back(kTasks);
    }
}
