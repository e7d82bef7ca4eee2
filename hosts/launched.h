// SPDX-License-Identifier: MIT
// Whether a launcher of MPI started this process as one of several ranks, and the transport to the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hosts/transport.h"

namespace reprise {

enum class Mpi : uint8_t { open_mpi, mpich };

struct Launched {
    Mpi mpi = Mpi::open_mpi;
    uint32_t size = 1;
    std::string by;  // "mpirun (Open MPI)", "srun"
};

/// By the variables of the launcher, `variable` as getenv. None: started alone, or as the only rank. Throws Error
/// (machine) where srun started several tasks without telling MPI of them.
std::optional<Launched> launched(const std::function<const char*(const char*)>& variable);

/// Makes the transport; to be called on the thread that will use it. Throws Error (machine) where this program has no
/// plug-in for that MPI, or MPI sees another number of ranks.
std::unique_ptr<Transport> mpi_transport(const Launched& launched);

}  // namespace reprise
