// SPDX-License-Identifier: MIT
// CPU speed of this machine relative to that of a recording.
#pragma once

#include <filesystem>
#include <string>

#include "formats/oplog/oplog.h"
#include "replay/plan/warmth.h"

namespace reprise {

struct CpuSpeed {
    enum class Source : uint8_t { given, same_machine, profiles, no_profile } source = Source::given;
    double ratio = 1.0;        // CPU here so many times as fast
    double uncertainty = 0.0;  // share by which kinds of work deviate from it
};

/// One word, as in --json.
std::string_view source_name(CpuSpeed::Source source);
/// A sentence for the result.
std::string to_string(const CpuSpeed& speed);

/// 1 where the recording was made on this machine or has no profile; else the ratio of the two profiles.
/// Measures this machine where its profile is not in `cache` (empty: the user's).
CpuSpeed cpu_speed_here(const Header& recorded, const std::filesystem::path& cache = {});

/// Of the recording's machine; not measured if the recording has none.
WaitCost recorded_wait_cost(const Header& recorded);
/// That, and of this machine: the same where the recording was made here, else as `cache` has it or measured now. Not
/// known where the recording has none.
WaitCosts wait_costs_here(const Header& recorded, const std::filesystem::path& cache = {});

}  // namespace reprise
