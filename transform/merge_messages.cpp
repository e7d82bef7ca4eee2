// SPDX-License-Identifier: MIT
#include "transform/merge_messages.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace reprise {
namespace {

/// ns by which the begin of a call may have been moved, as what the recorder took was left out of it.
constexpr int64_t kMoved = 20'000;

/// One end of a connection: where it is, who it is, whom it talks to.
struct EndName {
    std::string place, self, peer;
    bool operator<(const EndName& other) const {
        return std::tie(place, self, peer) < std::tie(other.place, other.self, other.peer);
    }
};

EndName name_of(const SocketEnd& end, size_t machine) {
    const std::string of_machine = std::to_string(machine);
    if (end.family == SocketEnd::Family::unix_socket) {
        return {"unix " + of_machine, std::to_string(end.inode), std::to_string(end.peer_inode)};
    }
    // Every network namespace has its own loopback device.
    const bool local = is_loopback(end.local.address) || is_loopback(end.remote.address);
    return {local ? "tcp " + of_machine + " " + std::to_string(end.net) : std::string("tcp"), to_text(end.local),
            to_text(end.remote)};
}

bool is_poll(const OpBlock& block, size_t i) {
    const int64_t what = wait_class(block.arg[i]);
    return static_cast<OpKind>(block.kind[i]) == OpKind::wait && block.result[i] >= 0 &&
           (what == kWaitPoll || what == kWaitEpoll || what == kWaitUnknown);
}

}  // namespace

MergeMessages::MergeMessages(const std::vector<const LogReader*>& logs, const std::vector<size_t>& machine)
    : of_handle_(logs.size()), last_waits_(logs.size()) {
    struct End {
        size_t log;
        HandleId handle;
        bool from_start;
    };
    std::map<EndName, std::vector<End>> ends;
    for (size_t log = 0; log < logs.size(); ++log) {
        for (const auto& [handle, end] : recorded_sockets(*logs[log])) {
            const bool named = end.family == SocketEnd::Family::unix_socket || (end.local.port && end.remote.port);
            if (named) {
                ends[name_of(end, machine[log])].push_back({log, handle, end.from_start});
            }
        }
    }
    for (const auto& [name, mine] : ends) {
        const auto found = ends.find({name.place, name.peer, name.self});
        if (found == ends.end() || name.self > name.peer) {
            continue;  // each pair once
        }
        // Connections that had the same addresses one after the other: in the order in which they were made.
        const auto& theirs = found->second;
        for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
            const auto& [a, handle_a, whole_a] = mine[i];
            const auto& [b, handle_b, whole_b] = theirs[i];
            if (a == b) {
                continue;  // its edges are there
            }
            if (!whole_a || !whole_b) {
                ++older_;  // how many bytes went before is not known
                continue;
            }
            connect(a, handle_a, b, handle_b);
        }
    }
}

void MergeMessages::connect(size_t a, HandleId mine, size_t b, HandleId theirs) {
    const auto there = static_cast<uint32_t>(streams_.size());
    streams_.push_back({static_cast<uint32_t>(a), static_cast<uint32_t>(b), {}, {}});
    streams_.push_back({static_cast<uint32_t>(b), static_cast<uint32_t>(a), {}, {}});
    of_handle_[a][mine] = {there, there + 1};
    of_handle_[b][theirs] = {there + 1, there};
}

void MergeMessages::note_send(size_t log, HandleId handle, const OpBlock& block, size_t i, int64_t offset) {
    const auto found = of_handle_[log].find(handle);
    if (found == of_handle_[log].end() || block.result[i] <= 0 || offset < 0 || offset > INT64_MAX - block.result[i]) {
        return;
    }
    streams_[found->second.out].sent.push_back(
        {offset + block.result[i], block.begin[i], block.begin[i] + block.duration[i], block.first + i, block.task});
}

