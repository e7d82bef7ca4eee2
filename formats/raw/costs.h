// SPDX-License-Identifier: MIT
// What recording one event of each kind costs the recorded task on this machine, as the recorder measured it when it
// began: written into RAW_META, read where that time is taken off again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

/// ns each; 0: not known.
struct RecorderCosts {
#define RECORDER_COST(name, key, meaning) int64_t name = 0;
#include "formats/raw/costs.def"

    bool operator==(const RecorderCosts&) const = default;
    /// A JSON object, also what the header of an op log says.
    std::string json() const;
    /// From such an object; what is missing, is no number or cannot be a cost is 0.
    static RecorderCosts of(std::string_view json);
};

}  // namespace reprise
