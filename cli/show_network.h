// SPDX-License-Identifier: MIT
// Whom a job talked to, as a table and in one line.
#pragma once

#include "analyze/network.h"
#include "cli/table.h"

namespace reprise::cli {

Table network_table(const NetworkUse& use);
/// "waits for other ranks 3.2 s, for storage 0.4 s, for others 0 s, of all tasks"; empty without any.
std::string network_waits(const NetworkUse& use);

}  // namespace reprise::cli
