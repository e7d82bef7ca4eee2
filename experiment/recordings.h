// SPDX-License-Identifier: MIT
// Several recordings of one job: which of them something disturbed, and which one speaks for all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/series.h"
#include "formats/oplog/oplog.h"

namespace reprise {

struct RecordingFacts {
    std::filesystem::path path;
    std::string command;
    uint64_t ops = 0;
    uint64_t bytes = 0;         // that calls read and wrote
    int64_t elapsed_ns = 0;     // from the begin of the first op to the end of the last
    int64_t stolen_ns = -1;     // steal time of all tasks; -1: not known
    int64_t run_queue_ns = -1;  // that all tasks waited for a CPU; -1: not known
    int cpus = 1;
    int64_t fetched_bytes = -1;  // that were not in the page cache, as often as they came; -1: not known
};
/// All but fetched_bytes, which is the summary's account (analyze).
RecordingFacts recording_facts(const LogReader& log);

/// Each as a run of its job. Disturbed by steal time, or where its tasks waited for CPUs for a tenth of its time longer
/// than those of the median recording did.
std::vector<RunOutcome> recording_outcomes(const std::vector<RecordingFacts>& recordings);

/// The least and the most bytes that recordings fetched, where some were cold and others warm: more than half of the
/// most apart, and a MiB. None where they are alike, or one does not say.
std::optional<std::pair<int64_t, int64_t>> mixed_caches(const std::vector<RecordingFacts>& recordings);

/// "a.oplog has 724 ops and c.oplog 1,096: ...", where the recordings' ops or bytes are more than 5 % apart; else
/// empty.
std::string unlike_recordings(const std::vector<RecordingFacts>& recordings);

/// Throws Error (usage) where these are not recordings of one job: another command, or less than half as many ops.
void check_one_job(const std::vector<RecordingFacts>& recordings);

}  // namespace reprise
