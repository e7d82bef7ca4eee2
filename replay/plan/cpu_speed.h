// SPDX-License-Identifier: MIT
// CPU speed of this machine relative to that of a recording.
#pragma once

#include <filesystem>
#include <string>

#include "formats/oplog/oplog.h"
#include "replay/plan/warmth.h"

namespace reprise {

struct CpuSpeed {
    enum class Source : uint8_t {
        given,
        same_machine,  // by name, and by the measured rates
        same_name,     // by name only: the rates differ
        same_boot,     // as same_name, and it has been up since then, so that one of the two measurements is wrong
        profiles,      // the rates of two machines
        no_profile,
    } source = Source::given;
    double ratio = 1.0;        // CPU here so many times as fast
    double uncertainty = 0.0;  // share by which kinds of work deviate from it

    /// Whether two measurements stand behind the ratio.
    bool verified() const { return source != Source::given && source != Source::no_profile; }
};

/// One word, as in --json.
std::string_view source_name(CpuSpeed::Source source);
/// A sentence for the result.
std::string to_string(const CpuSpeed& speed);

/// This machine beside that of a recording.
struct MachineSpeed {
    CpuSpeed cpu;
    WaitCosts waits;    // not known where the recording has none; equal on the same machine
    std::string doubt;  // a sentence, where waits were measured and do not count; else empty
};
/// Ratio 1 where the recording has no profile, or was made on this machine and the rates agree, too; else the ratio of
/// the two profiles. Measures this machine where its profile is not in `cache` (empty: the user's), or contradicts one
/// that was made since it was booted.
MachineSpeed machine_speed_here(const Header& recorded, const std::filesystem::path& cache = {});

/// Of the recording's machine; not measured if the recording has none.
WaitCost recorded_wait_cost(const Header& recorded);

}  // namespace reprise
