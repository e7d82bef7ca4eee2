// SPDX-License-Identifier: MIT
// The storage system of a cluster: limits that all hosts share, and those of each host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/cluster/cluster.h"
#include "replay/cluster/shared_limit.h"
#include "replay/predict/depth_curve.h"

namespace reprise {

class ClusterStorage {
public:
    explicit ClusterStorage(const ClusterOptions& options);

    /// Part of a segment.
    struct Fetch {
        double alone_ns = 0, requests = 0, bytes = 0;
    };
    /// When it is over that a host asks for at `now`, ns. In the order of `now`.
    double fetch(uint64_t host, const Fetch& part, double now);
    double names(double count, double now) { return later(ClusterLimit::names, now, names_.pass(count, now)); }
    double write(double bytes, double alone_ns, double now) {
        return later(ClusterLimit::write_bandwidth, now + alone_ns, writes_.pass(bytes, now));
    }
    double compute(uint64_t host, double ns, double now) {
        return later(ClusterLimit::cpus, now + ns, hosts_[host].cpus.pass(ns, now));
    }

    std::array<double, kClusterLimits> use(double elapsed_ns) const;
    /// ns, of all tasks: how much longer than alone they took because of each limit.
    const std::array<double, kClusterLimits>& delays() const { return delays_; }
    /// ns, of all fetches alone.
    double alone_ns() const { return alone_ns_; }

private:
    /// One after the other, or beside each other: what was measured on one client.
    struct Device {
        SharedLimit channels;
        InFlightWork in_flight;
        double busy_ns = 0;  // of what it can do at most
    };
    struct Host {
        SharedLimit bytes, requests, nic, cpus;
        Device device;
    };
    /// Of two times the later one; the difference is the limit's doing.
    double later(ClusterLimit limit, double without, double with) {
        if (with > without) {
            delays_[static_cast<size_t>(limit)] += with - without;
            return with;
        }
        return without;
    }
    double by_device(Device& device, const Fetch& part, double now) const;

    const StorageModel& model_;
    const DepthCurve by_depth_;
    SharedLimit bytes_, requests_, names_, writes_;
    bool device_by_host_ = false;
    Device device_;
    std::vector<Host> hosts_;
    std::array<double, kClusterLimits> delays_{};
    double alone_ns_ = 0;
};

}  // namespace reprise
