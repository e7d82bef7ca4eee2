// SPDX-License-Identifier: MIT
// Records of a stream are not read one by one. Where each is worked on, computations count them while reads go on.
#include <algorithm>
#include <map>

#include "fit/data_set_fit.h"

namespace reprise {
namespace {

struct Event {
    bool computes = false;
    bool opens = false;
    FileId file = 0;
    int64_t begin = 0, end = 0;  // bytes
    uint32_t epoch = 0;
};

/// Of each loader, batch after batch.
std::map<TaskId, std::vector<Event>> events_of(const TrainingLoop& loop, const LoadedSamples& loaded) {
    std::map<TaskId, std::vector<Event>> out;
    for (const BatchSamples& batch : loaded.batches) {
        const BatchLoad& load = loop.ranks[batch.rank].batches[batch.batch];
        std::vector<Event>& events = out[load.loader];
        size_t computed = 0;
        for (const SampleAccess& access : batch.accesses) {
            for (; computed < batch.compute_ops.size() && batch.compute_ops[computed] < access.first; ++computed) {
                events.push_back({.computes = true});
            }
            events.push_back(
                {false, access.opens, access.file, access.offset, access.offset + access.bytes, load.epoch});
        }
        for (; computed < batch.compute_ops.size(); ++computed) {
            events.push_back({.computes = true});
        }
    }
    return out;
}

}  // namespace

StreamFit fit_stream(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded) {
    StreamFit out;
    if (!loaded.computes_are_samples) {
        return out;
    }
    double bytes = 0, counted = 0, blurred = 0;
    auto slack = static_cast<double>(std::max<int64_t>(loaded.piece, 1));
    const bool tables = loaded.format == SampleFormat::parquet;
    for (const auto& [loader, events] : events_of(loop, loaded)) {
        FileId file = 0;
        uint32_t epoch = 0;
        bool from_front = false;
        uint64_t samples = 0;  // of the file so far
        uint64_t in_group = 0;
        int64_t position = 0, settled = 0;  // read so far; when the last sample was
        int64_t first = -1;                 // position at the first sample of the run
        uint64_t since = 0;                 // samples since
        const auto end_run = [&] {
            if (since > 0) {
                bytes += static_cast<double>(settled - first);
                counted += static_cast<double>(since);
                blurred += slack / 2;
            }
            first = -1;
            since = 0;
        };
        for (const Event& event : events) {
            if (event.computes) {
                ++samples;
                ++in_group;
                if (first >= 0) {
                    ++since;
                    slack = std::max(slack, tables ? static_cast<double>(position - settled) : 0);
                }
                if (first >= 0 && epoch == 0) {  // once each
                    out.records.push_back(static_cast<double>(position - settled));
                }
                first = first < 0 ? position : first;
                settled = position;
                continue;
            }
            // Epochs go on elsewhere in the order, perhaps in the same file.
            const bool jumps = event.file != file || event.begin != position || event.epoch != epoch;
            // Within an epoch a loader leaves a file when it has all of it.
            const bool ended = static_cast<double>(position) > 0.9 * static_cast<double>(trace.tables.files[file].size);
            if (jumps || event.opens) {
                if (file != 0 && from_front && ended && event.file != file && event.epoch == epoch) {
                    ++out.complete;
                    out.same = out.same && (out.per_file == 0 || out.per_file == samples);
                    out.per_file = std::max(out.per_file, samples);
                }
                end_run();
                file = event.file;
                epoch = event.epoch;
                from_front = event.begin <= 4;
                samples = 0;
            }
            if (in_group > 0) {
                out.per_group = std::max(out.per_group, jumps ? 0 : in_group);
                in_group = 0;
            }
            position = event.end;
        }
        end_run();
    }
    double mean = 0;
    for (const double each : out.records) {
        mean += each / static_cast<double>(out.records.size());
    }
    for (const double each : out.records) {
        out.variance += (each - mean) * (each - mean) / static_cast<double>(out.records.size());
    }
    if (counted > 0) {
        out.record = bytes / counted;
        out.record_error = bytes > 0 ? blurred / bytes : 1;
    }
    return out;
}

}  // namespace reprise
