// SPDX-License-Identifier: MIT
// Options of what-ifs whose value may be left out.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

/// With what stands for a value that is left out: the word that follows such an option is not its value.
std::vector<std::string> with_given_values(std::vector<std::string> arguments);

}  // namespace reprise::cli
