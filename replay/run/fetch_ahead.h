// SPDX-License-Identifier: MIT
// Brings the columns of the ops to come into the processor's caches.
#pragma once

#include <cstddef>

#include "formats/oplog/oplog.h"
#include "replay/run/shared.h"

namespace reprise {

/// Ops of a column of 64-bit numbers in one cache line: how often fetch_ahead() is of use.
inline constexpr size_t kFetchEach = 8;

/// A block of 65,536 ops has a dozen columns, half a MiB each, which another thread decoded. A job's calls between two
/// ops keep the processor from seeing that they are read in order, and a read of 4 KiB drives out what it had. These
/// are loads, as columns that were prefetched as far ahead had not arrived beside asynchronous requests. None is null.
/// `i`: the op at hand, every kFetchEach-th. `rows`: of the block. `times`: they are used, too.
template <bool times>
[[gnu::always_inline]] inline void fetch_ahead(const OpBlock& b, size_t i, const SpoolRow* rows) {
    constexpr size_t kAhead = 3 * kFetchEach;
    if (i + kAhead + kFetchEach > b.count()) {
        return;
    }
    const size_t to = i + kAhead;
    const auto fetch = [&](const auto* column) {
        const auto value = column[to];
        asm volatile("" : : "r"(value));
    };
    fetch(b.kind);
    if constexpr (times) {
        fetch(b.begin);
        fetch(b.duration);
    }
    fetch(b.result);
    fetch(b.handle);
    fetch(b.offset);
    fetch(b.size);
    fetch(b.flags);
    fetch(b.arg);
    fetch(b.request);
    __builtin_prefetch(b.file + to);
    __builtin_prefetch(rows + to, 1);
    __builtin_prefetch(rows + to + kFetchEach / 3, 1);
    __builtin_prefetch(rows + to + kFetchEach * 2 / 3, 1);
}

}  // namespace reprise
