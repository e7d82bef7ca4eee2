// SPDX-License-Identifier: MIT
// How fast one thread of this machine computes: measured in two seconds, kept for an hour.
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
    /// By which share each rate differed between rounds of one measurement. All 0: not known, as of old recorders.
    WorkRates spread = {};
    uint64_t boot = 0;            // since when the machine is up, as a hash; 0: not known
    int64_t measured_unix_s = 0;  // 0: not known
};

/// Names the machine this runs on; the same after a reboot. Clones of one image may share it, so that it says where two
/// profiles are of different machines, and never that they are of one.
uint64_t machine_identity();
/// Another one after each boot.
uint64_t boot_identity();

/// Each kind of work for about a fifth of a second in all, what waits cost for the rest. The best of many short pieces
/// counts, or their median, so that other programs disturb little.
WorkProfile measure_work_profile();

/// How long a kept profile counts: clock frequency and neighbours of a virtual machine change.
inline constexpr int64_t kProfileAge = 3'600;  // s

/// Of the file that keeps the profile of this boot: a folder that several hosts share has one for each. Builds that are
/// not optimised, or are sanitized, have one of their own.
std::string kept_profile_name();

/// The one kept in `cache` where it is whole, of this machine since it was booted and not older than kProfileAge; else
/// measured and kept there, by one process at a time: others wait for it, at most ten seconds. A cache that cannot be
/// read or written is as none. Default: $XDG_CACHE_HOME/reprise, or ~/.cache/reprise.
WorkProfile this_work_profile(const std::filesystem::path& cache = {});

/// The same, not older than a minute.
WorkProfile measured_anew(const std::filesystem::path& cache = {});

/// Whether each kind of work is equally fast in both, as far as the two measurements can tell.
bool same_speed(const WorkProfile& a, const WorkProfile& b);

std::string to_json(const WorkProfile& profile);
/// None if the text is not a profile.
std::optional<WorkProfile> work_profile_of(std::string_view json);

}  // namespace reprise
