// SPDX-License-Identifier: MIT
// Where in a longer file the records lie that a scaled job reads: in order as far as the recording read them so, else
// spread over it, each once an epoch.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transform/scale_cuts.h"
#include "transform/scale_random.h"

namespace reprise {

class RecordPlaces {
public:
    RecordPlaces(const ScaleRecording& recording, const Score& score, double factor, uint64_t seed);

    bool holds(FileId file) const { return recording_.class_of(file) == SampleClass::records; }
    uint64_t size_before(FileId file) const;
    uint64_t size(FileId file) const;
    /// The next passage begins.
    void enter(size_t passage);
    /// Where access `unit` to `bytes` at a recorded offset is made. `stream`: the open instance or mapping.
    int64_t place(uint64_t stream, uint32_t unit, uint32_t epoch, int64_t offset, int64_t bytes);
    /// Of files that epochs read in order to their end: the share of the longer ones that they did not get to, and
    /// which file misses most.
    std::pair<double, FileId> not_reached() const;

private:
    void see_in_order();
    /// How far the epoch has come in the file at a cut, bytes.
    int64_t reached(FileId file, uint32_t epoch, size_t cut) const;
    void draw();
    int64_t touch(FileId file, TaskId task, uint32_t epoch, int64_t offset, int64_t bytes);
    int64_t slot(FileId file, uint32_t epoch, int64_t around);
    void shift(size_t passage, std::map<std::pair<FileId, uint32_t>, int64_t>& shifts) const;

    struct Stream {
        int64_t recorded = -1, now = 0;  // where the last access ended
    };
    const ScaleRecording& recording_;
    const Score& score_;
    const uint64_t seed_;
    size_t passage_ = 0;  // at hand
    std::vector<FileId> files_;
    std::map<FileId, uint64_t> sizes_;
    std::map<std::pair<FileId, uint32_t>, int64_t> shifts_;                // in order: by file and epoch
    std::map<std::pair<FileId, uint32_t>, std::vector<int64_t>> reached_;  // by cut
    std::vector<uint8_t> ahead_;  // by access: of an index at the end of a file, before what it is of
    std::map<std::pair<FileId, uint32_t>, int64_t> got_to_;  // likewise, in the longer file
    std::unordered_map<uint64_t, int64_t> drawn_;            // where a record lies, by passage and access
    std::unordered_map<uint64_t, Stream> streams_;
    /// Of mapped files that are shorter now: where the pages around a recorded fault lie, by file and epoch.
    std::map<std::pair<FileId, uint32_t>, std::unordered_map<int64_t, int64_t>> slots_;
};

}  // namespace reprise
