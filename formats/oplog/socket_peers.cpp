// SPDX-License-Identifier: MIT
#include "formats/oplog/socket_peers.h"

#include <algorithm>
#include <iterator>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/ranks.h"

namespace reprise {
namespace {

// HTTP and HTTPS (S3, GCS, Azure and their like), MinIO, Ceph's gateway and daemons, NFS, SMB, Lustre, BeeGFS, Gluster.
constexpr uint16_t kStoragePorts[] = {80,   443,  445,  988,  2049, 3300, 6789, 7480, 8000,
                                      8003, 8004, 8005, 8008, 8080, 9000, 9020, 24007};
constexpr uint16_t kServices = 1024;    // ports below it are given to services
constexpr uint16_t kEphemeral = 32768;  // Linux chooses from here on where nobody asks for one

}  // namespace

std::string_view peer_kind_name(PeerKind kind) {
    switch (kind) {
        case PeerKind::rank: return "rank";
        case PeerKind::job: return "job";
        case PeerKind::storage: return "storage";
        case PeerKind::other: return "other";
    }
    return "?";
}

bool is_storage_port(uint16_t port) {
    return std::find(std::begin(kStoragePorts), std::end(kStoragePorts), port) != std::end(kStoragePorts);
}

bool may_poll(int64_t arg) {
    const int64_t what = wait_class(arg);
    return what == kWaitPoll || what == kWaitEpoll || what == kWaitUnknown;
}

SocketPeers::SocketPeers(const LogReader& log)
    : tables_(log.tables()),
      sockets_(recorded_sockets(log)),
      rank_of_process_(recorded_ranks(log.header(), log.tables()).of_process),
      one_rank_(read_fact(log.header(), fact::rank).has_value()) {
    for (const auto& [handle, end] : sockets_) {
        by_ends_[ends(end)] = handle;
    }
}

uint32_t SocketPeers::rank_of(TaskId task) const {
    const ProcessId process = task < tables_.tasks.size() ? tables_.tasks[task].process : 0;
    return process < rank_of_process_.size() ? rank_of_process_[process] : kNoRank;
}

void SocketPeers::used_by(HandleId handle, TaskId task) {
    uint32_t& owner = owners_.try_emplace(handle, kNoRank).first->second;
    owner = owner == kNoRank ? rank_of(task) : owner;
}

SocketPeers::Ends SocketPeers::ends(const SocketEnd& end) {
    if (end.family == SocketEnd::Family::unix_socket) {
        return {"unix " + std::to_string(end.inode), "unix " + std::to_string(end.peer_inode)};
    }
    return {to_text(end.local), to_text(end.remote)};
}

/// Of the task that used it first, else of the process that had it.
uint32_t SocketPeers::owner_of(HandleId handle) const {
    const auto owner = owners_.find(handle);
    if (owner != owners_.end() && owner->second != kNoRank) {
        return owner->second;
    }
    const ProcessId process = tables_.handles[handle].process;
    return process < rank_of_process_.size() ? rank_of_process_[process] : kNoRank;
}

std::pair<PeerKind, std::string> SocketPeers::peer_of(HandleId handle) const {
    const SocketEnd& end = sockets_.at(handle);
    const auto owner = owners_.find(handle);
    const uint32_t rank = owner != owners_.end() ? owner->second : kNoRank;
    const auto [self, peer] = ends(end);
    const auto other = by_ends_.find({peer, self});
    if (other != by_ends_.end()) {
        const uint32_t theirs = owner_of(other->second);
        if (theirs != rank) {
            return {PeerKind::rank, theirs == kNoRank ? "launcher" : "rank " + std::to_string(theirs)};
        }
        return {PeerKind::job, "the job itself"};
    }
    if (end.family == SocketEnd::Family::unix_socket) {
        return {PeerKind::other, "Unix sockets of others"};
    }
    const uint16_t port = end.remote.port;
    if (is_storage_port(port)) {
        return {PeerKind::storage, peer};
    }
    const std::string name = port >= kEphemeral ? address_text(end.remote.address) : peer;
    const bool service = port < kServices || end.local.port < kServices || is_storage_port(end.local.port);
    return {one_rank_ && !service ? PeerKind::rank : PeerKind::other, name};
}

}  // namespace reprise
