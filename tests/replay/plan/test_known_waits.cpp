// SPDX-License-Identifier: MIT
#include "replay/plan/known_waits.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

using namespace reprise;

// Beside a copy of everything.
TEST_CASE("known waits: a task knows what its spawner knew when it was started, and nothing of later") {
    std::mt19937 random(7);
    std::vector<KnownWaits> tasks(1);
    std::vector<std::map<TaskId, uint64_t>> truth(1);
    const auto any = [&](size_t below) { return random() % below; };
    for (int step = 0; step < 4000; ++step) {
        const size_t task = any(4) == 0 ? any(tasks.size()) : 0;
        const auto other = static_cast<TaskId>(1 + any(2000));
        const uint64_t ops = truth[task][other] + 1 + any(5);
        tasks[task].set(other, truth[task][other] = ops);
        if (any(3) == 0) {
            tasks.push_back(tasks[task].inherited());
            truth.push_back(std::map<TaskId, uint64_t>(truth[task]));
        }
    }
    size_t wrong = 0;
    for (size_t task = 0; task < tasks.size(); ++task) {
        for (TaskId other = 1; other <= 2000; ++other) {
            const auto known = truth[task].find(other);
            wrong += tasks[task].of(other) != (known == truth[task].end() ? 0 : known->second) ? 1 : 0;
        }
        if (const auto* const few = tasks[task].few()) {
            CHECK(few->size() == truth[task].size());
            CHECK(few->size() <= KnownWaits::kMostCopied);
        }
    }
    CHECK(wrong == 0);
    KnownWaits raised;
    raised.set(1, 5);
    raised.raise(1, 3);
    raised.raise(2, 4);
    CHECK(raised.of(1) == 5);
    CHECK(raised.of(2) == 4);
}
