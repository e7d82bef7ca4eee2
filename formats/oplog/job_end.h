// SPDX-License-Identifier: MIT
// How a recorded job ended, as far as its log tells.
#pragma once

#include <string>

#include "formats/oplog/oplog.h"

namespace reprise {

/// "exit code 1" or "signal 9", of the process that was started first; empty: it ended well, or the log does not say.
std::string failed_end(const LogReader& log);

}  // namespace reprise
