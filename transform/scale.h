// SPDX-License-Identifier: MIT
// The log of a recorded job on a larger (or smaller) data set: the same job, epoch by epoch, with more steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "transform/scale_cuts.h"
#include "transform/scale_recording.h"

namespace reprise {

struct ScaleOptions {
    static constexpr double kLeast = 0.01, kMost = 1000;
    double factor = 1;    // times the data set
    uint32_t epochs = 0;  // 0: as recorded
    uint64_t seed = 1;    // of the order of the samples
    std::vector<SampleOverride> as;

    bool changes_anything() const { return factor != 1 || epochs != 0; }
    /// "--scale 2 --epochs 3 --seed 1 --scale-as /data=records", as the header says it.
    std::string to_string() const;
};

struct ScaleResult {
    uint64_t ops = 0;
    uint64_t files_added = 0, files_removed = 0;
    uint64_t bytes_before = 0, bytes_after = 0;   // of the files that grow, in number or in length
    std::vector<uint64_t> epochs;                 // accesses to samples
    std::vector<uint64_t> asked;                  // likewise, as many as there should be
    uint64_t edges_dropped = 0, ops_dropped = 0;  // where pieces were joined
    std::vector<std::string> notes;               // what does not grow, and why

    /// The epoch that misses most, if by more than a tenth; epochs.size(): none.
    size_t missed_epoch() const;
    bool as_asked() const { return missed_epoch() == epochs.size(); }
};

/// Writes `output`. Throws Error (bad_input) where the recording cannot be scaled (scaling_obstacle), Error (machine)
/// where the log cannot be written. Memory: about ten bytes per op of the recording, and one piece of it.
ScaleResult scale_log(const LogReader& log, const std::filesystem::path& output, const ScaleOptions& options,
                      const WriterOptions& writer = {});

/// What scaling does with a file of the log, for people.
struct ScalingRow {
    std::string what;  // "*.jpg", "/data/tokens.bin"
    SampleClass kind = SampleClass::fixed;
    uint64_t files = 0, ops = 0, bytes = 0;
    std::string grows;        // "more files", "longer", "longer listings", "no"
    uint32_t confidence = 0;  // percent
};

/// How a recording would be scaled.
struct ScalingSurvey {
    std::vector<ScalingRow> rows;
    std::vector<uint64_t> epochs;  // accesses to samples in each
    double late_share = 0;
    std::string order;     // shuffled, in order
    std::string leader;    // who consumes the samples, and how that is known
    std::string obstacle;  // why it cannot be scaled; empty: it can
    std::vector<std::string> notes;
};
ScalingSurvey survey_scaling(const LogReader& log, const std::vector<SampleOverride>& as);

/// Epochs that have not about as many accesses as wanted: too little of one can be left out, or played again, where it
/// has few steps.
void add_missed_epochs(const Score& score, std::vector<std::string>& notes);
/// Of the accesses wanted in the epoch that misses most, how many of 1000 it has too few or too many.
uint32_t missed_permille(const Score& score);
/// What does not grow although it could be expected to: a job that keeps its samples.
std::vector<std::string> scaling_notes(const ScaleRecording& recording);

}  // namespace reprise
