// SPDX-License-Identifier: MIT
#include "replay/cluster/cluster.h"

#include <algorithm>
#include <cstddef>

#include "formats/support/error.h"
#include "replay/cluster/cluster_run.h"

namespace reprise {
namespace {

constexpr double kBusyEnough = 0.95;  // accelerators that work so much of the time are the bound themselves
constexpr double kCached = 0.9;       // of what the log reads, from the storage

std::string bound_of(const ClusterResult& r) {
    if (r.au_mlperf >= kBusyEnough) {
        return "accelerators";
    }
    const double reduce = r.all_reduce_s * static_cast<double>(r.steps);
    const double waits = r.wait_others_s + r.wait_data_s;
    if (reduce >= waits) {
        return reduce > 0 ? "all-reduce" : "the ranks themselves";
    }
    // A rank that is late makes the others wait: what holds up its reads decides, where anything does.
    const auto most = std::max_element(r.delay_s.begin(), r.delay_s.end());
    if (*most >= std::max(r.fetch_alone_s, r.decode_s)) {
        return cluster_limit_name(static_cast<ClusterLimit>(most - r.delay_s.begin()));
    }
    if (r.wait_others_s > r.wait_data_s) {
        return "the slowest rank of each step";
    }
    return r.decode_s > r.fetch_alone_s ? "a rank's own decoding" : "latency of a rank's own reads";
}

}  // namespace

std::string cluster_limit_name(ClusterLimit limit) {
    switch (limit) {
        case ClusterLimit::read_bandwidth: return "storage bandwidth";
        case ClusterLimit::read_requests: return "storage requests per second";
        case ClusterLimit::device: return "storage with so many requests at once";
        case ClusterLimit::names: return "metadata rate";
        case ClusterLimit::write_bandwidth: return "storage write bandwidth";
        case ClusterLimit::client: return "storage client of a host";
        case ClusterLimit::nic: return "network of a host";
        case ClusterLimit::cpus: return "processors of a host";
    }
    return {};
}

void check_cluster(const JobProfile& profile, uint64_t accelerators, uint64_t hosts) {
    const auto text = [](uint64_t n) { return std::to_string(n); };
    if (accelerators == 0 || accelerators > ClusterOptions::kMost || hosts == 0) {
        throw usage_error("--gpus is " + text(accelerators) + " and --hosts " + text(hosts) + ", expected 1 to " +
                              text(ClusterOptions::kMost) + " and at least 1",
                          "for example --gpus 64 --hosts 8");
    }
    if (accelerators % profile.accelerators != 0) {
        throw usage_error("--gpus " + text(accelerators) + " is no multiple of the " + text(profile.accelerators) +
                              " accelerators of the log, which is copied as a whole",
                          "ask for " + text((accelerators / profile.accelerators + 1) * profile.accelerators));
    }
    const uint64_t copies = accelerators / profile.accelerators;
    if (copies % hosts != 0) {
        const uint64_t each = std::max<uint64_t>(1, (copies + hosts - 1) / hosts);
        throw usage_error(
            "--gpus " + text(accelerators) + " do not divide evenly over --hosts " + text(hosts) +
                (profile.accelerators > 1 ? ", " + text(profile.accelerators) + " of the log together" : ""),
            "ask for --gpus " + text(each * hosts * profile.accelerators) + ", or for as many hosts as divide them");
    }
}

ClusterResult simulate_cluster(const JobProfile& profile, const ClusterOptions& options) {
    check_cluster(profile, options.accelerators, options.hosts);
    ClusterResult out = run_cluster(profile, options);
    out.bound = bound_of(out);
    return out;
}

std::vector<std::string> cluster_guesses(const JobProfile& profile, const ClusterOptions& options) {
    std::vector<std::string> out;
    const uint64_t copies = options.accelerators / profile.accelerators;
    if (copies > 1) {
        out.push_back("every accelerator does what the " +
                      std::string(profile.accelerators == 1 ? "one" : std::to_string(profile.accelerators)) +
                      " of the log did" +
                      (options.scatter ? ", with its samples and step times in another order" : ", at the same time"));
    }
    const SharedStorage& shared = options.storage.shared;
    if (!shared.given()) {
        out.emplace_back(
            "the storage model does not say what all clients share: what one client measured is taken for "
            "what all can have together");
    }
    if (shared.names_per_s <= 0) {
        out.emplace_back("no limit of open, stat and the like per second (shared.names_per_s of the storage model)");
    }
    if (options.network.gradient_bytes <= 0 && options.in_step && copies > 1) {
        out.emplace_back("an all-reduce takes no time (gradient_bytes of the network model)");
    }
    if (options.network.storage_bytes_per_s <= 0) {
        out.emplace_back("no limit of a host's network to the storage (storage_bytes_per_s of the network model)");
    }
    if (options.cpus == 0) {
        out.emplace_back("hosts have as many processors as threads that compute (--cpus)");
    }
    if (profile.writes && !options.all_write && copies > 1) {
        out.emplace_back("what the log writes, the first copy writes alone, as rank 0 does with a checkpoint");
    }
    out.emplace_back("each copy reads samples of its own: what one has read is in no other's page cache");
    const auto read = static_cast<double>(profile.alone.bytes_read),
               fetched = static_cast<double>(profile.alone.storage_bytes);
    if (fetched < kCached * read) {
        out.emplace_back(
            "of what the log reads, some is read again and then in its page cache: ranks that get other "
            "samples in each epoch ask the storage for more (predict a log of one epoch)");
    }
    if (profile.unsynced_bytes > 0) {
        out.emplace_back("data that is written and never synced does not reach the storage");
    }
    if (profile.locks != 0) {
        out.emplace_back("locks that the job holds during calls on files do not hold up its other threads");
    }
    if (options.storage.read_step_ns > 0) {
        out.emplace_back("limits that let data through in steps (blk-throttle) are taken to be even");
    }
    return out;
}

}  // namespace reprise
