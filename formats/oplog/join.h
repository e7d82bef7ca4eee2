// SPDX-License-Identifier: MIT
// The logs of the ranks of one run as one log. All have the tables of the same recording, and each the ops of its own
// tasks: stored blocks are copied as they are, with their checksums, and no op is decoded. Memory: the largest section,
// the tables once, and 56 bytes for each block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/oplog/oplog.h"

namespace reprise {

/// The bytes of a log, from its first on: puts some of them into `into`, and returns how many; 0 at the end only.
using ByteSource = std::function<size_t(std::span<uint8_t> into)>;
/// Throws Error where it cannot be opened or read.
ByteSource file_source(const std::filesystem::path& path);

struct JoinOptions {
    bool sync = true;      // fsync before the rename
    bool recover = false;  // take what is whole of a part that was cut, which the log then says
};

/// Writes `path`.partial and renames it in finish(), as LogWriter does.
class LogJoin {
public:
    explicit LogJoin(std::filesystem::path path, JoinOptions options = {});
    ~LogJoin();
    LogJoin(const LogJoin&) = delete;
    LogJoin& operator=(const LogJoin&) = delete;

    /// One part after the other, each to its end. `name` says in messages which it is. Throws Error (bad_input) where
    /// it is damaged, of another recording, or has ops of a task that another part has.
    void add(std::string_view name, const ByteSource& part);
    /// As merged so far: the first part's, with all hosts; how the run ended, its trust (the worst) and what it read
    /// from devices (added up). What parts say differently besides is left out. Whoever knows the whole run better
    /// may change it; not time_unit_ns.
    Header& header();
    uint64_t ops() const;
    uint64_t bytes_written() const;

    /// Counters of ops that were not performed add up; of others, which every part has from the recording, the
    /// greatest counts.
    void finish();
    void discard();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Adds what another part of the run says; see LogJoin::header().
void merge_headers(Header& into, const Header& from);

}  // namespace reprise
