// SPDX-License-Identifier: MIT
// Which rank a process is, as launchers' variables say.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "capture/rank_variables.h"

namespace reprise::test {
namespace {

std::optional<RankVariables> rank_in(const std::map<std::string, std::string>& variables) {
    return rank_by_variables([&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    });
}

}  // namespace

TEST_CASE("rank variables: each launcher's own") {
    const auto torchrun =
        rank_in({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "run"}});
    REQUIRE(torchrun);
    CHECK(torchrun->rank == 5);
    CHECK(torchrun->world == 8);
    CHECK(torchrun->local == 1);
    CHECK(torchrun->source == "torchrun");
    CHECK(torchrun->job == "run");

    const auto openmpi = rank_in({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "3"}});
    REQUIRE(openmpi);
    CHECK(openmpi->rank == 3);
    CHECK(openmpi->source == "Open MPI");
    CHECK(openmpi->job.empty());

    CHECK(rank_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})->source == "PMI");
    CHECK(rank_in({{"PMIX_RANK", "7"}})->world == 0);
    const auto slurm =
        rank_in({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "99"}});
    REQUIRE(slurm);
    CHECK(slurm->job == "99");
}

TEST_CASE("rank variables: torchrun inside Slurm or MPI is torchrun") {
    const auto found = rank_in({{"RANK", "2"},
                                {"WORLD_SIZE", "4"},
                                {"SLURM_PROCID", "0"},
                                {"SLURM_NTASKS", "2"},
                                {"SLURM_STEP_ID", "0"},
                                {"OMPI_COMM_WORLD_RANK", "0"},
                                {"OMPI_COMM_WORLD_SIZE", "2"}});
    REQUIRE(found);
    CHECK(found->rank == 2);
    CHECK(found->source == "RANK and WORLD_SIZE");
}

TEST_CASE("rank variables: what is no rank") {
    CHECK_FALSE(rank_in({}));
    CHECK_FALSE(rank_in({{"RANK", "5"}}));
    CHECK_FALSE(rank_in({{"RANK", "8"}, {"WORLD_SIZE", "8"}}));
    CHECK_FALSE(rank_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));  // the batch script itself
    for (const char* text : {"", "x", "-1", "1x", "99999999999", "16777216"}) {
        CHECK_MESSAGE(!rank_in({{"PMI_RANK", text}}), text);
    }
}

TEST_CASE("rank variables: of another process, as it was started") {
    const pid_t child = ::fork();
    if (child == 0) {
        const char* const environment[] = {"A", "=", "PMI_RANK=1", "PMI_SIZE=2", nullptr};
        const char* const words[] = {"sleep", "60", nullptr};
        ::execve("/bin/sleep", const_cast<char**>(words), const_cast<char**>(environment));
        ::_exit(1);
    }
    REQUIRE(child > 0);
    std::optional<RankVariables> found;
    for (int i = 0; i < 1000 && !found; ++i) {  // until it runs its program
        found = rank_of_process(child);
        ::usleep(1000);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    REQUIRE(found);
    CHECK(found->rank == 1);
    CHECK(found->world == 2);
    CHECK_FALSE(rank_of_process(child));
}

}  // namespace reprise::test
