// SPDX-License-Identifier: MIT
#include "replay/plan/cpu_speed.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include "calibrate/work_profile.h"
#include "formats/oplog/header_facts.h"

namespace reprise {

std::string_view source_name(CpuSpeed::Source source) {
    switch (source) {
        case CpuSpeed::Source::given: return "given";
        case CpuSpeed::Source::same_machine: return "same_machine";
        case CpuSpeed::Source::profiles: return "profiles";
        case CpuSpeed::Source::no_profile: return "no_profile";
    }
    return "given";
}

std::string to_string(const CpuSpeed& speed) {
    char number[96];
    switch (speed.source) {
        case CpuSpeed::Source::given: std::snprintf(number, sizeof number, "%.3g, as asked", speed.ratio); break;
        case CpuSpeed::Source::same_machine: return "1, as the recording was made on this machine";
        case CpuSpeed::Source::no_profile:
            return "1, as the recording carries no profile of its machine (--cpu-speed says otherwise)";
        case CpuSpeed::Source::profiles:
            std::snprintf(number, sizeof number, "%.2f of the recording's machine, +-%.0f %% between kinds of work",
                          speed.ratio, speed.uncertainty * 100);
            break;
    }
    return number;
}

namespace {

std::optional<WorkProfile> recorded_profile(const Header& recorded) {
    const std::optional<std::string> text = read_fact(recorded, fact::capture_profile);
    return text ? work_profile_of(*text) : std::nullopt;
}

}  // namespace

WaitCost recorded_wait_cost(const Header& recorded) {
    const auto there = recorded_profile(recorded);
    return there ? there->waits : WaitCost{};
}

WaitCosts wait_costs_here(const Header& recorded, const std::filesystem::path& cache) {
    const auto there = recorded_profile(recorded);
    if (!there || !there->waits.measured()) {
        return {};
    }
    return {there->waits, there->identity == machine_identity() ? there->waits : this_work_profile(cache).waits};
}

CpuSpeed cpu_speed_here(const Header& recorded, const std::filesystem::path& cache) {
    const auto there = recorded_profile(recorded);
    if (!there) {
        return {CpuSpeed::Source::no_profile};
    }
    if (there->identity == machine_identity()) {
        return {CpuSpeed::Source::same_machine};
    }
    const SpeedRatio ratio = compare_speed(this_work_profile(cache).one, there->one);
    return {CpuSpeed::Source::profiles, ratio.ratio, ratio.uncertainty};
}

}  // namespace reprise
