// SPDX-License-Identifier: MIT
// The connections of a recording: what the kernel told of them, joined to the sockets that calls used.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "formats/assemble/assembler.h"
#include "formats/oplog/sockets.h"
#include "formats/raw/log.h"

namespace reprise {

class RawNetwork {
public:
    void see(const raw_socket& record);
    /// The job's sockets that have, or had, another end.
    Sockets of(const std::map<HandleId, Assembler::SocketSeen>& seen) const;

private:
    std::unordered_map<uint64_t, SocketEnd> by_inode_;
};

}  // namespace reprise
