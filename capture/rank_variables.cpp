// SPDX-License-Identifier: MIT
#include "capture/rank_variables.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

namespace reprise {
namespace {

struct Launcher {
    const char* source;
    const char *rank, *world, *local;
    const char* job[2];      // the first that is there
    const char* only_where;  // these variables count only where this one is there, too
};

// RANK is a common word: without WORLD_SIZE beside it, it is something else. SLURM_PROCID is 0 in the batch script
// itself, which is no step.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", {"TORCHELASTIC_RUN_ID", nullptr}, "TORCHELASTIC_RUN_ID"},
    {"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", {nullptr, nullptr}, "WORLD_SIZE"},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     nullptr},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"PMI_JOBID", nullptr}, nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", {"SLURM_JOB_ID", nullptr}, "SLURM_STEP_ID"},
    {"PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", {"PMIX_NAMESPACE", nullptr}, nullptr},
};

std::optional<uint32_t> number(const char* text) {
    if (text == nullptr) {
        return std::nullopt;
    }
    uint32_t value = 0;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, value);
    return error == std::errc() && rest == end && rest != text && value < RankVariables::kMost ? std::optional(value)
                                                                                               : std::nullopt;
}

}  // namespace

std::optional<RankVariables> rank_by_variables(const std::function<const char*(const char*)>& variable) {
    for (const Launcher& launcher : kLaunchers) {
        const std::optional<uint32_t> rank = number(variable(launcher.rank));
        if (!rank || (launcher.only_where != nullptr && variable(launcher.only_where) == nullptr)) {
            continue;
        }
        RankVariables found;
        found.rank = *rank;
        found.world = number(variable(launcher.world)).value_or(0);
        if (found.world != 0 && found.rank >= found.world) {
            continue;
        }
        found.local = number(variable(launcher.local));
        found.source = launcher.source;
        for (const char* name : launcher.job) {
            const char* const job = name != nullptr && found.job.empty() ? variable(name) : nullptr;
            found.job = job != nullptr ? job : found.job;
        }
        return found;
    }
    return std::nullopt;
}

std::optional<RankVariables> own_rank() {
    return rank_by_variables([](const char* name) { return std::getenv(name); });
}

std::optional<RankVariables> rank_of_process(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    std::map<std::string_view, const char*, std::less<>> variables;
    for (size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
        const std::string_view entry(all.c_str() + at);
        const size_t sign = entry.find('=');
        if (sign != std::string_view::npos) {
            variables.emplace(entry.substr(0, sign), entry.data() + sign + 1);
        }
        if (all.find('\0', at) == std::string::npos) {
            break;
        }
    }
    return rank_by_variables([&](const char* name) -> const char* {
        const auto found = variables.find(std::string_view(name));
        return found == variables.end() ? nullptr : found->second;
    });
}

}  // namespace reprise
