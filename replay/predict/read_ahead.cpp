// SPDX-License-Identifier: MIT
#include "replay/predict/read_ahead.h"

#include <algorithm>
#include <bit>

namespace reprise {
namespace {

constexpr int64_t kLotsOfMisses = 100, kMostMisses = 10 * kLotsOfMisses;
constexpr int64_t kHugePages = (int64_t{2} << 20) / kPageBytes;

/// A stream's first window, for a read of `wanted` pages.
int64_t first_size(int64_t wanted, int64_t most) {
    const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(wanted, 1))));
    return size <= most / 32 ? size * 4 : size <= most / 4 ? size * 2 : most;
}

/// The window after one of `size`.
int64_t next_size(int64_t size, int64_t most) {
    return size < most / 16 ? 4 * size : size <= most / 2 ? 2 * size : most;
}

}  // namespace

/// A window; for a larger read as much as the device takes at once.
int64_t ReadAheadRules::most(int64_t wanted) const {
    return wanted > ra_.pages && kind_.most_io > ra_.pages ? std::min(wanted, kind_.most_io) : ra_.pages;
}

void ReadAheadRules::ask(int64_t from, int64_t to, int64_t mark, int order) {
    to = std::min(to, end_);
    for (int64_t page = std::max<int64_t>(from, 0); page < to;) {
        if (cache_.has(page)) {
            page = cache_.next_missing(page, to);
            continue;
        }
        int64_t last = page + 1;
        while (last < to && !cache_.has(last)) {
            ++last;
        }
        ask_(page, last);
        // Never on a page that was there before: another stream may be ahead.
        if (page <= mark && mark < last) {
            cache_.mark(mark, order > 0 && mark % 2 == 0 && mark + 1 < last);
        }
        page = last;
    }
}

void ReadAheadRules::exactly(int64_t from, int64_t pages) { ask(from, from + pages, -1); }

void ReadAheadRules::window() {
    ra_.order = kind_.large_folios ? ra_.order : 0;
    ask(ra_.start, ra_.start + ra_.size, ra_.start + ra_.size - ra_.async, ra_.order);
}

void ReadAheadRules::wanted(int64_t from, int64_t to) {
    exactly(from, std::min(to - from, std::max(kind_.most_io, ra_.pages)));
}

void ReadAheadRules::missed(int64_t page, int64_t wanted) {
    if (ra_.pages == 0) {
        exactly(page, 1);
        return;
    }
    if (ra_.random) {
        this->wanted(page, page + wanted);
        return;
    }
    const int64_t most = this->most(wanted);
    const int64_t from_previous = page - ra_.previous;
    if (page == 0 || wanted > most || (ra_.previous >= 0 && (from_previous == 0 || from_previous == 1))) {
        ra_.start = page;
        ra_.size = first_size(wanted, most);
        ra_.async = ra_.size > wanted ? ra_.size - wanted : ra_.size / 2;
    } else {
        // Another descriptor, or a stream whose state another one overwrote: its pages tell.
        int64_t run = cache_.run_before(page, most);
        if (run <= wanted) {
            exactly(page, wanted);
            return;
        }
        run *= run == page ? 2 : 1;  // cached from the file's begin
        ra_.start = page;
        ra_.size = std::min(run + wanted, most);
        ra_.async = 1;
    }
    ra_.order = 0;
    window();
}

void ReadAheadRules::met_mark(int64_t page, int64_t wanted) {
    const int64_t late = cache_.is_marked_large(page) ? 1 : 0;
    cache_.unmark(page);
    if (ra_.pages == 0) {
        return;
    }
    const int64_t most = this->most(wanted);
    if (page == ra_.start + ra_.size - ra_.async) {
        ra_.start += ra_.size;
        ra_.size = std::max(ra_.size, next_size(ra_.size, most));
    } else {
        // The mark of another stream: its window ends where pages are missing.
        // Where the mark is on a large folio, Linux looks one page too early and takes what it finds for one later:
        // after a full window it gives up, so that the stream faults its way on.
        const int64_t from = page + 1 - late, missing = cache_.next_missing(from, from + most);
        if (missing == from + most) {
            return;
        }
        ra_.start = missing + late;
        ra_.size = next_size(ra_.start - page + wanted, most);
    }
    constexpr int kMostOrder = 30;
    ra_.order = std::min(ra_.order + 2, kMostOrder);
    const int64_t round = int64_t{1} << std::min(ra_.order, std::countr_zero(static_cast<uint64_t>(most)));
    const int64_t end = (ra_.start + ra_.size) / round * round;
    if (end > ra_.start) {
        ra_.size = end - ra_.start;
    }
    ra_.async = ra_.size;
    window();
}

void ReadAheadRules::fault_missed(int64_t page, MapAdvice advice) {
    if (advice.huge) {
        ra_.start = page / kHugePages * kHugePages;
        ra_.size = advice.random ? kHugePages : 2 * kHugePages;
        ra_.async = kHugePages;
        ra_.order = std::countr_zero(static_cast<uint64_t>(kHugePages));
        window();
        return;
    }
    if (advice.random || ra_.pages == 0) {
        return;
    }
    if (advice.sequential) {
        missed(page, ra_.pages);
        return;
    }
    ra_.misses = std::min(ra_.misses + 1, kMostMisses);
    if (ra_.misses > kLotsOfMisses) {
        return;
    }
    ra_.start = std::max<int64_t>(page - ra_.pages / 2, 0);
    ra_.size = ra_.pages;
    ra_.async = ra_.pages / 4;
    ra_.order = 0;
    window();
}

}  // namespace reprise
