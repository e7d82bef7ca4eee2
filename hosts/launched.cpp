// SPDX-License-Identifier: MIT
#include "hosts/launched.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "formats/support/error.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

uint32_t number(const char* text) {
    uint32_t value = 0;
    if (text != nullptr) {
        std::from_chars(text, text + std::strlen(text), value);
    }
    return value;
}

const char* name_of(Mpi mpi) { return mpi == Mpi::open_mpi ? "Open MPI" : "MPICH"; }

std::string library_of(Mpi mpi) { return mpi == Mpi::open_mpi ? "libreprise_openmpi.so" : "libreprise_mpich.so"; }

/// Beside this program, or where it is installed (../lib/reprise).
std::optional<fs::path> plugin(const std::string& name) {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& path : {self / name, self.parent_path() / "lib/reprise" / name}) {
        if (fs::is_regular_file(path, error)) {
            return path;
        }
    }
    return std::nullopt;
}

Error no_plugin(const Launched& launched, const std::string& why) {
    return machine_error(launched.by + " started " + std::to_string(launched.size) +
                             " ranks, but this reprise has no " + name_of(launched.mpi) +
                             (why.empty() ? "" : ": " + why),
                         std::string("install ") + (launched.mpi == Mpi::open_mpi ? "libopenmpi-dev" : "libmpich-dev") +
                             " and build reprise again (-DREPRISE_MPI=ON), or start it without " + launched.by);
}

}  // namespace

std::optional<Launched> launched(const std::function<const char*(const char*)>& variable) {
    const uint32_t tasks = number(variable("SLURM_STEP_NUM_TASKS"));
    const bool by_srun = variable("SLURM_PROCID") != nullptr && tasks > 1;
    if (const uint32_t size = number(variable("OMPI_COMM_WORLD_SIZE")); size != 0) {
        return size > 1 ? std::optional(Launched{Mpi::open_mpi, size, "mpirun (Open MPI)"}) : std::nullopt;
    }
    // srun --mpi=pmi2 sets PMI_FD as well, which Open MPI knows, too.
    if (const uint32_t size = number(variable("PMI_SIZE")); size != 0 && variable("PMI_RANK") != nullptr) {
        const char* const by = by_srun ? "srun" : "mpirun (MPICH)";
        return size > 1 ? std::optional(Launched{Mpi::mpich, size, by}) : std::nullopt;
    }
    if (variable("PMIX_RANK") != nullptr && tasks > 1) {
        return Launched{Mpi::open_mpi, tasks, "srun"};
    }
    if (by_srun) {
        throw machine_error("srun started " + std::to_string(tasks) +
                                " tasks and told MPI nothing of them: each would replay the whole job in the same root",
                            "give srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list names what it has), or -n 1");
    }
    return std::nullopt;
}

std::unique_ptr<Transport> mpi_transport(const Launched& launched) {
    const std::optional<fs::path> path = plugin(library_of(launched.mpi));
    if (!path) {
        throw no_plugin(launched, "");
    }
    // Parts of Open MPI that it loads itself look for its names.
    void* const library = dlopen(path->c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* const make = library != nullptr ? dlsym(library, "reprise_mpi_transport") : nullptr;
    if (make == nullptr) {
        throw no_plugin(launched, dlerror());
    }
    std::unique_ptr<Transport> transport(reinterpret_cast<Transport* (*)()>(make)());
    if (transport->size() != launched.size) {
        throw machine_error(launched.by + " started " + std::to_string(launched.size) + " ranks, but " +
                                name_of(launched.mpi) + " sees " + std::to_string(transport->size()),
                            "use the launcher of the MPI that reprise was built with; srun: another --mpi=");
    }
    return transport;
}

}  // namespace reprise
