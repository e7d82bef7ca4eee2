// SPDX-License-Identifier: MIT
#include "cli/show_network.h"

#include "cli/units.h"

namespace reprise::cli {

Table network_table(const NetworkUse& use) {
    Table table({{"kind", "kind"},
                 {"connections", "connections", true},
                 {"sent", "bytes_sent", true},
                 {"received", "bytes_received", true},
                 {"sends", "sends", true},
                 {"receives", "receives", true},
                 {"waits", "wait_ns", true},
                 {"in sends", "send_ns", true},
                 {"retransmits", "retransmits", true},
                 {"rtt", "most_rtt_ns", true},
                 {"peer", "peer"}});
    for (const NetworkPeer& peer : use.peers) {
        const bool tcp = !peer.file_system;
        table.row({peer_kind_name(peer.kind), tcp ? count_cell(peer.connections) : Cell("-", nullptr),
                   bytes_cell(peer.bytes_sent), bytes_cell(peer.bytes_received), count_cell(peer.sends),
                   count_cell(peer.receives), duration_cell(peer.wait_ns), duration_cell(peer.send_ns),
                   tcp ? count_cell(peer.retransmits) : Cell("-", nullptr),
                   peer.most_rtt_us == 0 ? Cell("-", nullptr) : duration_cell(int64_t{peer.most_rtt_us} * 1000),
                   printable(peer.name)});
    }
    return table;
}

std::string network_waits(const NetworkUse& use) {
    if (use.empty()) {
        return {};
    }
    const auto waited = [&](PeerKind kind) { return format_duration(use.total(kind).wait_ns); };
    return "waits for other ranks " + waited(PeerKind::rank) + ", for storage " + waited(PeerKind::storage) +
           ", for others " + waited(PeerKind::other) + ", of all tasks";
}

}  // namespace reprise::cli
