// SPDX-License-Identifier: MIT
// Declared options read back, for help, completion and man pages.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace reprise::cli {

/// One declared option, taken apart.
struct DescribedOption {
    std::string short_name;  ///< "-o" or empty
    std::string long_name;   ///< "--output"
    std::string value;       ///< "FILE", or empty for a switch
    std::string text;        ///< description, choices and default included
    std::vector<std::string> choices;
    bool joined = false;   ///< the value may be missing; given, it follows an =
    bool repeats = false;  ///< may be given several times
    bool common = false;   ///< one of those every command has

    /// "-o, --output FILE", "--json[=FILE]"
    [[nodiscard]] std::string spelling() const;
};

/// In the order of declaration, the common ones last.
std::vector<DescribedOption> described_options(const Command& command);

}  // namespace reprise::cli
