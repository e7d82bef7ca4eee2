// SPDX-License-Identifier: MIT
#include "replay/cluster/cluster_storage.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reprise {
namespace {

double known(double given, double otherwise) { return given > 0 ? given : otherwise; }

}  // namespace

ClusterStorage::ClusterStorage(const ClusterOptions& options)
    : model_(options.storage), by_depth_(model_.read_depth), hosts_(options.hosts) {
    const SharedStorage& shared = model_.shared;
    const auto burst = static_cast<double>(model_.read_burst_ns);
    bytes_ = SharedLimit(known(shared.read_bytes_per_s, model_.read_bytes_per_s), shared.given() ? 0 : burst);
    requests_ = SharedLimit(known(shared.reads_per_s, model_.reads_per_s), shared.given() ? 0 : burst);
    names_ = SharedLimit(shared.names_per_s);
    writes_ = SharedLimit(known(shared.write_bytes_per_s, model_.write_bytes_per_s));
    // Whoever says what all share says that one client was measured: its device is that of each host.
    device_by_host_ = shared.given();
    const double channels = by_depth_.empty() ? 1e9 * model_.parallelism : 0;
    device_.channels = SharedLimit(device_by_host_ ? 0 : channels);
    for (Host& host : hosts_) {
        host.bytes =
            SharedLimit(known(shared.client_read_bytes_per_s, device_by_host_ ? model_.read_bytes_per_s : 0), burst);
        host.requests = SharedLimit(known(shared.client_reads_per_s, device_by_host_ ? model_.reads_per_s : 0), burst);
        host.nic = SharedLimit(options.network.storage_bytes_per_s);
        host.cpus = SharedLimit(1e9 * options.cpus);
        host.device.channels = SharedLimit(device_by_host_ ? channels : 0);
    }
}

double ClusterStorage::by_device(Device& device, const Fetch& part, double now) const {
    const double each = std::max(part.requests, 1.0);
    const auto bytes = static_cast<int64_t>(part.bytes / each);
    if (by_depth_.empty()) {
        const double work = each * static_cast<double>(model_.read_ns(bytes));
        return std::max(now + part.alone_ns, device.channels.pass(work, now));
    }
    const double work = by_depth_.work_ns(bytes);
    const double depth = 1 + device.in_flight.others(work, std::llround(now));
    const double end = now + part.alone_ns + each * by_depth_.extra_ns(bytes, depth);
    device.in_flight.add(work, std::llround(end));
    device.busy_ns += each * work;
    return end;
}

double ClusterStorage::fetch(uint64_t host, const Fetch& part, double now) {
    Host& own = hosts_[host];
    const double alone = now + part.alone_ns;
    const std::array<std::pair<ClusterLimit, double>, 5> ends{
        {{ClusterLimit::device, by_device(device_by_host_ ? own.device : device_, part, now)},
         {ClusterLimit::read_bandwidth, bytes_.pass(part.bytes, now)},
         {ClusterLimit::read_requests, requests_.pass(part.requests, now)},
         {ClusterLimit::client, std::max(own.bytes.pass(part.bytes, now), own.requests.pass(part.requests, now))},
         {ClusterLimit::nic, own.nic.pass(part.bytes, now)}}};
    const auto* const last =
        std::max_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    alone_ns_ += part.alone_ns;
    return later(last->first, alone, last->second);
}

std::array<double, kClusterLimits> ClusterStorage::use(double elapsed_ns) const {
    std::array<double, kClusterLimits> out{};
    const auto most = [&](ClusterLimit limit, double use) {
        double& to = out[static_cast<size_t>(limit)];
        to = std::max(to, use);
    };
    const auto device = [&](const Device& one) {
        most(ClusterLimit::device, one.channels.use(elapsed_ns));
        most(ClusterLimit::device, elapsed_ns > 0 ? one.busy_ns / elapsed_ns : 0);
    };
    most(ClusterLimit::read_bandwidth, bytes_.use(elapsed_ns));
    most(ClusterLimit::read_requests, requests_.use(elapsed_ns));
    most(ClusterLimit::names, names_.use(elapsed_ns));
    most(ClusterLimit::write_bandwidth, writes_.use(elapsed_ns));
    device(device_);
    for (const Host& host : hosts_) {
        most(ClusterLimit::client, std::max(host.bytes.use(elapsed_ns), host.requests.use(elapsed_ns)));
        most(ClusterLimit::nic, host.nic.use(elapsed_ns));
        most(ClusterLimit::cpus, host.cpus.use(elapsed_ns));
        device(host.device);
    }
    return out;
}

}  // namespace reprise
