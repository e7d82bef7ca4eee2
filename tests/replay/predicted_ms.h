// SPDX-License-Identifier: MIT
// How long a job takes on storage that serves each read of a size in a time of its own, however much is read.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "replay/predict/predict.h"
#include "tests/units.h"

namespace reprise::test {

/// All ops of the log, ms. `read_ms`: how long reads of so many bytes take.
inline double predicted_ms(const LogReader& log, const std::vector<std::pair<int64_t, int64_t>>& read_ms,
                           double time_scale = 1) {
    PredictOptions options;
    options.filter = OpFilter::all();
    options.storage.read.clear();
    for (const auto& [bytes, ms] : read_ms) {
        options.storage.read.push_back({bytes, ms * kMs});
    }
    options.storage.read_bytes_per_s = options.storage.cached_bytes_per_s = 1e15;
    options.speeds.time_scale = time_scale;
    return static_cast<double>(predict(log, options).elapsed_ns) / kMs;
}

}  // namespace reprise::test
