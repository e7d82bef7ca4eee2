// SPDX-License-Identifier: MIT
// Processes of a recording while it is assembled: descriptor tables, open instances, current directories, mappings.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/assemble/address_map.h"
#include "formats/assemble/file_table.h"
#include "formats/oplog/tables.h"

namespace reprise {

/// Bytes moved through a pipe, a socket's end or an eventfd.
struct Channel {
    int64_t sent = 0, received = 0;
    uint64_t id = ++made;  // not used again when the channel is gone

private:
    static inline std::atomic<uint64_t> made{0};
};

/// An open instance: what dup and fork share.
struct Instance {
    HandleId id = 0;
    HandleKind kind = HandleKind::file;
    FileState* file = nullptr;
    int64_t flags = 0;  // O_*, kept up by F_SETFL
    int64_t position = 0;
    bool position_known = true;
    std::shared_ptr<Channel> channel = std::make_shared<Channel>();
    std::shared_ptr<Channel> to_peer;  // where writes go, if not into `channel`
    uint64_t peer = 0;                 // inode of the socket at the other end
    Channel& sends_to() { return to_peer ? *to_peer : *channel; }
    std::string described;           // the source's last description of it (strace -y)
    bool kind_certain = false;       // known from its attributes
    uint64_t device = 0, inode = 0;  // of what is open, where the source tells; inode 0: unknown
    uint32_t generation = 0;

    /// Data calls are reads and writes of bytes at offsets, not messages.
    bool is_file() const {
        return kind == HandleKind::file || kind == HandleKind::directory || kind == HandleKind::memfd;
    }
};

struct DescriptorState {
    std::shared_ptr<Instance> instance;
    bool close_on_exec = false;
};
using DescriptorStates = std::map<int32_t, DescriptorState>;

/// What CLONE_FS shares.
struct FsState {
    std::string directory;
    bool directory_known = false;
    std::optional<int64_t> umask;  // none: it made no call, and neither did who began it
};

/// A process, or a thread that took its descriptors or its current directory out of what its process shares.
struct Process {
    ProcessId id = 0;
    int32_t pid = 0;
    std::shared_ptr<DescriptorStates> descriptors = std::make_shared<DescriptorStates>();
    std::shared_ptr<FsState> fs = std::make_shared<FsState>();
    std::shared_ptr<AddressMap> memory = std::make_shared<AddressMap>();
    Process* parent = nullptr;
    bool seen_at_birth = false;  // the recording holds the spawn that made it
};

/// A description of a descriptor as strace -y and /proc/PID/fd write it, parsed.
struct Description {
    HandleKind kind = HandleKind::file;
    FileType type = FileType::unknown;
    std::string_view path;  // of files; empty: has none
    bool deleted = false;
};
/// "/path", "/path(deleted)", "/dev/null<char 1:3>", "pipe:[1]", "TCP:[...]", "anon_inode:[eventfd]".
Description parse_description(std::string_view text);

}  // namespace reprise
