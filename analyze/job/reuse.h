// SPDX-License-Identifier: MIT
// Re-use distance: how much other data was read between two reads of the same place. It says what a page cache of a
// given size would have found (of least recently used order).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analyze/job/accesses.h"

namespace reprise {

struct Reuse {
    static constexpr size_t kSizes = 52;

    double first_bytes = 0;                 // of places that were not read before
    double again_bytes = 0;                 // of the others
    std::array<double, kSizes> again_by{};  // of those, by the distance: up to 2^i bytes
    double longest = 0;                     // bytes
    /// Median distance, bytes, of the files that were read again.
    std::map<FileId, double> by_file;

    double bytes() const { return first_bytes + again_bytes; }
    /// Share of the bytes read again that came back after at most so many other bytes.
    double within(double bytes) const;
    /// Distance that half of the bytes read again do not exceed; 0: none came back.
    double median() const;
};

/// `accesses`: by time. `share`: of the places that they are of. The bytes are those of all places.
Reuse reuse_of(std::span<const Access> accesses, double share);

}  // namespace reprise
