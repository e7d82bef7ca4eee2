// SPDX-License-Identifier: MIT
// The result of an op as text.
#pragma once

#include <cstdint>
#include <string>

namespace reprise {

/// "ENOENT" for -errno, else the number.
std::string result_text(int64_t result);

}  // namespace reprise
