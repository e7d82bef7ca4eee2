// SPDX-License-Identifier: MIT
// Whom a job's sockets join it with: other ranks apart from storage.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/oplog/sockets.h"

namespace reprise {

/// What the other end of a connection is. The rule, first match (docs/capture.md):
///   rank     a socket of another rank in this log; or, of a recording of one rank, a peer where neither port is a
///            service's (below 1024, or a storage port)
///   job      a socket of the job itself, in the same rank
///   storage  a service at a port of object stores, NFS, parallel file systems
///   other    anything else
enum class PeerKind : uint8_t { rank, job, storage, other };
std::string_view peer_kind_name(PeerKind kind);
bool is_storage_port(uint16_t port);

/// Whether a wait, by its `arg`, may be a poll: the receive that follows it in its task is what it waited for then.
bool may_poll(int64_t arg);

class SocketPeers {
public:
    /// Throws Error (bad_input) where the table of connections makes no sense.
    explicit SocketPeers(const LogReader& log);

    /// The log knows no connections.
    bool empty() const { return sockets_.empty(); }
    bool knows(HandleId handle) const { return sockets_.contains(handle); }
    const SocketEnd& end(HandleId handle) const { return sockets_.at(handle); }
    uint32_t rank_of(TaskId task) const;

    /// A task sends or receives by this socket, which is known. The first one says whose the socket is.
    void used_by(HandleId handle, TaskId task);
    /// Of a known socket: what its other end is, and how that is called: "rank 3", "10.0.0.9:443". After all used_by().
    std::pair<PeerKind, std::string> peer_of(HandleId handle) const;

private:
    using Ends = std::tuple<std::string, std::string>;
    static Ends ends(const SocketEnd& end);
    uint32_t owner_of(HandleId handle) const;

    const Tables& tables_;
    const Sockets sockets_;
    const std::vector<uint32_t> rank_of_process_;
    const bool one_rank_;
    std::map<HandleId, uint32_t> owners_;  // ranks
    std::map<Ends, HandleId> by_ends_;
};

}  // namespace reprise
