// SPDX-License-Identifier: MIT
// WaitCost as JSON: in host.json, in work.json, and in the profile that a recording carries.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "calibrate/wait_cost.h"

namespace reprise {

inline constexpr const char* kWaitCostKey = "after_wait";

/// Adds it to `object`, where it was measured.
void add_wait_cost(nlohmann::ordered_json& object, const WaitCost& cost);
/// Not measured where `object` has none, or one of other waits, or an invalid one.
WaitCost wait_cost_of(const nlohmann::ordered_json& object);

}  // namespace reprise
