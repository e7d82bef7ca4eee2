// SPDX-License-Identifier: MIT
// Reads (and seeks, maps, touches) of a scaled job where the file they are of is another one than in the recording, or
// longer: what they ask for, where, and what they get.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "transform/scale_edges.h"
#include "transform/scale_piece.h"
#include "transform/scale_places.h"

namespace reprise {

class ScaledReads {
public:
    /// `now`: the tables of the scaled log.
    ScaledReads(const ScaleRecording& recording, const Tables& now, const ScaledEdges& edges, RecordPlaces& places,
                MadeOps& made, double factor)
        : recording_(recording),
          recorded_(recording.log().tables()),
          now_(now),
          edges_(edges),
          places_(places),
          made_(made),
          factor_(factor) {}

    bool holds_records(FileId file) const { return places_.holds(file); }
    /// Of a file that is as long as the set is large.
    int64_t new_size(FileId file) const;
    void enter(size_t passage, uint32_t epochs);

    /// An op on a sample of the recorded file `opened`, whose handle is the new one.
    void sample(Op& op, FileId opened);
    /// An op on a file of records, likewise; `map`: the recorded mapping. False where nothing is left of it.
    bool record(PieceOp& of, TaskId task, uint32_t map, FileId file);
    /// An op that was made, if it is on an index: the rest of one that is longer now.
    void index(const PieceOp& of, TaskId task);

private:
    template <class Place>
    void touch(PieceOp& of, Place&& place);
    void seek(const PieceOp& of, TaskId task, int64_t to);
    bool read_record(PieceOp& of, TaskId task, FileId file, uint32_t epoch);

    /// Recorded and new sizes of what an open instance of a sample is of, where they differ.
    struct OtherSize {
        int64_t before = 0, now = 0;
        int64_t recorded = 0, position = 0;  // where the last read ended
    };
    const ScaleRecording& recording_;
    const Tables& recorded_;
    const Tables& now_;
    const ScaledEdges& edges_;
    RecordPlaces& places_;
    MadeOps& made_;
    const double factor_;
    uint32_t epochs_ = 0;  // by which the passage is later
    std::unordered_map<HandleId, OtherSize> sizes_;
    std::unordered_map<HandleId, int64_t> positions_;
    std::unordered_map<HandleId, std::pair<TaskId, size_t>> seeks_;  // not yet read after
};

}  // namespace reprise
