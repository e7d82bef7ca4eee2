// SPDX-License-Identifier: MIT
// What the kernel program takes from each system call: rules made from formats/oplog/syscalls.def.
#pragma once

#include <array>

#include "capture/bpf/shared.h"

namespace reprise {

using CallRules = std::array<call_rule, CALL_LIMIT>;
CallRules call_rules();

}  // namespace reprise
