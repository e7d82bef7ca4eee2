// SPDX-License-Identifier: MIT
// One log of a job from one log per rank: tables renumbered, clocks aligned, edges between ranks added.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct MergeOptions {
    bool allow_missing = false;  // ranks of the job without a log
    WriterOptions writer;
    std::function<void(uint64_t done, uint64_t total)> progress;
};

/// What became of one of the logs.
struct MergedLog {
    std::filesystem::path path;
    uint32_t rank = 0;
    std::string host;
    uint64_t ops = 0;
    int64_t offset_ns = 0;            // of its times in the merged log
    int64_t corrected_ns = 0;         // of that: by messages that would have been received before they were sent
    std::optional<int64_t> error_ns;  // how far its clock may be off from the first log's; none: not known
    std::string clock;                // how it was aligned, for people
};

struct MergeResult {
    uint64_t ops = 0, ranks = 0;
    uint64_t files = 0, files_shared = 0;  // shared: in more than one log
    uint64_t connections = 0;              // between ranks, whose two ends are in the logs
    uint64_t edges = 0;                    // of messages between ranks
    uint64_t waits = 0;                    // of these, of calls that waited for a message before it was read
    uint64_t dropped = 0;                  // messages that stay received before they are sent
    std::vector<MergedLog> logs;           // by rank
    std::vector<std::string> notes;
};

/// Merges recordings of one rank each. Reads each log twice, block by block: memory grows with the tables, and by
/// some 50 bytes for each message between ranks. Throws Error (bad_input) where they are not the ranks of one job, all
/// recorded by the same version; nothing is left behind then.
MergeResult merge_logs(const std::vector<std::filesystem::path>& logs, const std::filesystem::path& output,
                       const MergeOptions& options);

}  // namespace reprise
