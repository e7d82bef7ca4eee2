// SPDX-License-Identifier: MIT
// --metrics: live figures for Prometheus (docs/metrics.md).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"
#include "metrics/exposition.h"
#include "metrics/server.h"

namespace reprise::cli {

void add_metrics_option(po::options_description& options);
/// Serves what `text` returns, and says where on standard error; null where --metrics was not given. Throws Error
/// where that is no address, or one that cannot be had.
std::unique_ptr<MetricsServer> serve_metrics(const po::variables_map& values, std::function<std::string()> text);

/// What every command serves.
void add_process_metrics(Exposition& out);

}  // namespace reprise::cli
