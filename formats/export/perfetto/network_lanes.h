// SPDX-License-Identifier: MIT
// Network waits on a timeline: a lane for each task that sends or receives over connections whose ends the log knows,
// with a slice for each wait and each send that names the peer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "formats/export/perfetto/trace_events.h"
#include "formats/oplog/op.h"
#include "formats/oplog/socket_peers.h"

namespace reprise {

class NetworkLanes {
public:
    /// Where a task's lane is: process and thread of the viewer. Called once for each task, which names the lane.
    struct Lane {
        int64_t pid = 0, tid = 0;
    };
    using MakeLane = std::function<Lane(TaskId)>;

    /// Reads the log's messages to learn whose sockets are whose, where it knows connections. All outlive it.
    NetworkLanes(const LogReader& log, TraceEvents& to, MakeLane lane);
    NetworkLanes(const NetworkLanes&) = delete;
    NetworkLanes& operator=(const NetworkLanes&) = delete;

    /// The ops of a task in their order. Drawn: sends; receives, and the poll before one, as waits. What they last adds
    /// up to what network_use() says.
    void op(TaskId task, const Op& op);

private:
    struct Poll {
        int64_t begin = 0, duration = 0;
    };
    struct Track {
        std::optional<Lane> lane;
        std::optional<Poll> poll;  // that no receive has followed yet
    };
    void draw(TaskId task, Track& track, const Op& message, const Poll& time, bool polled);

    TraceEvents& to_;
    const MakeLane lane_;
    SocketPeers peers_;
    std::map<TaskId, Track> tracks_;
};

}  // namespace reprise
