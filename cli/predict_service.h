// SPDX-License-Identifier: MIT
// `predict --service`: calls take the times of a recording in place of those of a storage model.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "formats/oplog/oplog.h"
#include "replay/predict/predict.h"
#include "replay/predict/service_times.h"

namespace reprise::cli {

void add_service_option(po::options_description& add);
bool service_given(const po::variables_map& values);

/// Where the times come from. Outlives the prediction.
struct Service {
    CallTimes calls = CallTimes::recorded;
    std::unique_ptr<const ServiceTimes> times;  // where they are drawn
    std::string from;                           // "recorded", or the log's name

    void put(PredictOptions& how) const;
};
/// Throws Error (usage) where other options ask for a storage model, or there are no times to take; (bad input) where
/// the log named by the option cannot be read or has losses, unless --allow-loss.
Service service_of(const po::variables_map& values, const LogReader& log);

/// "drawn from dlio.oplog; it has none of lseek (3), which take the times of their own log", or "as recorded"
std::string service_line(const Service& service, const Prediction& prediction);

}  // namespace reprise::cli
