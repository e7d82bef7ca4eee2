// SPDX-License-Identifier: MIT
#include "formats/oplog/result_text.h"

#include <cstring>

#include "formats/oplog/result_rule.h"

namespace reprise {

std::string result_text(int64_t result) {
    const char* const name = is_error(result) ? strerrorname_np(static_cast<int>(-result)) : nullptr;
    return name != nullptr ? name : std::to_string(result);
}

}  // namespace reprise
