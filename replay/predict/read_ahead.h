// SPDX-License-Identifier: MIT
// What Linux reads ahead of a program: which pages it asks the device for when a read or a page fault finds one
// missing, or finds the mark that an earlier window left. The rules are those of Linux 6.18 (mm/readahead.c,
// mm/filemap.c).
#pragma once

#include <cstdint>
#include <functional>

#include "replay/predict/virtual_pages.h"

namespace reprise {

/// Of one open instance: a descriptor that was duplicated, and the mappings made of it, share it.
struct ReadAhead {
    int64_t pages = 0;                       // largest window; 0: reads nothing ahead
    bool random = false;                     // POSIX_FADV_RANDOM: reads take what they ask for, no more
    int64_t start = 0, size = 0, async = 0;  // the window: pages; the mark is `async` before its end
    int order = 0;                           // each window of a stream starts at a rounder page, up to 2^order
    int64_t previous = -1;                   // page where the read before this one ended
    int64_t misses = 0;                      // faults that found nothing, less pages found in the cache
};

/// madvise() of a mapping, or a part of it.
struct MapAdvice {
    bool random = false, sequential = false, huge = false;
    bool operator==(const MapAdvice&) const = default;
};

/// One file as the rules see it.
class ReadAheadRules {
public:
    struct Kind {
        int64_t most_io =
            0;  // pages that the device takes at once, to which a single larger read may exceed the window
        bool large_folios = false;  // the file system caches several pages as one
    };
    /// `ask` is given ranges [from, to) of missing pages, each one request. `end`: pages of the file.
    ReadAheadRules(VirtualPages& cache, ReadAhead& state, int64_t end, Kind kind,
                   const std::function<void(int64_t from, int64_t to)>& ask)
        : cache_(cache), ra_(state), end_(end), kind_(kind), ask_(ask) {}

    /// A read that needs `wanted` pages from `page`, which is missing.
    void missed(int64_t page, int64_t wanted);
    /// A read or a fault at `page`, which carries the mark: it is taken off.
    void met_mark(int64_t page, int64_t wanted);
    /// A fault on `page`, which is missing. It may still be afterwards.
    void fault_missed(int64_t page, MapAdvice advice);
    /// Advice that pages [from, to) will be needed.
    void wanted(int64_t from, int64_t to);

private:
    int64_t most(int64_t wanted) const;
    void window();                                                    // asks for that of the state
    void ask(int64_t from, int64_t to, int64_t mark, int order = 0);  // what is missing; mark: -1 or a page
    void exactly(int64_t from, int64_t pages);

    VirtualPages& cache_;
    ReadAhead& ra_;
    const int64_t end_;
    const Kind kind_;
    const std::function<void(int64_t, int64_t)>& ask_;
};

}  // namespace reprise
