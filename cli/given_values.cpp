// SPDX-License-Identifier: MIT
#include "cli/given_values.h"

#include "replay/plan/what_if.h"

namespace reprise::cli {

std::vector<std::string> with_given_values(std::vector<std::string> arguments) {
    for (std::string& word : arguments) {
        if (word == "--") {
            break;
        }
        for (const WhatIfAccess& access : kWhatIfAccesses) {
            if (!access.given.empty() && word == "--" + std::string(access.option)) {
                word += "=" + std::string(access.given);
            }
        }
    }
    return arguments;
}

}  // namespace reprise::cli
