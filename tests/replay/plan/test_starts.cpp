// SPDX-License-Identifier: MIT
// Who starts whom: by a spawn op, with its process, or with the run.
#include "replay/plan/plan.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

// Tasks by process: {1, 1, 2} are tasks 1 and 2 of process 1 and task 3 of process 2.
Plan started(const std::vector<ProcessId>& processes, const std::vector<SpawnSite>& sites,
             const std::vector<uint8_t>& refused = {}) {
    Plan plan;
    plan.tasks.resize(processes.size() + 1);
    size_t most = 0;
    for (size_t i = 0; i < processes.size(); ++i) {
        plan.tasks[i + 1].process = processes[i];
        most = std::max<size_t>(most, processes[i]);
    }
    plan.processes.resize(most + 1);
    plan_starts(plan, sites, refused);
    return plan;
}

// "process 2: by 1, first 3, 4 5" and "task 3: by 1 at op 7 (700 ns), spawns 2 9".
std::string text(const Plan& plan) {
    std::string out;
    for (size_t i = 1; i < plan.processes.size(); ++i) {
        const ProcessPlan& row = plan.processes[i];
        out += "process " + std::to_string(i) + ":";
        out += row.spawner ? " by " + std::to_string(row.spawner) + " first " + std::to_string(row.first_task) : "";
        for (const TaskId task : row.tasks_at_start) {
            out += " " + std::to_string(task);
        }
        out += "\n";
    }
    for (size_t i = 1; i < plan.tasks.size(); ++i) {
        const TaskPlan& row = plan.tasks[i];
        if (!row.spawner && row.spawns.empty()) {
            continue;
        }
        out += "task " + std::to_string(i) + ":";
        if (row.spawner) {
            out += " by " + std::to_string(row.spawner) + " at op " + std::to_string(row.spawn_op) + " (" +
                   std::to_string(row.spawn_begin) + " ns)";
        }
        for (const uint64_t op : row.spawns) {
            out += " " + std::to_string(op);
        }
        out += "\n";
    }
    for (const Counter& each : plan.counters) {
        out += each.name + " " + std::to_string(each.value) + "\n";
    }
    return out;
}

}  // namespace

TEST_CASE("without spawns everything starts with the run") {
    CHECK(text(started({1, 1, 2}, {})) ==
          "process 1: 1 2\n"
          "process 2: 3\n");
}

TEST_CASE("a process starts by the first spawn that names a task of it from outside, its other tasks with it") {
    CHECK(text(started({1, 1, 2, 2, 2}, {{2, 9, 3, 900}, {2, 2, 2, 200}, {1, 5, 2, 500}, {3, 7, 4, 700}})) ==
          "process 1: 1\n"
          "process 2: by 2 first 3 5\n"
          "task 1: 5\n"
          "task 2: by 1 at op 5 (500 ns) 9\n"
          "task 3: by 2 at op 9 (900 ns) 7\n"
          "task 4: by 3 at op 7 (700 ns)\n");
}

TEST_CASE("a second spawn of the same process starts nothing") {
    CHECK(text(started({1, 2, 2}, {{1, 4, 2, 400}, {1, 6, 3, 600}})) ==
          "process 1: 1\n"
          "process 2: by 1 first 2 3\n"
          "task 1: 4\n"
          "task 2: by 1 at op 4 (400 ns)\n");
}

TEST_CASE("spawns that are refused are counted, and what they name starts with its process") {
    CHECK(text(started({1, 2, 1, 3}, {{1, 4, 2, 400}, {1, 6, 3, 600}, {1, 8, 4, 800}}, {0, 0, 1, 1})) ==
          "process 1: 1 3\n"
          "process 2: 2\n"
          "process 3: by 1 first 4\n"
          "task 1: 8\n"
          "task 4: by 1 at op 8 (800 ns)\n"
          "spawns_not_followed 2\n");
}

TEST_CASE("circles of spawns are broken, each break counted") {
    CHECK(text(started({1, 2, 3}, {{2, 1, 3, 100}, {3, 1, 2, 200}})) ==
          "process 1: 1\n"
          "process 2: 2\n"
          "process 3: by 2 first 3\n"
          "task 2: 1\n"
          "task 3: by 2 at op 1 (100 ns)\n"
          "spawns_not_followed 1\n");
    // Threads of one process that start each other.
    CHECK(text(started({1, 1, 1}, {{2, 1, 3, 100}, {3, 1, 2, 200}})) ==
          "process 1: 1 2\n"
          "task 2: 1\n"
          "task 3: by 2 at op 1 (100 ns)\n"
          "spawns_not_followed 1\n");
    CHECK(text(started({1}, {{1, 3, 1, 300}})).find("spawns_not_followed 1\n") != std::string::npos);
}

TEST_CASE("the ops of a task that start others are in ascending order") {
    CHECK(text(started({1, 2, 3, 1}, {{1, 9, 2, 900}, {1, 2, 3, 200}, {1, 5, 4, 500}})) ==
          "process 1: 1\n"
          "process 2: by 1 first 2\n"
          "process 3: by 1 first 3\n"
          "task 1: 2 5 9\n"
          "task 2: by 1 at op 9 (900 ns)\n"
          "task 3: by 1 at op 2 (200 ns)\n"
          "task 4: by 1 at op 5 (500 ns)\n");
}

}  // namespace reprise::test
