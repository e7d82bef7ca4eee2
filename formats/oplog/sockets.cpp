// SPDX-License-Identifier: MIT
#include "formats/oplog/sockets.h"

#include <arpa/inet.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "formats/oplog/stored_derived.h"

namespace reprise {
namespace {

constexpr std::string_view kSockets = "sockets";
constexpr uint32_t kVersion = 1;

bool is_mapped(const IpAddress& address) {
    return std::all_of(address.begin(), address.begin() + 10, [](uint8_t byte) { return byte == 0; }) &&
           address[10] == 0xff && address[11] == 0xff;
}

void put(Bytes& out, const Endpoint& endpoint) {
    out.insert(out.end(), endpoint.address.begin(), endpoint.address.end());
    put_varint(out, endpoint.port);
}

template <class T>
T take_number(ByteReader& in) {
    const uint64_t value = in.varint();
    if (value > std::numeric_limits<T>::max()) {
        throw Corrupt("a number that no connection has");
    }
    return static_cast<T>(value);
}

Endpoint take_endpoint(ByteReader& in) {
    Endpoint endpoint;
    const ByteView bytes = in.take(endpoint.address.size());
    std::copy(bytes.begin(), bytes.end(), endpoint.address.begin());
    endpoint.port = take_number<uint16_t>(in);
    return endpoint;
}

SocketEnd take_end(ByteReader& in) {
    SocketEnd end;
    const uint64_t family = in.varint(), start = in.varint();
    if (start > 1) {
        throw Corrupt("a socket of an unknown kind");
    }
    end.from_start = start == 1;
    end.inode = in.varint();
    if (family == static_cast<uint64_t>(SocketEnd::Family::unix_socket)) {
        end.family = SocketEnd::Family::unix_socket;
        end.peer_inode = in.varint();
        return end;
    }
    if (family != static_cast<uint64_t>(SocketEnd::Family::tcp)) {
        throw Corrupt("a socket of an unknown kind");
    }
    end.local = take_endpoint(in);
    end.remote = take_endpoint(in);
    end.net = take_number<uint32_t>(in);
    end.sent = in.varint();
    end.received = in.varint();
    end.retransmits = take_number<uint32_t>(in);
    end.rtt_us = take_number<uint32_t>(in);
    return end;
}

}  // namespace

std::string address_text(const IpAddress& address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (is_mapped(address)) {
        ::inet_ntop(AF_INET, address.data() + 12, text, sizeof text);
    } else {
        ::inet_ntop(AF_INET6, address.data(), text, sizeof text);
    }
    return text;
}

std::string to_text(const Endpoint& endpoint) {
    const std::string address = address_text(endpoint.address);
    const bool plain = address.find(':') == std::string::npos;
    return (plain ? address : "[" + address + "]") + ":" + std::to_string(endpoint.port);
}

bool is_loopback(const IpAddress& address) {
    if (is_mapped(address)) {
        return address[12] == 127;
    }
    return std::all_of(address.begin(), address.end() - 1, [](uint8_t byte) { return byte == 0; }) &&
           address.back() == 1;
}

Derived encode_sockets(const Sockets& sockets) {
    Derived out{std::string(kSockets), kVersion, {}};
    put_varint(out.bytes, sockets.size());
    HandleId last = 0;
    for (const auto& [handle, end] : sockets) {
        put_varint(out.bytes, handle - last);
        last = handle;
        put_varint(out.bytes, static_cast<uint64_t>(end.family));
        put_varint(out.bytes, end.from_start ? 1 : 0);
        put_varint(out.bytes, end.inode);
        if (end.family == SocketEnd::Family::unix_socket) {
            put_varint(out.bytes, end.peer_inode);
            continue;
        }
        put(out.bytes, end.local);
        put(out.bytes, end.remote);
        put_varint(out.bytes, end.net);
        put_varint(out.bytes, end.sent);
        put_varint(out.bytes, end.received);
        put_varint(out.bytes, end.retransmits);
        put_varint(out.bytes, end.rtt_us);
    }
    return out;
}

Sockets decode_sockets(ByteView bytes, size_t handles) {
    ByteReader in(bytes);
    Sockets out;
    HandleId handle = 0;
    for (size_t n = in.count(in.left()); n > 0; --n) {
        const uint64_t step = in.varint();
        if (step == 0 || step >= handles || handle + step >= handles) {
            throw Corrupt("a handle that is not in the log");
        }
        handle += static_cast<HandleId>(step);
        out[handle] = take_end(in);
    }
    if (in.left() != 0) {
        throw Corrupt("bytes are left over at its end");
    }
    return out;
}

Sockets recorded_sockets(const LogReader& log) {
    return stored_derived(log, kSockets, kVersion, "what it holds of the job's connections", "capture again",
                          [&](ByteView bytes) { return decode_sockets(bytes, log.tables().handles.size()); })
        .value_or(Sockets());
}

}  // namespace reprise
