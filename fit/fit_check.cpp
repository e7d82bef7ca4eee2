// SPDX-License-Identifier: MIT
#include "fit/fit_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "formats/support/quantity.h"
#include "generate/data_set.h"

namespace reprise {
namespace {

constexpr double kSome = 0.05;

bool differ(double fitted, double recorded, double drawn) {
    return std::abs(fitted - recorded) > (kSome + drawn) * std::max(fitted, recorded);
}

/// Instances of the data set's files that were read.
uint64_t files_read(const JobTrace& trace) {
    std::set<uint32_t> handles;
    for (const TraceTask& task : trace.tasks) {
        for (const TraceOp& op : task.ops) {
            if (op.part == OpPart::data && info(op.kind).is(Trait::reads) && op.result > 0) {
                handles.insert(op.object);
            }
        }
    }
    return handles.size();
}

/// With what surrounds it in its file.
double bytes_of_sample(const JobSection& section, const TrainingJob& job) {
    const double mean = job.sample_size.mean();
    if (!is_stream(job.format)) {
        return mean;
    }
    TrainingJob one = job;
    one.samples = one.samples_per_file = one.row_group = 1;
    return static_cast<double>(DataSet(section, one).record_size(std::llround(mean)));
}

/// How far the mean of the samples that are read may lie from that of all, as a share: four standard errors.
double drawn_error(const TrainingJob& job, double samples) {
    const Distribution& size = job.sample_size;
    const double deviation = size.kind == Distribution::Kind::constant  ? 0
                             : size.kind == Distribution::Kind::uniform ? (size.b - size.a) / std::sqrt(12)
                                                                        : size.b;
    const bool part = job.all_steps() % std::max<uint64_t>(job.steps_per_epoch(), 1) != 0;
    return part && size.mean() > 0 && samples > 0 ? 4 * deviation / size.mean() / std::sqrt(samples) : 0;
}

}  // namespace

std::string differing_reads(const JobTrace& trace, const LoadedSamples& loaded, const JobSection& fitted,
                            double size_error) {
    const auto& job = std::get<TrainingJob>(fitted.what);
    if (loaded.format == SampleFormat::none) {
        constexpr int64_t kLittle = 1 << 20;
        const int64_t bytes = trace.read_bytes + trace.other_bytes;
        return bytes <= kLittle ? ""
                                : "the fitted job reads no data, the recording " +
                                      format_bytes(static_cast<uint64_t>(bytes)) + ", by tasks that feed no rank";
    }
    // A row group is read by every loader that has samples of it.
    if (loaded.format == SampleFormat::parquet || trace.maps) {
        return "";
    }
    const auto samples = static_cast<double>(job.all_steps()) * static_cast<double>(job.samples_per_step());
    const double bytes = samples * bytes_of_sample(fitted, job);
    const auto recorded = static_cast<double>(trace.read_bytes);
    const uint64_t files = loaded.format == SampleFormat::files ? files_read(trace) : 0;
    const bool counts = files != 0 && differ(samples, static_cast<double>(files), 0);
    if (!counts && !differ(bytes, recorded, size_error + drawn_error(job, samples))) {
        return "";
    }
    std::string out = "the fitted job reads " + format_bytes(static_cast<uint64_t>(bytes));
    out += files != 0 ? " in " + counted(static_cast<uint64_t>(samples), "sample") : "";
    out += ", the recording " + format_bytes(static_cast<uint64_t>(trace.read_bytes));
    return out + (files != 0 ? " in " + counted(files, "sample") : "");
}

std::string gathered_batches(const JobTrace& trace, const TrainingLoop& loop) {
    uint64_t batches = 0, gathered = 0, most = 0;
    for (const RankLoop& rank : loop.ranks) {
        const std::vector<TraceEdge>& edges = trace.tasks[rank.task].edges;
        for (const BatchLoad& batch : rank.batches) {
            std::set<TaskId> readers;
            auto edge = std::partition_point(edges.begin(), edges.end(),
                                             [&](const TraceEdge& each) { return each.op < batch.taken; });
            for (; edge != edges.end() && edge->op == batch.taken; ++edge) {
                if (edge->source != rank.task && trace.tasks[edge->source].reads > 0) {
                    readers.insert(edge->source);
                }
            }
            ++batches;
            gathered += readers.size() > 1 ? 1 : 0;
            most = std::max<uint64_t>(most, readers.size());
        }
    }
    if (gathered * 2 <= batches) {
        return "";
    }
    return "each batch is read by " + counted(most, "task") +
           " in turn, in the fitted job by one (interleave= in docs/job-words.md)";
}

}  // namespace reprise
