// SPDX-License-Identifier: MIT
// Reads what RawContext left in a log's header: what happened around the job, as rates and shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/oplog/tables.h"

namespace reprise {

struct ContextSeries {
    std::string name, unit;      // "I/O pressure, some", "%"
    std::vector<double> values;  // of one interval each
};

struct Context {
    int64_t interval_ns = 0;
    std::vector<ContextSeries> series;
};

/// Empty where the header has none, or none that can be read.
Context read_context(const Header& header);

}  // namespace reprise
