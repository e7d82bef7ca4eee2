// SPDX-License-Identifier: MIT
// Any bytes as the connections of a log: refused, or what can be written and read again, and whose peers have names.
#include "formats/oplog/socket_peers.h"
#include "tests/fuzz/fuzz_support.h"

namespace {

using namespace reprise;

constexpr size_t kHandles = 40;

/// A log of that many sockets, which two ranks use.
void with_peers(const Sockets& sockets) {
    const auto path = fuzz::scratch() / "sockets.oplog";
    {
        LogWriter writer(path, {}, {.sync = false});
        const ProcessId process = writer.add_process({.pid = 1});
        const TaskId task = writer.add_task({.process = process, .tid = 1});
        for (size_t i = 1; i < kHandles; ++i) {
            writer.add_handle({.kind = HandleKind::socket});
        }
        writer.keep(encode_sockets(sockets));
        for (const auto& [handle, end] : sockets) {
            writer.append(task, {.kind = OpKind::receive, .result = 1, .handle = handle, .fd = 3});
        }
        writer.finish();
    }
    const LogReader log(path);
    fuzz::require(recorded_sockets(log) == sockets, "connections are the same after they were stored");
    SocketPeers peers(log);
    for (const auto& [handle, end] : sockets) {
        peers.used_by(handle, 1);
    }
    for (const auto& [handle, end] : sockets) {
        fuzz::require(!peers.peer_of(handle).second.empty(), "every peer has a name");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Sockets sockets;
    try {
        sockets = decode_sockets({data, size}, kHandles);
    } catch (const Corrupt&) {
        return 0;
    }
    const Bytes stored = encode_sockets(sockets).bytes;
    fuzz::require(decode_sockets(stored, kHandles) == sockets, "what was encoded decodes to the same");
    with_peers(sockets);
    return 0;
}
