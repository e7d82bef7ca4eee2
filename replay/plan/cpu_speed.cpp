// SPDX-License-Identifier: MIT
#include "replay/plan/cpu_speed.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "calibrate/work_profile.h"
#include "formats/oplog/header_facts.h"

namespace reprise {

std::string_view source_name(CpuSpeed::Source source) {
    switch (source) {
        case CpuSpeed::Source::given: return "given";
        case CpuSpeed::Source::same_machine: return "same_machine";
        case CpuSpeed::Source::same_name: return "same_name";
        case CpuSpeed::Source::same_boot: return "same_boot";
        case CpuSpeed::Source::profiles: return "profiles";
        case CpuSpeed::Source::no_profile: return "no_profile";
    }
    return "given";
}

std::string to_string(const CpuSpeed& speed) {
    char text[224];
    switch (speed.source) {
        case CpuSpeed::Source::given: std::snprintf(text, sizeof text, "%.3g, as asked", speed.ratio); break;
        case CpuSpeed::Source::same_machine: return "1, recorded on this machine, whose measured speed is the same";
        case CpuSpeed::Source::no_profile:
            return "taken as 1: the recording carries no profile of its machine (--cpu-speed sets it)";
        case CpuSpeed::Source::same_name:
            std::snprintf(text, sizeof text,
                          "%.2f of the recording's, +-%.0f %% between kinds of work; its machine has the same name, "
                          "but not the same speed (a clone, or another clock rate)",
                          speed.ratio, speed.uncertainty * 100);
            break;
        case CpuSpeed::Source::same_boot:
            std::snprintf(text, sizeof text,
                          "%.2f of the recording's, though this machine has not been rebooted since: one of the two "
                          "measurements is wrong, or its clock rate changed (--cpu-speed 1 ignores both)",
                          speed.ratio);
            break;
        case CpuSpeed::Source::profiles:
            std::snprintf(text, sizeof text, "%.2f of the recording's machine, +-%.0f %% between kinds of work",
                          speed.ratio, speed.uncertainty * 100);
            break;
    }
    return text;
}

namespace {

std::optional<WorkProfile> recorded_profile(const Header& recorded) {
    const std::optional<std::string> text = read_fact(recorded, fact::capture_profile);
    return text ? work_profile_of(*text) : std::nullopt;
}

/// "after 1 ms 275 us +- 256 us": the point that scatters most.
std::string scatter(const WaitCost& waits) {
    const auto most = std::max_element(waits.spread_ns.begin(), waits.spread_ns.end()) - waits.spread_ns.begin();
    const auto at = static_cast<size_t>(most);
    char text[96];
    std::snprintf(text, sizeof text, "after %.3g ms: %.0f us, +-%.0f us",
                  static_cast<double>(WaitCost::kWaits[at]) / 1e6, waits.extra_ns[at] / 1e3, waits.spread_ns[at] / 1e3);
    return text;
}

/// What hardly needs memory differs by more than a clock rate makes of it. Copies are what neighbours leave.
bool contradict(const WorkProfile& a, const WorkProfile& b) {
    constexpr double kMost = 1.5;
    const auto apart = [&](double WorkRates::*kind) {
        return std::max((a.one.*kind) / (b.one.*kind), (b.one.*kind) / (a.one.*kind)) > kMost;
    };
    return apart(&WorkRates::integer) || apart(&WorkRates::inflate);
}

}  // namespace

WaitCost recorded_wait_cost(const Header& recorded) {
    const auto there = recorded_profile(recorded);
    return there ? there->waits : WaitCost{};
}

MachineSpeed machine_speed_here(const Header& recorded, const std::filesystem::path& cache) {
    MachineSpeed out;
    const auto there = recorded_profile(recorded);
    if (!there) {
        out.cpu.source = CpuSpeed::Source::no_profile;
        return out;
    }
    WorkProfile here = this_work_profile(cache);
    const bool same_name = there->identity == machine_identity();
    const bool same_boot = same_name && there->boot != 0 && there->boot == here.boot;
    if (same_boot && contradict(here, *there)) {
        here = measured_anew(cache);
    }
    if (same_name && same_speed(here, *there)) {
        out.cpu.source = CpuSpeed::Source::same_machine;
        out.waits = {there->waits, there->waits};
        return out;
    }
    const SpeedRatio ratio = compare_speed(here.one, there->one);
    out.cpu = {same_name ? CpuSpeed::Source::same_name : CpuSpeed::Source::profiles, ratio.ratio, ratio.uncertainty};
    if (same_boot && contradict(here, *there)) {
        out.cpu.source = CpuSpeed::Source::same_boot;
    }
    out.waits = {there->waits, here.waits};
    if (there->waits.measured() && !out.waits.known()) {
        const bool is_here = !here.waits.stable();
        out.doubt = "What a wait costs the compute after it could not be measured " +
                    std::string(is_here ? "here" : "on the recording's machine") + " (" +
                    scatter(is_here ? here.waits : there->waits) + "), so compute is not corrected for it.";
    }
    return out;
}

}  // namespace reprise
