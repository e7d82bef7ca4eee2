// SPDX-License-Identifier: MIT
// What was counted of a run op by op, as sums and histograms: those of several ranks add up to those of the run.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "analyze/accelerator.h"
#include "analyze/job_figures.h"
#include "formats/support/bytes.h"

namespace reprise {

/// One side, the recording or the run.
struct SideSums {
    JobFigures figures;              // without `elapsed` and accelerators, which others know
    std::vector<Histogram> latency;  // by OpKind
    AcceleratorUse use;
    /// ns: first begin and last end of all ops; begin beyond end: none, or no accelerators.
    int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
};

struct RunSums {
    SideSums recorded, here;
    std::vector<uint64_t> asked;  // bytes of files on storage: before the first epoch, and in each
};

/// Ends the counting.
SideSums sums_of(FigureCounter& counter, AcceleratorObserver& observer);

/// Adds what another rank counted, of other tasks. Requests in flight count for each rank by itself: how many were in
/// flight on how many ranks at a time is in no histogram. An epoch of an accelerator that the log does not end is over
/// with the run.
void merge(RunSums& into, const RunSums& from);

/// As bytes, for other processes of this reprise.
void pack(const RunSums& sums, Bytes& out);
/// `tables`: of the log that was run. Throws Corrupt for bytes that pack() does not make of it.
RunSums unpack_sums(ByteReader& in, const Tables& tables);

}  // namespace reprise
