// SPDX-License-Identifier: MIT
// Predictions with less memory: options, the limit that follows from them, what is said of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/table.h"
#include "formats/oplog/oplog.h"
#include "replay/limit/limited_run.h"
#include "replay/predict/predict.h"

namespace reprise::cli {

void add_memory_options(po::options_description& add);

/// What a limit was made from, bytes.
struct MemoryOfJob {
    uint64_t data = 0;               // that are read of files which were there before, each once
    std::optional<uint64_t> peak{};  // that the job held itself; none: not known
};
/// Reads the log.
MemoryOfJob memory_of(const Predictor& predictor, const LogReader& log);

PageCachePolicy page_cache_policy(const po::variables_map& values);
/// None: no limit. Throws Error (machine) where the job would not fit.
std::optional<PredictedLimit> predicted_limit(const RunLimits& limits, PageCachePolicy policy, const MemoryOfJob& job);

/// "200 MiB for 800 MiB of data (ratio 4.00), two lists; job's own: up to 60 MiB"
std::string predicted_memory_line(const PredictedLimit& limit, const MemoryOfJob& job);
Json predicted_memory_json(const PredictedLimit& limit, const MemoryOfJob& job);

/// As of a replay: a row for each epoch, and what the storage served of it.
Json predicted_epochs_json(const Prediction& prediction);
std::string predicted_epochs_line(const Prediction& prediction);

}  // namespace reprise::cli
