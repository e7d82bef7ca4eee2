// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "replay/plan/plan.h"

using namespace reprise;

TEST_CASE("plan: every wait is listed once, below its own source, and counts how far that is") {
    Plan plan;
    plan.tasks.resize(4);
    // In no order; one op waits twice, one source has two listeners, one task none.
    plan.tasks[1].waits = {
        {9, 5, 2, 0, EdgeKind::wake}, {3, 7, 2, 0, EdgeKind::message}, {3, 1, 3, 0, EdgeKind::resource}};
    plan.tasks[3].waits = {{2, 5, 2, 0, EdgeKind::queue}, {8, 6, 2, 0, EdgeKind::queue}};
    for (int turn = 0; turn < 2; ++turn) {  // again on what is numbered: the same
        number_sources(plan);
        CHECK(plan.tasks[2].sources == std::vector<uint64_t>{5, 6, 7});
        CHECK(plan.tasks[3].sources == std::vector<uint64_t>{1});
        CHECK(plan.tasks[1].listeners.empty());
        std::set<std::pair<TaskId, uint32_t>> listed;
        for (TaskId task = 0; task < plan.tasks.size(); ++task) {
            const TaskPlan& source = plan.tasks[task];
            REQUIRE(source.listens.size() == source.sources.size() + 1);
            CHECK(source.listens.front() == 0);
            CHECK(source.listens.back() == source.listeners.size());
            for (size_t i = 0; i < source.sources.size(); ++i) {
                CHECK(source.listens[i] < source.listens[i + 1]);
                for (uint32_t k = source.listens[i]; k < source.listens[i + 1]; ++k) {
                    const Listener& one = source.listeners[k];
                    const WaitFor& wait = plan.tasks[one.task].waits[one.wait - 1];
                    CHECK(wait.task == task);
                    CHECK(wait.source == source.sources[i]);
                    CHECK(wait.count == i + 1);
                    CHECK(listed.insert({one.task, one.wait}).second);
                }
            }
        }
        CHECK(listed.size() == 5);
        CHECK(plan.tasks[1].waits.front().op == 3);
        CHECK(plan.tasks[1].waits.back().op == 9);
    }
}
