// SPDX-License-Identifier: MIT
// Whether a fitted job reads what the recorded one read.
#pragma once

#include <string>

#include "fit/job_trace.h"
#include "fit/samples.h"
#include "generate/job.h"

namespace reprise {

/// "the fitted job reads 3.62 MiB in 101 samples, the recording 33.1 MiB in 960 samples": what differs by more than a
/// few percent, and by more than sizes that are drawn anew may. Empty: nothing does, or nothing can be compared.
/// `size_error`: of the mean of sizes, as a share. Samples are counted where each is a file; bytes of mapped files and
/// of Parquet are not compared.
std::string differing_reads(const JobTrace& trace, const LoadedSamples& loaded, const JobSection& fitted,
                            double size_error);

/// "each batch is read by 4 tasks in turn, in the fitted job by one": where most batches are. Empty: they are not.
std::string gathered_batches(const JobTrace& trace, const TrainingLoop& loop);

}  // namespace reprise
