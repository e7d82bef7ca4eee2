// SPDX-License-Identifier: MIT
// The message of an Error where there is only one line for it.
#pragma once

#include <string>
#include <string_view>

namespace reprise {

/// What can be done stands on a line of its own in an Error: here it follows after "; ".
inline std::string in_one_line(std::string_view message) {
    constexpr std::string_view kBreak = "\n  ";
    std::string line(message);
    for (size_t at = 0; (at = line.find(kBreak, at)) != std::string::npos;) {
        line.replace(at, kBreak.size(), "; ");
    }
    return line;
}

}  // namespace reprise
