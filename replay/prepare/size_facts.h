// SPDX-License-Identifier: MIT
// How much of a disk the files of a log come to take: by calls, and by writes to mappings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/prepare/facts.h"

namespace reprise {

/// How much of a disk the files take. Ops come task by task; where tasks share a file, this tells less than it takes.
class SizeFacts {
public:
    SizeFacts(const Tables& tables, std::vector<SizeFact>& into);

    /// `bytes` written at `time`, the furthest of them before `end`.
    void wrote(FileId id, int64_t time, uint64_t end, uint64_t bytes);
    void cut(FileId id, int64_t time, uint64_t size);
    void moved(FileId from, FileId to, int64_t time);

private:
    struct Now {
        uint64_t taken = 0;            // before the writes that `reach` and `most` count
        uint64_t reach = 0, most = 0;  // end of the furthest; bytes of all
        uint64_t told = 0;             // size of the last fact
        size_t grown = 0;              // index + 1 of that, where nothing else has happened since
    };
    std::vector<SizeFact>& into_;
    std::vector<Now> now_;  // by FileId
};

/// Writes to shared mappings of files: pages of a hole become blocks as those that a call writes do.
class MappedSizes {
public:
    explicit MappedSizes(SizeFacts& sizes) : sizes_(sizes) {}
    /// The mapping may be written to; `offset`: of its begin in the file.
    void mapped(uint32_t map, FileId file, uint64_t offset);
    /// A touch or an advice of a mapping.
    void touched(const Op& op);
    /// Mappings may be touched by tasks that come before the one that made them.
    void finish();

private:
    struct Mapping {
        FileId file = 0;
        uint64_t offset = 0;
    };
    struct Touched {
        int64_t time = 0;
        uint64_t end = 0, bytes = 0;
    };
    SizeFacts& sizes_;
    std::unordered_map<uint32_t, Mapping> mappings_;
    std::unordered_map<uint32_t, Touched> early_;  // of mappings that are not known yet
};

}  // namespace reprise
