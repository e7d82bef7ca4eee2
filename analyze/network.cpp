// SPDX-License-Identifier: MIT
#include "analyze/network.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/oplog/header_facts.h"

namespace reprise {
namespace {

bool is_network_file_system(std::string_view type) {
    constexpr std::string_view kTypes[] = {"nfs",    "nfs4",      "cifs",  "smb3",     "ceph", "lustre",   "9p",  "afs",
                                           "beegfs", "glusterfs", "pvfs2", "orangefs", "gpfs", "virtiofs", "fuse"};
    return type.starts_with("fuse.") || std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

/// Types of network file systems by the device numbers of their files.
std::map<uint64_t, std::string> network_devices(const Header& header) {
    std::map<uint64_t, std::string> out;
    const auto types = nlohmann::json::parse(read_fact(header, fact::file_systems).value_or("{}"), nullptr, false);
    if (!types.is_object()) {
        return out;
    }
    for (const auto& [device, type] : types.items()) {
        uint64_t major = 0, minor = 0;
        if (type.is_string() && is_network_file_system(type.get<std::string>()) &&
            std::sscanf(device.c_str(), "%lu:%lu", &major, &minor) == 2) {
            // As a stat call numbers devices.
            out[(major & 0xfffff000) << 32 | (major & 0xfff) << 8 | (minor & 0xffffff00) << 12 | (minor & 0xff)] = type;
        }
    }
    return out;
}

class Collector {
public:
    explicit Collector(const LogReader& log)
        : log_(log), tables_(log.tables()), sockets_(log), devices_(network_devices(log.header())) {}

    NetworkUse run(const std::function<void(uint64_t)>& progress) {
        NetworkUse use;
        if (sockets_.empty() && devices_.empty()) {
            return use;
        }
        OpBlock block;
        uint64_t done = 0;
        for (const BlockInfo& where : log_.blocks()) {
            log_.decode(where, block);
            see(block);
            log_.forget(where);
            done += block.count();
            if (progress) {
                progress(done);
            }
        }
        return finish();
    }

private:
    void see(const OpBlock& block) {
        int64_t polled = polled_[block.task];
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            if (kind == OpKind::wait) {
                polled = may_poll(block.arg[i]) && block.result[i] >= 0 ? block.duration[i] : 0;
            } else if (kind == OpKind::send || kind == OpKind::receive) {
                message(block, i, kind == OpKind::send, polled);
            } else if (!devices_.empty()) {
                file(block, i);
            }
        }
        polled_[block.task] = polled;
    }

    void message(const OpBlock& block, size_t i, bool sends, int64_t& polled) {
        if (!sockets_.knows(block.handle[i])) {
            return;
        }
        NetworkPeer& use = handles_[block.handle[i]];
        sockets_.used_by(block.handle[i], block.task);
        const auto bytes = static_cast<uint64_t>(std::max<int64_t>(block.result[i], 0));
        if (sends) {
            use.sends += bytes != 0;
            use.bytes_sent += bytes;
            use.send_ns += block.duration[i];
            return;
        }
        use.receives += bytes != 0;
        use.bytes_received += bytes;
        use.wait_ns += block.duration[i] + std::exchange(polled, 0);
    }

    void file(const OpBlock& block, size_t i) {
        const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
        const HandleId handle = block.handle[i];
        if (row.is(Trait::reads) == row.is(Trait::writes) || block.result[i] < 0 || handle >= tables_.handles.size()) {
            return;
        }
        const FileId file = tables_.handles[handle].file;
        const auto type = file != 0 ? devices_.find(tables_.files[file].device) : devices_.end();
        if (type == devices_.end()) {
            return;
        }
        NetworkPeer& use = file_systems_[type->second];
        const auto bytes = static_cast<uint64_t>(block.result[i]);
        if (row.is(Trait::reads)) {
            ++use.receives;
            use.bytes_received += bytes;
            use.wait_ns += block.duration[i];
        } else {
            ++use.sends;
            use.bytes_sent += bytes;
            use.send_ns += block.duration[i];
        }
    }

    NetworkUse finish() {
        std::map<std::pair<PeerKind, std::string>, NetworkPeer> peers;
        for (const auto& [handle, use] : handles_) {
            const SocketEnd& end = sockets_.end(handle);
            const auto key = sockets_.peer_of(handle);
            NetworkPeer& peer = peers[key];
            peer.kind = key.first;
            peer.name = key.second;
            ++peer.connections;
            add(peer, use);
            peer.retransmits += end.retransmits;
            peer.most_rtt_us = std::max(peer.most_rtt_us, end.rtt_us);
        }
        NetworkUse out;
        for (auto& [key, peer] : peers) {
            out.peers.push_back(std::move(peer));
        }
        for (auto& [type, peer] : file_systems_) {
            peer.kind = PeerKind::storage;
            peer.name = type;
            peer.file_system = true;
            out.peers.push_back(std::move(peer));
        }
        std::stable_sort(out.peers.begin(), out.peers.end(), [](const NetworkPeer& a, const NetworkPeer& b) {
            return a.bytes_sent + a.bytes_received > b.bytes_sent + b.bytes_received;
        });
        return out;
    }

public:
    static void add(NetworkPeer& to, const NetworkPeer& use) {
        to.sends += use.sends;
        to.receives += use.receives;
        to.bytes_sent += use.bytes_sent;
        to.bytes_received += use.bytes_received;
        to.wait_ns += use.wait_ns;
        to.send_ns += use.send_ns;
    }

private:
    const LogReader& log_;
    const Tables& tables_;
    SocketPeers sockets_;
    const std::map<uint64_t, std::string> devices_;
    std::map<HandleId, NetworkPeer> handles_;
    std::map<std::string, NetworkPeer> file_systems_;
    std::map<TaskId, int64_t> polled_;  // ns of a poll that no receive has followed yet
};

}  // namespace

NetworkPeer NetworkUse::total(PeerKind kind) const {
    NetworkPeer sum;
    sum.kind = kind;
    for (const NetworkPeer& peer : peers) {
        if (peer.kind == kind) {
            Collector::add(sum, peer);
            sum.connections += peer.connections;
            sum.retransmits += peer.retransmits;
            sum.most_rtt_us = std::max(sum.most_rtt_us, peer.most_rtt_us);
        }
    }
    return sum;
}

NetworkUse network_use(const LogReader& log, const std::function<void(uint64_t)>& progress) {
    return Collector(log).run(progress);
}

}  // namespace reprise
