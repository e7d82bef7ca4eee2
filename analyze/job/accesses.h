// SPDX-License-Identifier: MIT
// Accesses to the data of files, kept in bounded memory: of more than fit, those to a part of the places, chosen by a
// hash, so that every access to a place is kept or none (spatial sampling as in SHARDS, Waldspurger et al., FAST'15).
#pragma once

#include <cstdint>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// One access; its place is the page of 4 KiB in which it begins.
struct Access {
    int64_t begin = 0;  // ns
    FileId file = 0;
    uint32_t page = 0;  // of 31 bits
    uint32_t bytes = 0;
    TaskId task = 0;

    static constexpr uint32_t kFirst = uint32_t{1} << 31;  // in `page`: the first one through its open instance
    bool first() const { return (page & kFirst) != 0; }
    uint64_t place() const { return uint64_t{file} << 32 | (page & ~kFirst); }
};
static_assert(sizeof(Access) == 24, "a log may have millions");

class AccessSample {
public:
    explicit AccessSample(size_t most = size_t{1} << 20) : most_(most) {}
    void add(int64_t begin, FileId file, int64_t offset, int64_t bytes, TaskId task, bool first);
    /// By time. Call once.
    std::vector<Access> finish();
    /// Share of the places that are kept.
    double share() const { return static_cast<double>(limit_) / static_cast<double>(kHashes); }

private:
    static constexpr uint32_t kHashes = uint32_t{1} << 24;
    static uint32_t hash_of(uint64_t place);

    size_t most_;
    uint32_t limit_ = kHashes;  // places with a lower hash are kept
    std::vector<Access> kept_;
};

}  // namespace reprise
