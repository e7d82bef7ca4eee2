// SPDX-License-Identifier: MIT
// Whom a job talked to over the network, and how long it waited for them: other ranks apart from storage.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/oplog/socket_peers.h"

namespace reprise {

struct NetworkPeer {
    PeerKind kind = PeerKind::other;
    std::string name;  // "rank 3", "10.0.0.9:443"; of file systems their type
    bool file_system = false;
    uint64_t connections = 0;
    uint64_t sends = 0, receives = 0;  // calls that moved bytes
    uint64_t bytes_sent = 0, bytes_received = 0;
    int64_t wait_ns = 0;       // in receives, and in polls that a receive followed; of all tasks
    int64_t send_ns = 0;       // in sends
    uint64_t retransmits = 0;  // segments, where the kernel told
    uint32_t most_rtt_us = 0;  // of its connections, the longest smoothed round-trip time; 0: not known
};

struct NetworkUse {
    std::vector<NetworkPeer> peers;  // most bytes first
    bool empty() const { return peers.empty(); }
    /// Of all peers of a kind.
    NetworkPeer total(PeerKind kind) const;
};

/// One pass over the log; none where it knows no connections and no file system on a network. `progress` gets ops.
NetworkUse network_use(const LogReader& log, const std::function<void(uint64_t)>& progress = {});

}  // namespace reprise
