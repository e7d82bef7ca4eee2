// SPDX-License-Identifier: MIT
// Who performs what: recorded ranks and copies over ranks, and what is started by a process that is elsewhere.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "formats/support/error.h"
#include "hosts/dealing.h"
#include "hosts/launched.h"
#include "replay/plan/elsewhere.h"

using namespace reprise;

TEST_CASE("copies follow from the ranks that were started") {
    CHECK(copies_for(1, 1, 8) == 8);
    CHECK(copies_for(4, 1, 8) == 2);
    CHECK(copies_for(4, 1, 4) == 1);
    CHECK(copies_for(4, 1, 2) == 1);    // several recorded ranks on each
    CHECK(copies_for(1, 16, 4) == 16);  // several copies on each
    CHECK_THROWS_AS(copies_for(4, 1, 6), Error);
    CHECK_THROWS_AS(copies_for(1, 2, 4), Error);
}

TEST_CASE("recorded ranks are dealt in turn, launchers go to rank 0") {
    const RecordedRanks recorded{5, {kNoRank, kNoRank, 0, 1, 2, 3, 4}, ""};
    CHECK(deal(recorded, 2) == std::vector<uint32_t>{0, 0, 0, 1, 0, 1, 0});
    CHECK(dealt_to(recorded, 2, 0) == "0 2 4");
    CHECK(dealt_to(recorded, 5, 3) == "3");
    CHECK(dealt_to({12, {}, ""}, 2, 1) == "1 3 5 7 ... (6)");
}

TEST_CASE("what another rank's process would fork starts with the run and waits for it") {
    Plan plan;
    plan.tasks.resize(4);
    plan.processes.resize(4);
    for (ProcessId process = 1; process <= 3; ++process) {
        plan.tasks[process].process = process;
        plan.tasks[process].ops = 10;
    }
    plan.processes[1].tasks_at_start = {1};  // the launcher forks 2 and 3
    for (const TaskId child : {2u, 3u}) {
        plan.processes[child].spawner = 1;
        plan.processes[child].first_task = child;
        plan.tasks[child].spawner = 1;
        plan.tasks[child].spawn_op = child;
        plan.tasks[1].spawns.push_back(child);
    }
    plan.tasks[1].waits.push_back({9, 9, 3, 0, EdgeKind::lifecycle});
    number_sources(plan);
    const std::vector<uint32_t> rank_of{0, 0, 0, 1};
    perform_only(plan, rank_of, 1);
    CHECK_FALSE(plan.performs(1));
    CHECK(plan.performs(3));
    CHECK(plan.processes[2].spawner == 1);  // both are rank 0's
    CHECK(plan.processes[3].spawner == 0);
    CHECK(plan.processes[3].tasks_at_start == std::vector<TaskId>{3});
    CHECK(plan.tasks[3].spawner == 0);
    REQUIRE(plan.tasks[3].waits.size() == 1);
    CHECK(plan.tasks[3].waits[0] == WaitFor{0, 3, 1, 1, EdgeKind::lifecycle});
    CHECK(plan.tasks[3].told == std::vector<uint32_t>{1});  // its op 9, for the launcher
    const auto told = told_elsewhere(plan, rank_of, 0);
    REQUIRE(told.size() == 1);
    CHECK(told[0].task == 1);
    CHECK(told[0].told == std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}});
}

TEST_CASE("launchers are known by their variables") {
    using Variables = std::map<std::string, std::string>;
    const auto by = [](const Variables& set) {
        return launched([&](const char* name) -> const char* {
            const auto found = set.find(name);
            return found == set.end() ? nullptr : found->second.c_str();
        });
    };
    CHECK_FALSE(by({}));
    CHECK_FALSE(by({{"OMPI_COMM_WORLD_SIZE", "1"}}));
    CHECK(by({{"OMPI_COMM_WORLD_SIZE", "8"}})->mpi == Mpi::open_mpi);
    CHECK(by({{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}})->mpi == Mpi::mpich);
    CHECK(by({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"PMIX_RANK", "0"}})->size == 4);
    // In a batch script, but not started by srun.
    CHECK_FALSE(by({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
    CHECK_THROWS_WITH_AS(by({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}), doctest::Contains("--mpi=pmix"),
                         Error);
}
