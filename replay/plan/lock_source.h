// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "formats/oplog/oplog.h"

namespace reprise {

/// An op that took or gave back a lock of a file.
struct LockSource {
    TaskId task = 0;
    uint64_t op = 0;
    int64_t end = 0;
};

}  // namespace reprise
