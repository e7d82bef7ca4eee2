// SPDX-License-Identifier: MIT
#include "replay/plan/what_if.h"

#include "formats/support/error.h"

namespace reprise {

void check_factors(const Speeds& speeds, bool causal) {
    constexpr double kMost = 1e6;
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        const double value = speeds.*factor.member;
        const std::string option = "--" + std::string(factor.option);
        if (!(value > 0.0) || value > kMost) {
            throw usage_error(option + " must be a number above 0", std::string(factor.hint));
        }
        if (factor.causal && value != 1.0 && !causal) {
            throw usage_error(option + " requires --pace causal",
                              "add --pace causal: at recorded times nothing becomes faster");
        }
    }
}

void put_factors(const Speeds& speeds, std::map<std::string, std::string>& extra) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        extra[std::string(factor.key)] = std::to_string(speeds.*factor.member);
    }
}

}  // namespace reprise
