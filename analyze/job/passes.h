// SPDX-License-Identifier: MIT
// The epochs of a job, and in what order it reads its data set in each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/job/accesses.h"
#include "analyze/job/sample_order.h"
#include "formats/oplog/tables.h"

namespace reprise {

/// What of a file decides whether it holds a sample, or many.
struct SampleFile {
    uint32_t reads = 0, opens = 0;
    bool written = false;
};

/// An epoch that a loader of the job marked.
struct MarkedEpoch {
    int64_t number = 0, begin = 0, end = 0;  // ns
    uint32_t loader = 1;
};

struct JobEpoch {
    int64_t number = 0;
    int64_t begin = 0, end = 0;  // ns
    double samples = 0;          // read; 0: not known
    SampleOrder files;           // order of the files
    SampleOrder records;         // order within files that hold many
    /// Whether the samples came in the same order as in the epoch before; none: not known.
    std::optional<bool> as_before;
};

struct JobEpochs {
    enum class By : uint8_t { nothing, marks, samples };
    By by = By::nothing;
    std::string why_none;  // a sentence
    std::vector<JobEpoch> epochs;
    double data_set = 0;  // samples
};

/// `accesses`: reads of files, by time; `share`: of the places that they are of. `files`: by FileId. Where the job
/// marked epochs, those are the epochs (formats/oplog/loader_marks.h); else passes over the samples. `marked`: by
/// begin.
JobEpochs find_passes(std::span<const Access> accesses, double share, const Tables& tables,
                      std::span<const SampleFile> files, const std::vector<MarkedEpoch>& marked);

}  // namespace reprise
