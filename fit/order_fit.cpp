// SPDX-License-Identifier: MIT
#include "fit/order_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/job/sample_order.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr double kInOrder = 0.98;  // of the steps from one sample to the next
constexpr size_t kLeast = 8;

/// Ranks of the samples as they lie, in the order in which each epoch reads them.
std::vector<std::vector<uint32_t>> epochs_of(const JobTrace& trace, const TrainingLoop& loop,
                                             const LoadedSamples& loaded) {
    const bool files = loaded.format == SampleFormat::files;
    std::map<std::pair<uint32_t, int64_t>, uint32_t> places;
    const auto key = [&](const SampleAccess& access) {
        return std::pair{trace.place_of(access.file), files ? 0 : access.offset};
    };
    for (const BatchSamples& batch : loaded.batches) {
        for (const SampleAccess& access : batch.accesses) {
            places.emplace(key(access), 0);
        }
    }
    uint32_t next = 0;
    for (auto& [at, place] : places) {
        place = files ? at.first : next++;
    }
    std::vector<std::vector<uint32_t>> out;
    for (const BatchSamples& batch : loaded.batches) {
        const uint32_t epoch = loop.ranks[batch.rank].batches[batch.batch].epoch;
        out.resize(std::max<size_t>(out.size(), epoch + 1));
        for (const SampleAccess& access : batch.accesses) {
            out[epoch].push_back(places.at(key(access)));
        }
    }
    return out;
}

/// Whether all samples of a packed data set were read some time, so that their ranks are right.
bool places_known(const std::vector<std::vector<uint32_t>>& epochs, const DataSetFit& set) {
    uint32_t most = 0;
    for (const std::vector<uint32_t>& epoch : epochs) {
        for (const uint32_t place : epoch) {
            most = std::max(most, place + 1);
        }
    }
    return most >= set.samples;
}

/// Files of a stream, in the order in which the loaders of an epoch open them: each reads a part of it.
void order_of_files(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, FittedJob& job) {
    std::map<std::tuple<uint32_t, uint32_t, TaskId>, std::vector<uint32_t>> by_loader;
    for (const BatchSamples& batch : loaded.batches) {
        const BatchLoad& load = loop.ranks[batch.rank].batches[batch.batch];
        std::vector<uint32_t>& files = by_loader[{load.epoch, batch.rank, load.loader}];
        for (const SampleAccess& access : batch.accesses) {
            if (const uint32_t file = trace.place_of(access.file); files.empty() || files.back() != file) {
                files.push_back(file);
            }
        }
    }
    uint64_t steps = 0, next = 0;
    uint32_t epochs = 0;  // so far
    for (const auto& [of, files] : by_loader) {
        if (std::get<0>(of) == epochs && !files.empty()) {  // the first loader begins with the first file
            ++epochs;
            ++steps;
            next += files.front() == 0 ? 1 : 0;
        }
        for (size_t i = 1; i < files.size(); ++i) {
            ++steps;
            next += files[i] == files[i - 1] + 1 ? 1 : 0;
        }
    }
    const bool in_order = static_cast<double>(next) >= kInOrder * static_cast<double>(steps);
    job.add("shuffle", in_order ? "none" : "full",
            "the next file is read after " + std::to_string(next) + " of " + counted(steps, "file"));
    constexpr uint64_t kFew = 4;
    if (trace.data.size() == 1 || (in_order && steps < kFew)) {
        job.cannot_see("shuffle", "hardly a loader goes from one file to another");
    } else if (!in_order) {
        job.cannot_see("shuffle", "whether a buffer shuffles the samples of the files, too: that makes no call");
    }
}

}  // namespace

void fit_order(const JobTrace& trace, const TrainingLoop& loop, const LoadedSamples& loaded, const DataSetFit& set,
               FittedJob& job) {
    if (loaded.format == SampleFormat::none) {
        return;
    }
    if (is_stream(loaded.format)) {
        return order_of_files(trace, loop, loaded, job);
    }
    const auto epochs = epochs_of(trace, loop, loaded);
    uint64_t steps = 0, forward = 0, reads = 0, at_most = 0;
    int64_t early = 0;  // how many samples one comes before its turn, at most
    for (const std::vector<uint32_t>& epoch : epochs) {
        for (size_t i = 0; i < epoch.size(); ++i) {
            steps += i > 0 ? 1 : 0;
            forward += i > 0 && epoch[i] >= epoch[i - 1] ? 1 : 0;
            const int64_t by = static_cast<int64_t>(epoch[i]) - static_cast<int64_t>(i);
            at_most = by > early ? 1 : by == early ? at_most + 1 : at_most;
            early = std::max(early, by);
        }
        reads += epoch.size();
    }
    if (steps < kLeast) {
        job.add("shuffle", "none", counted(reads, "read"));
        return job.cannot_see("shuffle", "too few samples are read");
    }
    const std::string evidence = counted(reads, "read") + " in " + counted(epochs.size(), "epoch");
    if (static_cast<double>(forward) >= kInOrder * static_cast<double>(steps)) {
        job.add("shuffle", "none", evidence);
        return;
    }
    if (trace.maps && !trace.every_touch) {
        job.add("shuffle", "full", evidence);
        return job.cannot_see("shuffle", "whether by a buffer: only the first touch of a page is recorded");
    }
    const auto samples = static_cast<double>(set.samples), all = static_cast<double>(reads);
    const double buffer = static_cast<double>(early) + 1;
    // A buffer lets samples come early by its size at most; where all are drawn, some of the last come first.
    const double margin =
        std::max(std::sqrt(16 / std::max(samples * static_cast<double>(epochs.size()), 16.0)), 8 / all);
    if (buffer >= (1 - margin) * samples) {
        job.add("shuffle", "full", evidence);
        if (margin > 0.2) {
            job.cannot_see("shuffle", "so few samples may also have gone through a buffer of most of them");
        }
        return;
    }
    job.add("shuffle", std::to_string(std::max<int64_t>(early + 1, 2)), evidence + ", none comes earlier");
    // The newest sample of the buffer is drawn at once now and then.
    const double turns = std::min(all, (samples - buffer) * static_cast<double>(epochs.size()));
    const double missed = std::pow(1 - 1 / buffer, std::max(turns, 0.0));
    const bool pages = trace.maps && set.samples > 0 && reads / epochs.size() > 0 && loaded.each == 0;
    if (missed > 0.0002 || pages) {
        job.cannot_see("shuffle", "the size of the buffer: it may be some samples larger");
    }
    if (loaded.format != SampleFormat::files && !places_known(epochs, set)) {
        job.cannot_see("shuffle", "the size of the buffer: samples that were not read let it seem smaller");
    }
    if (trace.maps) {
        // Samples in one page are one here.
        std::vector<uint32_t> distinct = epochs.front();
        std::sort(distinct.begin(), distinct.end());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        if (distinct.size() < epochs.front().size()) {
            job.cannot_see("shuffle", "the size of the buffer: several samples lie in a page");
        }
    }
}

}  // namespace reprise
