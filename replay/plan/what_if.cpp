// SPDX-License-Identifier: MIT
#include "replay/plan/what_if.h"

#include <cstdio>

#include "formats/support/error.h"

namespace reprise {

bool valid_factor(double value) { return value >= kLeastFactor && value <= kMostFactor; }

std::string wrong_factor(const WhatIfFactor& factor, std::string_view given) {
    char range[48];
    std::snprintf(range, sizeof range, "%g to %g", kLeastFactor, kMostFactor);
    return "--" + std::string(factor.option) + " is " + std::string(given) + ", expected " +
           (factor.fallback == "auto" ? "auto or " : "") + "a number from " + range;
}

void check_factors(const Speeds& speeds, bool causal) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        const double value = speeds.*factor.member;
        const std::string option = "--" + std::string(factor.option);
        if (!valid_factor(value)) {
            throw usage_error(wrong_factor(factor, std::to_string(value)), factor.hint);
        }
        if (factor.causal && value != 1.0 && !causal) {
            throw usage_error(option + " requires --pace causal",
                              "add --pace causal: at recorded times nothing becomes faster");
        }
    }
}

std::string to_string(const WhatIf& what_if) {
    const WhatIf none;
    std::string text;
    const auto add = [&](std::string_view option, std::string_view value) {
        text += (text.empty() ? "--" : " --") + std::string(option) + " " + std::string(value);
    };
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        if (const double value = what_if.speeds.*factor.member; value != 1.0) {
            char digits[32];
            std::snprintf(digits, sizeof digits, "%g", value);
            add(factor.option, digits);
        }
    }
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        if (const std::string& value = what_if.*variant.member; value != none.*variant.member) {
            add(variant.option, value);
        }
    }
    for (const WhatIfAccess& access : kWhatIfAccesses) {
        if (const std::string& value = what_if.*access.member; !value.empty()) {
            text += (text.empty() ? "--" : " --") + std::string(access.option);
            text += access.value.empty() ? "" : "=" + value;
        }
    }
    return text;
}

void put_factors(const Speeds& speeds, std::map<std::string, std::string>& extra) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        extra[std::string(factor.key)] = std::to_string(speeds.*factor.member);
    }
}

}  // namespace reprise
