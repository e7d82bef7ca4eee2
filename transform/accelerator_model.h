// SPDX-License-Identifier: MIT
// Step times of accelerators that are made up in place of the recorded ones: what a user asks for, and the draws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// How long an accelerator is busy in each step.
struct GpuModel {
    enum class Kind : uint8_t { constant, normal, lognormal, empirical } kind = Kind::constant;
    double mean_ns = 0, sd_ns = 0;
    std::vector<int64_t> values;  // empirical: drawn from these (ns); empty: from the recorded steps
    uint64_t seed = 1;
    std::string spec;  // as it was asked for

    /// `0.25`, `250ms`, `normal(250ms,20ms)`, `lognormal(250ms,20ms)`, `empirical`, `empirical(FILE)` (a time a line);
    /// `,seed=7` may stand behind each. Times without a unit are seconds. Throws Error (usage; bad_input for the file).
    static GpuModel parse(std::string_view spec);
};

/// Draws of one accelerator's steps: the same for the same model, accelerator and recorded steps, on every machine.
class StepDraws {
public:
    /// `recorded`: busy times of the recording's steps, for an empirical model without values of its own.
    StepDraws(const GpuModel& model, uint64_t accelerator, const std::vector<int64_t>& recorded);
    /// Of the next step, ns, at least 0.
    int64_t next();
    uint64_t negative() const { return negative_; }  // draws below 0, which became 0

private:
    double uniform();  // (0, 1]
    double gauss();

    const GpuModel& model_;
    const std::vector<int64_t>& values_;
    uint64_t state_;
    uint64_t negative_ = 0;
};

}  // namespace reprise