void MergeMessages::note_receive(size_t log, const OpBlock& block, size_t i, LastWait& wait) {
    constexpr int64_t kPeek = 2;  // MSG_PEEK: the bytes come again
    const auto found = of_handle_[log].find(block.handle[i]);
    const int64_t bytes = block.result[i], offset = block.offset[i];
    if (found == of_handle_[log].end() || bytes <= 0 || offset < 0 || offset > INT64_MAX - bytes ||
        (block.flags[i] & kPeek) != 0) {
        return;
    }
    Received received{
        offset + bytes, block.begin[i], block.begin[i] + block.duration[i], block.first + i, block.task, 0, 0, 0};
    const uint64_t before = received.op - wait.op;
    if (std::exchange(wait.open, false) && before != 0 && before < kNone) {
        received.wait_before = static_cast<uint32_t>(before);
        received.wait_begin = wait.begin;
        received.wait_end = wait.end;
    }
    streams_[found->second.in].received.push_back(received);
}

void MergeMessages::see(size_t log, const OpBlock& block) {
    if (!has_any(log)) {
        return;
    }
    LastWait& wait = last_waits_[log][block.task];
    for (size_t i = 0; i < block.count(); ++i) {
        switch (static_cast<OpKind>(block.kind[i])) {
            case OpKind::send: note_send(log, block.handle[i], block, i, block.offset[i]); break;
            case OpKind::sendfile:
            case OpKind::splice: note_send(log, block.handle2[i], block, i, block.offset2[i]); break;
            case OpKind::receive: note_receive(log, block, i, wait); break;
            case OpKind::wait:
                wait = {block.first + i, block.begin[i], block.begin[i] + block.duration[i],
                        is_poll(block, i) && block.edges_of(i).empty()};
                break;
            default: break;
        }
    }
}

// Blocks of a log come in any order of tasks, so several senders of one stream are not in order yet.
void MergeMessages::sort(Stream& stream) {
    const auto earlier = [](const auto& a, const auto& b) { return std::tie(a.to, a.begin) < std::tie(b.to, b.begin); };
    std::sort(stream.sent.begin(), stream.sent.end(), earlier);
    std::sort(stream.received.begin(), stream.received.end(), earlier);
}

void MergeMessages::each_message(const std::function<void(size_t, size_t, int64_t, int64_t)>& visit) {
    for (Stream& stream : streams_) {
        sort(stream);
        auto sent = stream.sent.begin();
        for (const Received& received : stream.received) {
            while (sent != stream.sent.end() && sent->to < received.to) {
                ++sent;
            }
            if (sent == stream.sent.end()) {
                break;
            }
            visit(stream.from, stream.to, sent->begin, received.end);
        }
    }
}

std::vector<RankEdge> MergeMessages::edges(const std::function<int64_t(size_t)>& offset) {
    std::vector<RankEdge> out;
    for (Stream& stream : streams_) {
        sort(stream);
        const int64_t later = offset(stream.to) - offset(stream.from);  // the receiver's time in the sender's
        auto sent = stream.sent.begin();
        for (const Received& received : stream.received) {
            while (sent != stream.sent.end() && sent->to < received.to) {
                ++sent;
            }
            if (sent == stream.sent.end()) {
                break;
            }
            // As within a log: of a source that had not ended when the target went on, the op before it is certain.
            // So time runs backwards along edges, and they form no circle.
            const auto add = [&](uint64_t op, int64_t end, int64_t moved) {
                if (sent->begin >= end + later + moved || (sent->end > end + later && sent->op == 0)) {
                    return false;
                }
                const uint64_t source = sent->end > end + later ? sent->op - 1 : sent->op;
                out.push_back({stream.to, received.task, op, stream.from, sent->task, source});
                return true;
            };
            ++received_;
            dropped_ += sent->begin >= received.end + later + kMoved;
            add(received.op, received.end, kMoved);
            // The message came while the task waited: that is what the wait was for.
            if (received.wait_before != 0 && sent->end > received.wait_begin + later) {
                waits_ += add(received.op - received.wait_before, received.wait_end, 0);
            }
        }
    }
    std::sort(out.begin(), out.end(), [](const RankEdge& a, const RankEdge& b) {
        return std::tie(a.log, a.task, a.op) < std::tie(b.log, b.task, b.op);
    });
    return out;
}

}  // namespace reprise
