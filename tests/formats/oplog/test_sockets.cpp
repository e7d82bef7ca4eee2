// SPDX-License-Identifier: MIT
// The connections of a job: in the log and out of it.
#include "formats/oplog/sockets.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

IpAddress ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

Sockets some() {
    SocketEnd tcp;
    tcp.from_start = true;
    tcp.inode = 77;
    tcp.local = {ipv4(10, 0, 0, 1), 29500};
    tcp.remote = {ipv4(10, 0, 0, 2), 40001};
    tcp.net = 4026531840;
    tcp.sent = uint64_t{1} << 40;
    tcp.received = 12;
    tcp.retransmits = 3;
    tcp.rtt_us = 250;
    SocketEnd pair;
    pair.family = SocketEnd::Family::unix_socket;
    pair.inode = 5;
    pair.peer_inode = 6;
    return {{1, tcp}, {3, pair}};
}

std::filesystem::path write_log(const TempDir& dir, const std::optional<Derived>& sockets) {
    const auto path = dir / "a.oplog";
    LogWriter writer(path, Header{});
    for (int i = 0; i < 3; ++i) {
        writer.add_handle({.kind = HandleKind::socket});
    }
    if (sockets) {
        writer.keep(*sockets);
    }
    writer.finish();
    return path;
}

}  // namespace

TEST_CASE("sockets: kept in the log") {
    const TempDir dir;
    CHECK(recorded_sockets(LogReader(write_log(dir, encode_sockets(some())))) == some());
    CHECK(recorded_sockets(LogReader(write_log(dir, std::nullopt))).empty());
}

TEST_CASE("sockets: damaged bytes are refused, cut ones too") {
    const TempDir dir;
    const Derived whole = encode_sockets(some());
    for (size_t size = 0; size < whole.bytes.size(); ++size) {
        Derived cut = whole;
        cut.bytes.resize(size);
        CHECK_THROWS_AS(recorded_sockets(LogReader(write_log(dir, cut))), Error);
    }
    for (const Bytes& bytes : {Bytes{1, 4, 1, 1, 1, 1}, Bytes{1, 0, 1, 1, 1, 1}, Bytes{1, 1, 9, 1, 1, 1},
                               Bytes{1, 1, 1, 2, 1, 1}, Bytes{0, 0}}) {
        Derived wrong = whole;
        wrong.bytes = bytes;
        CHECK_THROWS_AS(recorded_sockets(LogReader(write_log(dir, wrong))), Error);
    }
}

TEST_CASE("sockets: addresses as people write them") {
    CHECK(to_text(Endpoint{ipv4(127, 0, 0, 1), 80}) == "127.0.0.1:80");
    IpAddress six{};
    six[15] = 1;
    CHECK(to_text(Endpoint{six, 443}) == "[::1]:443");
    CHECK(is_loopback(six));
    CHECK(is_loopback(ipv4(127, 3, 2, 1)));
    CHECK_FALSE(is_loopback(ipv4(10, 0, 0, 1)));
    six[0] = 0xfe;
    CHECK_FALSE(is_loopback(six));
}

}  // namespace reprise::test
