// SPDX-License-Identifier: MIT
// What RequestScan knows of one ring.
#pragma once

#include <vector>

#include "replay/plan/requests.h"

namespace reprise {

struct RequestScan::Ring {
    std::vector<Submitted*> submitted;  // all three by time
    std::vector<Completed*> completed;
    std::vector<Wait*> waits;
};

}  // namespace reprise
