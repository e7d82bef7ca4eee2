// SPDX-License-Identifier: MIT
// Many copies of a job on many hosts in virtual time: each does what its profile says, all share a storage system.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/storage_model.h"
#include "replay/cluster/job_profile.h"
#include "replay/cluster/network.h"

namespace reprise {

/// What all or some ranks share, and may be the bound.
enum class ClusterLimit : uint8_t {
    read_bandwidth,
    read_requests,
    device,  // what the storage does with so many requests at once
    names,
    write_bandwidth,
    client,  // what a host gets from the storage by itself
    nic,
    cpus,
};
inline constexpr size_t kClusterLimits = 8;
std::string cluster_limit_name(ClusterLimit limit);

struct ClusterOptions {
    uint64_t accelerators = 1, hosts = 1;
    StorageModel storage;
    NetworkModel network;
    bool in_step = true;     // all wait for the slowest after each step
    bool scatter = true;     // copies take each other's samples and step times, in an order of their own
    bool all_write = false;  // each copy writes what the log writes; else the first one alone, and the others wait
    uint64_t seed = 1;
    int cpus = 0;                                     // of each host; 0: no limit
    std::function<void(double share)> progress = {};  // now and then

    static constexpr uint64_t kMost = 1'000'000;  // accelerators
};

struct ClusterResult {
    uint64_t accelerators = 0, hosts = 0, copies = 0;
    uint64_t steps = 0;  // of the job: most of any rank
    double elapsed_s = 0;
    double au = 0;         // busy time over elapsed time, mean of all
    double au_mlperf = 0;  // without the first step
    double step_s = 0;     // between the ends of steps, mean without the first
    double fetched_bytes = 0, requests = 0, names = 0, synced_bytes = 0;
    double all_reduce_s = 0;                       // of each step
    double wait_others_s = 0;                      // per rank: for the slowest, without the all-reduce
    double wait_data_s = 0;                        // per rank: for whatever its accelerator's task waits for
    std::array<double, kClusterLimits> delay_s{};  // of all tasks: longer than alone, because of it
    double fetch_alone_s = 0, decode_s = 0;        // of all tasks: what fetching and decoding takes alone
    std::array<double, kClusterLimits> use{};      // share of the time; of hosts' limits the greatest
    std::string bound;                             // what holds it up most
    uint64_t events = 0;
    uint32_t pieces = 1;  // most that a segment's fetches were cut into

    double bytes_per_s() const { return elapsed_s > 0 ? fetched_bytes / elapsed_s : 0; }
    /// Steps that all accelerators make together.
    double steps_per_s() const { return elapsed_s > 0 ? static_cast<double>(steps * accelerators) / elapsed_s : 0; }
};

/// Throws Error (usage) where accelerators do not divide into copies of the job, or over the hosts.
ClusterResult simulate_cluster(const JobProfile& profile, const ClusterOptions& options);

/// Throws Error (usage) as simulate_cluster() does.
void check_cluster(const JobProfile& profile, uint64_t accelerators, uint64_t hosts);

/// What of the figures is guessed or extrapolated, a sentence each.
std::vector<std::string> cluster_guesses(const JobProfile& profile, const ClusterOptions& options);

}  // namespace reprise
