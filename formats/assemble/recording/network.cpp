// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/network.h"

#include <algorithm>

namespace reprise {

void RawNetwork::see(const raw_socket& record) {
    SocketEnd& end = by_inode_[record.inode];
    // The last record comes when the connection is over: its ports are taken from it by then.
    if (record.local_port != 0 && record.remote_port != 0) {
        std::copy_n(record.local, end.local.address.size(), end.local.address.begin());
        std::copy_n(record.remote, end.remote.address.size(), end.remote.address.begin());
        end.local.port = record.local_port;
        end.remote.port = record.remote_port;
    }
    end.inode = record.inode;
    end.net = record.net;
    end.sent = std::max<uint64_t>(end.sent, record.sent);
    end.received = std::max<uint64_t>(end.received, record.received);
    end.retransmits = std::max(end.retransmits, record.retransmits);
    end.rtt_us = record.rtt_us != 0 ? record.rtt_us : end.rtt_us;
}

Sockets RawNetwork::of(const std::map<HandleId, Assembler::SocketSeen>& seen) const {
    Sockets out;
    for (const auto& [handle, socket] : seen) {
        if (socket.peer == 0) {
            continue;
        }
        if ((socket.peer & RAW_PEER_CONNECTION) == 0) {
            SocketEnd end;
            end.family = SocketEnd::Family::unix_socket;
            end.inode = socket.inode;
            end.peer_inode = socket.peer;
            end.from_start = socket.made;
            out[handle] = end;
        } else if (const auto known = by_inode_.find(socket.inode); known != by_inode_.end()) {
            out[handle] = known->second;
            out[handle].from_start = socket.made;
        }
    }
    return out;
}

}  // namespace reprise
