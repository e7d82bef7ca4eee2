// SPDX-License-Identifier: MIT
// The connections of a job: which addresses the sockets among its handles join, and how the connections did. Kept in
// the log as derived data (formats/FORMAT.md).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"

namespace reprise {

/// An IP address, as IPv6 has it: those of IPv4 as ::ffff:a.b.c.d.
using IpAddress = std::array<uint8_t, 16>;
struct Endpoint {
    IpAddress address{};
    uint16_t port = 0;

    auto operator<=>(const Endpoint&) const = default;
};
/// "10.0.0.1:29500", "[fe80::1]:80".
std::string to_text(const Endpoint& endpoint);
std::string address_text(const IpAddress& address);
/// 127.0.0.0/8 and ::1.
bool is_loopback(const IpAddress& address);

struct SocketEnd {
    enum class Family : uint8_t { unix_socket = 1, tcp = 2 };
    Family family = Family::tcp;
    bool from_start = false;          // the log has its bytes from the first one on
    uint64_t inode = 0;               // of the socket
    uint64_t peer_inode = 0;          // Unix sockets: of the other end
    Endpoint local, remote;           // TCP; ports 0: not known
    uint32_t net = 0;                 // network namespace: its inode
    uint64_t sent = 0, received = 0;  // bytes, as TCP counts them; with those sent again
    uint32_t retransmits = 0;         // segments sent again
    uint32_t rtt_us = 0;              // smoothed round-trip time as last seen; 0: not known

    bool operator==(const SocketEnd&) const = default;
};
using Sockets = std::map<HandleId, SocketEnd>;

Derived encode_sockets(const Sockets& sockets);
/// Throws Corrupt. `handles`: rows of the handle table, with row 0.
Sockets decode_sockets(ByteView bytes, size_t handles);

/// Empty where the log does not say. Throws Error (bad_input) where it holds something that cannot be that.
Sockets recorded_sockets(const LogReader& log);

}  // namespace reprise
