// SPDX-License-Identifier: MIT
#include "formats/export/perfetto/network_lanes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace reprise {

NetworkLanes::NetworkLanes(const LogReader& log, TraceEvents& to, MakeLane lane)
    : to_(to), lane_(std::move(lane)), peers_(log) {
    if (peers_.empty()) {
        return;
    }
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            if ((kind == OpKind::send || kind == OpKind::receive) && peers_.knows(block.handle[i])) {
                peers_.used_by(block.handle[i], block.task);
            }
        }
        log.forget(where);
    }
}

void NetworkLanes::op(TaskId task, const Op& op) {
    const bool message = op.kind == OpKind::send || op.kind == OpKind::receive;
    if (peers_.empty() || !(message || op.kind == OpKind::wait)) {
        return;
    }
    if (op.kind == OpKind::wait) {
        const bool polls = may_poll(op.arg) && op.result >= 0;
        tracks_[task].poll = polls ? std::optional(Poll{op.begin, op.duration}) : std::nullopt;
        return;
    }
    if (!peers_.knows(op.handle)) {
        return;
    }
    Track& track = tracks_[task];
    if (op.kind == OpKind::receive && track.poll) {
        draw(task, track, op, *std::exchange(track.poll, std::nullopt), true);
    }
    draw(task, track, op, {op.begin, op.duration}, false);
}

void NetworkLanes::draw(TaskId task, Track& track, const Op& message, const Poll& time, bool polled) {
    if (!track.lane) {
        track.lane = lane_(task);
    }
    const auto [kind, peer] = peers_.peer_of(message.handle);
    // Kinds whose peers are called by an address alone.
    const bool bare = kind == PeerKind::storage || kind == PeerKind::other;
    const std::string whom = bare ? std::string(peer_kind_name(kind)) + " " + peer : peer;
    to_.event("X", track.lane->pid, track.lane->tid);
    to_.text("name", (message.kind == OpKind::send ? "send to " : "wait for ") + whom);
    to_.text("cat", "network");
    to_.time(time.begin);
    to_.duration(std::max<int64_t>(time.duration, 0));
    to_.args();
    to_.text("kind", peer_kind_name(kind));
    to_.text("peer", peer);
    to_.number("bytes", std::max<int64_t>(message.result, 0));
    to_.text("in", polled ? "a poll before the receive" : message.kind == OpKind::send ? "send" : "receive");
    to_.args_end();
    to_.end();
}

}  // namespace reprise
