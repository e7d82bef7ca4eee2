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
};

/// Of each loader, batch after batch.
std::map<TaskId, std::vector<Event>> events_of(const TrainingLoop& loop, const LoadedSamples& loaded) {
    std::map<TaskId, std::vector<Event>> out;
    for (const BatchSamples& batch : loaded.batches) {
        std::vector<Event>& events = out[loop.ranks[batch.rank].batches[batch.batch].loader];
        size_t computed = 0;
        for (const SampleAccess& access : batch.accesses) {
            for (; computed < batch.compute_ops.size() && batch.compute_ops[computed] < access.first; ++computed) {
                events.push_back({.computes = true});
            }
            events.push_back({false, access.opens, access.file, access.offset, access.offset + access.bytes});
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
    const auto slack = static_cast<double>(std::max<int64_t>(loaded.piece, 1));
    std::vector<uint64_t> groups;
    for (const auto& [loader, events] : events_of(loop, loaded)) {
        FileId file = 0;
        bool from_front = false;
        uint64_t samples = 0;                 // of the file so far
        uint64_t in_group = 0;
        int64_t position = 0, settled = 0;    // read so far; when the last sample was
        int64_t first = -1;                   // position at the first sample of the run
        uint64_t since = 0;                   // samples since
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
                    out.records.push_back(static_cast<double>(position - settled));
                } else {
                    first = position;
                }
                settled = position;
                continue;
            }
            // Epochs go on elsewhere in the order, perhaps in the same file.
            const bool jumps = event.file != file || event.begin != position;
            const bool ended = position + 2048 >= static_cast<int64_t>(trace.tables.files[file].size);
            if (jumps || event.opens) {
                if (file != 0 && from_front && ended && event.file != file) {
                    ++out.complete;
                    out.same = out.same && (out.per_file == 0 || out.per_file == samples);
                    out.per_file = std::max(out.per_file, samples);
                }
                end_run();
                file = event.file;
                from_front = event.begin <= 4;
                samples = 0;
            }
            if (in_group > 0) {
                groups.push_back(in_group);
                in_group = 0;
            }
            position = event.end;
        }
        end_run();
    }
    if (counted > 0) {
        out.record = bytes / counted;
        out.record_error = bytes > 0 ? blurred / bytes : 1;
    }
    out.per_group = LoadedSamples::usual(groups).first;
    return out;
}

}  // namespace reprise
