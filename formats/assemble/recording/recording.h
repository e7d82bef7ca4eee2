// SPDX-License-Identifier: MIT
// Raw recordings (formats/raw/record.h) to op logs: calls, the time between them, and who waited for whom.
//
// The raw log is read twice: first for what must be known beforehand (formats/assemble/recording/facts.h), then record
// by record in the order of time. Memory does not grow with the recording: records wait kReorder, ops RawEdges::kLag.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "formats/assemble/found_at_end.h"
#include "formats/assemble/roles.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// A symbolic link on this machine, or nothing.
struct LinkOnDisk {
    std::string target;           // empty: nothing is there
    int64_t changed_unix_ns = 0;  // when it was made, renamed or linked
};

struct RawAssembleOptions {
    /// Told bytes of the raw log read so far, of twice its size.
    std::function<void(uint64_t done, uint64_t total)> progress;
    RoleOverrides roles;
    /// Time on the processor between two calls below this is not an op of its own, only their distance.
    int64_t least_compute_ns = 1000;
    /// The link at a path, where this is the machine of the recording (nothing: something else is there); and the inode
    /// number of its mount namespace.
    std::function<std::optional<LinkOnDisk>(const std::string& path)> link_on_disk = {};
    /// A directory that the link at a path, which is gone or another one now, may have led to: `rest` below it is the
    /// file of that inode. And when the directory was last changed, or renamed.
    std::function<std::optional<LinkOnDisk>(const std::string& link, std::string_view rest, uint64_t inode)>
        directory_was = {};
    uint64_t mounts = 0;
    /// What is at a path there.
    FindAtEnd find_at_end = {};
    /// Called when all ops and tables are in the log.
    std::function<void(LogWriter&)> amend = {};
};

/// Assembles `raw` into the writer, whose header it completes; the caller finishes the writer. A log that was cut is
/// assembled as far as it goes, which a counter of severity loss says. Throws Error (bad_input) for what is no raw log.
void assemble_raw(const std::filesystem::path& raw, LogWriter& writer, const RawAssembleOptions& options = {});

/// The same into a new log; nothing is left behind where it fails.
void assemble_raw_file(const std::filesystem::path& raw, const std::filesystem::path& output,
                       const RawAssembleOptions& options = {}, const WriterOptions& writer = {});

}  // namespace reprise
