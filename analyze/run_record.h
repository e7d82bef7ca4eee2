// SPDX-License-Identifier: MIT
// What one run, or one recording, is held against others by: its figures, whether it may be believed, and what it was a
// run of.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

struct RunRecord {
    std::string path;
    /// What was replayed, by content; of a recording empty.
    std::string recording;
    std::string command;
    /// Options that make runs different jobs: the filter, the pace, what-ifs; each with its value.
    std::map<std::string, std::string> conditions;
    std::string host, kernel, clock;
    std::string ended;          // "complete", or why it stopped; empty: not a run
    std::string trust, reason;  // good, fair or poor, and why; empty: not known
    std::string losses;         // of the log, a sentence; empty: none
    uint64_t ops = 0;

    struct Kind {
        uint64_t ops = 0;
        double time = 0;  // ns in all calls together
        double p50 = 0, p99 = 0;
    };
    double elapsed_s = 0;
    double bytes = 0;
    std::optional<double> au;
    std::string cache;                   // of a run: its cache regime (replay --cache); empty: not known
    std::optional<double> device_share;  // of a run: bytes that the device read over those read; none: not known
    std::map<std::string, Kind> kinds;   // of I/O, by name
    Kind requests;                       // asynchronous ones, from submission to completion
    /// ns of all tasks, by place: parts with semicolons between them, the outer one first ("storage;dataset;read").
    std::map<std::string, double> places;

    bool is_run() const { return !ended.empty(); }
    /// Why this run should not count, in a few words; empty: it may.
    std::string doubt() const;

    bool operator==(const RunRecord&) const;
};

/// Reads the whole log.
RunRecord run_record(const LogReader& log);

nlohmann::ordered_json to_json(const RunRecord& run);
/// Throws nlohmann's exceptions where it is not what to_json() made.
RunRecord run_record_of(const nlohmann::ordered_json& json);

/// Throws Error (usage) where these are not runs of one recording under the same conditions, or recordings of one job.
void check_same_job(const std::vector<RunRecord>& runs);

}  // namespace reprise
