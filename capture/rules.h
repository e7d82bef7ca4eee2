// SPDX-License-Identifier: MIT
// The table of recorded calls (capture/calls.def) as the BPF programs want it.
#pragma once

#include <array>

#include "capture/bpf/shared.h"

namespace reprise {

using CallRules = std::array<call_rule, CALL_LIMIT>;
CallRules call_rules();

}  // namespace reprise
