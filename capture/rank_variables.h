// SPDX-License-Identifier: MIT
// Which rank of a job a process is, as the variables of launchers say: torchrun, Open MPI, PMIx, PMI (MPICH, Intel
// MPI), Slurm. Built everywhere.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace reprise {

struct RankVariables {
    static constexpr uint32_t kMost = 1U << 24;
    uint32_t rank = 0;
    uint32_t world = 0;             // 0: not said
    std::optional<uint32_t> local;  // number on its host
    std::string source;             // "torchrun"
    std::string job;                // name that the launcher gave the job; empty: none
};

/// `variable(name)`: its value, nullptr where there is none. The innermost launcher counts: torchrun under Slurm is
/// torchrun. None where no launcher's variables are there and numbers.
std::optional<RankVariables> rank_by_variables(const std::function<const char*(const char*)>& variable);

/// Of this process.
std::optional<RankVariables> own_rank();
/// Of the program that a process runs, as it was started: what it sets itself is not seen. None where it is gone.
std::optional<RankVariables> rank_of_process(pid_t pid);

}  // namespace reprise
