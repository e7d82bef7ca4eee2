// SPDX-License-Identifier: MIT
// What a job is bound by, as computed on its causal graph. Others compute it; analyses and pages show it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise {

/// ns. What if one of them took no time at all, and everything else what it took.
struct JobBounds {
    struct WhatIf {
        int64_t elapsed = 0;
        double took_s = 0;  // to compute
    };
    int64_t recorded = 0;
    std::optional<WhatIf> modelled;     // with all times as recorded: beside `recorded`, the error of the method
    std::optional<WhatIf> storage;      // waits for devices take none; calls and copies stay
    std::optional<WhatIf> processor;    // compute takes none; calls, copies and waits stay; none: it is not recorded
    std::optional<WhatIf> accelerator;  // none: the log has no work of one
    double planned_s = 0;               // to find the causes, once for all of them
    /// Of the path of `modelled` from its start to its end: what was waited for, and how long. They add up to it.
    struct Path {
        int64_t compute = 0, calls = 0, storage = 0, accelerator = 0, asleep = 0, unexplained = 0;
        int64_t sum() const { return compute + calls + storage + accelerator + asleep + unexplained; }
    } path;
    uint64_t guessed_bytes = 0;  // whose time without a device is a guess
    std::string doubt;           // why it is to be taken with care; empty: nothing is known
    std::string why_none;        // why nothing was computed; a sentence

    bool known() const { return modelled.has_value(); }
    /// By how much the model of the recorded job is off, as a share.
    double error() const {
        return recorded > 0 && modelled ? static_cast<double>(modelled->elapsed) / static_cast<double>(recorded) - 1
                                        : 0;
    }
    /// Share of the modelled time that `with` saves; 0: none.
    double saved(const std::optional<WhatIf>& with) const {
        return with && modelled && modelled->elapsed > 0
                   ? 1 - static_cast<double>(with->elapsed) / static_cast<double>(modelled->elapsed)
                   : 0;
    }
};

nlohmann::ordered_json to_json(const JobBounds& bounds);

}  // namespace reprise
