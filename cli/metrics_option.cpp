// SPDX-License-Identifier: MIT
#include "cli/metrics_option.h"

#include <ctime>
#include <iostream>
#include <utility>

#include "cli/help.h"

namespace reprise::cli {

void add_metrics_option(po::options_description& options) {
    options.add_options()("metrics", po::value<std::string>()->value_name("[ADDR]:PORT"),
                          "serve live figures to Prometheus, as :9400 to this machine alone (docs/metrics.md)");
}

std::unique_ptr<MetricsServer> serve_metrics(const po::variables_map& values, std::function<std::string()> text) {
    if (values.count("metrics") == 0) {
        return nullptr;
    }
    const ListenAddress wanted = parse_listen_address(values["metrics"].as<std::string>(), "--metrics");
    auto server = std::make_unique<MetricsServer>(wanted, std::move(text));
    if (!quiet() || wanted.port == 0) {  // nobody could know it
        std::cerr << "metrics: http://" << to_string(server->address()) << "/metrics\n";
    }
    return server;
}

void add_process_metrics(Exposition& out) {
    out.add(Metric::build_info, {tool_version()}, uint64_t{1});
    timespec used{};
    if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0) {
        out.add(Metric::process_cpu_seconds_total, {},
                static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9);
    }
}

}  // namespace reprise::cli
