// SPDX-License-Identifier: MIT
// How fast one thread of this machine computes: measured in a second, kept for the next time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "calibrate/host_profile.h"
#include "calibrate/wait_cost.h"

namespace reprise {

/// A recording carries that of its machine. Holds numbers only, no names.
struct WorkProfile {
    /// Of the machine: of its id, name, processor model and number of processors. 0: not known, as in anonymized logs.
    uint64_t identity = 0;
    int cpus = 0;    // of the machine that this process may use
    WorkRates one;   // of one thread
    WaitCost waits;  // not measured by old recorders
};

/// Names the machine this runs on; the same after a reboot.
uint64_t machine_identity();

/// Each kind of work for about a tenth of a second, what waits cost for the rest. The best of many short pieces counts,
/// or their median, so that other programs disturb little.
WorkProfile measure_work_profile();

/// The one kept in `cache` where it is of this machine and whole, else measured and kept there. A cache that cannot be
/// read or written is as none. Default: $XDG_CACHE_HOME/reprise, or ~/.cache/reprise.
WorkProfile this_work_profile(const std::filesystem::path& cache = {});

std::string to_json(const WorkProfile& profile);
/// None if the text is not a profile.
std::optional<WorkProfile> work_profile_of(std::string_view json);

}  // namespace reprise
