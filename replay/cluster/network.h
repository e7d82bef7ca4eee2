// SPDX-License-Identifier: MIT
// The network of a cluster in a few numbers: what an all-reduce takes, and what a host gets from the storage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace reprise {

/// Latency and bandwidth (Hockney's alpha-beta model). Everything has a default that costs nothing.
struct NetworkModel {
    static constexpr int kVersion = 1;
    enum class Algorithm : uint8_t { ring, tree };

    Algorithm algorithm = Algorithm::ring;  // between hosts
    double latency_us = 0;                  // of a message between hosts
    double host_bytes_per_s = 0;            // each way, of all adapters of a host together; 0: no limit
    double fabric_bytes_per_s = 0;          // all hosts together: bisection; 0: no limit
    double inside_latency_us = 0;           // between accelerators of a host
    double inside_bytes_per_s = 0;          // of each accelerator; 0: no limit
    double gradient_bytes = 0;              // all-reduced after each step
    double overlap = 0;                     // share of it that is hidden behind the step, 0 to 1
    double storage_bytes_per_s = 0;         // that a host gets from the storage; 0: no limit

    /// What an all-reduce adds to a step, ns. `accelerators`: all, evenly over `hosts`.
    double all_reduce_ns(uint64_t accelerators, uint64_t hosts) const;
};

/// JSON. Throws Error (bad_input) that names the file and the field, also one that is unknown.
NetworkModel read_network_model(const std::filesystem::path& path);

}  // namespace reprise
