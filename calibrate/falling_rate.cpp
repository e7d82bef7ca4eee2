// SPDX-License-Identifier: MIT
#include "calibrate/falling_rate.h"

#include <cstdint>

#include "formats/support/quantity.h"

namespace reprise {
std::string falling_rate(const StorageModel& model) {
    constexpr double kHalf = 0.5;
    const DepthRow* most = nullptr;
    for (const DepthRow& row : model.read_depth) {  // by size, then depth
        if (most == nullptr || most->bytes != row.bytes || row.per_s > most->per_s) {
            most = &row;
        } else if (row.per_s < kHalf * most->per_s) {
            const auto rate = [](const DepthRow& of) { return format_count(static_cast<uint64_t>(of.per_s)); };
            return rate(*most) + " reads of " + format_bytes(static_cast<uint64_t>(row.bytes)) + " a second with " +
                   std::to_string(most->depth) + " in flight, and " + rate(row) + " with " + std::to_string(row.depth);
        }
    }
    return {};
}

}  // namespace reprise
