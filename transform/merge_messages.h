// SPDX-License-Identifier: MIT
// Messages between ranks: byte streams whose two ends are in two of the logs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/oplog/sockets.h"

namespace reprise {

/// An edge between logs: op `op` of `task` of log `log` may start only after `source_op` of `source_task` of
/// `source_log`. Ids are those of the logs.
struct RankEdge {
    uint32_t log = 0;
    TaskId task = 0;
    uint64_t op = 0;
    uint32_t source_log = 0;
    TaskId source_task = 0;
    uint64_t source_op = 0;
};

class MergeMessages {
public:
    /// Finds the connections between logs: the same two addresses the other way round (those of the loopback device:
    /// on the same machine), or Unix sockets of one machine. `machine[log]`: logs of equal numbers are of one machine.
    MergeMessages(const std::vector<const LogReader*>& logs, const std::vector<size_t>& machine);

    /// Ops of a log, block by block, per task in order.
    void see(size_t log, const OpBlock& block);
    /// Whether a log has a connection to another one at all.
    bool has_any(size_t log) const { return !of_handle_[log].empty(); }

    /// Calls visit(from log, to log, begin of the send, end of the receive) for each message, times of its own log.
    void each_message(const std::function<void(size_t, size_t, int64_t, int64_t)>& visit);
    /// `offset(log)`: added to its times. Edges by (log, task, op); also to the wait that came before a receive, where
    /// nothing else explains it.
    std::vector<RankEdge> edges(const std::function<int64_t(size_t)>& offset);

    uint64_t connections() const { return streams_.size() / 2; }
    uint64_t older() const { return older_; }
    uint64_t dropped() const { return dropped_; }
    uint64_t waits() const { return waits_; }
    /// Receives whose sends were found.
    uint64_t received() const { return received_; }

private:
    static constexpr uint32_t kNone = UINT32_MAX;
    struct Sent {
        int64_t to = 0;  // bytes of the stream up to here
        int64_t begin = 0, end = 0;
        uint64_t op = 0;
        TaskId task = 0;
    };
    struct Received {
        int64_t to = 0;
        int64_t begin = 0, end = 0;
        uint64_t op = 0;
        TaskId task = 0;
        uint32_t wait_before = 0;  // ops before `op` at which the task waited for it; 0: it did not
        int64_t wait_begin = 0, wait_end = 0;
    };
    struct Stream {
        uint32_t from = 0, to = 0;  // logs
        std::vector<Sent> sent;
        std::vector<Received> received;
    };
    /// What a log's handle is the end of.
    struct Ends {
        uint32_t out = kNone, in = kNone;
    };
    struct LastWait {
        uint64_t op = 0;
        int64_t begin = 0, end = 0;
        bool open = false;  // nothing has explained it yet
    };

    void connect(size_t a, HandleId mine, size_t b, HandleId theirs);
    void note_send(size_t log, HandleId handle, const OpBlock& block, size_t i, int64_t offset);
    void note_receive(size_t log, const OpBlock& block, size_t i, LastWait& wait);
    static void sort(Stream& stream);

    std::vector<Stream> streams_;
    std::vector<std::unordered_map<HandleId, Ends>> of_handle_;     // by log
    std::vector<std::unordered_map<TaskId, LastWait>> last_waits_;  // by log
    uint64_t older_ = 0, dropped_ = 0, waits_ = 0, received_ = 0;
};

}  // namespace reprise
