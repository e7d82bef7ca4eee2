// SPDX-License-Identifier: MIT
// What lies on the recording's machine as the recording ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace reprise {

struct FoundAtEnd {
    uint32_t mode = 0;   // with S_IFMT
    uint64_t size = 0;   // bytes
    std::string target;  // of a link
};

/// At a path; nothing: nothing is there, or it cannot be looked at.
using FindAtEnd = std::function<std::optional<FoundAtEnd>(const std::string& path)>;

}  // namespace reprise
