// SPDX-License-Identifier: MIT
// What one rank of several made of a run, as it goes to rank 0.
#pragma once

#include <utility>

#include "replay/run/merge_results.h"
#include "replay/run/pack_result.h"

namespace reprise::test {

inline Bytes packed(const ReplayResult& result) {
    Bytes out;
    pack(result, out);
    return out;
}

/// Ranks 0 and 1 are on host a, the others on b.
inline RankRun rank(uint32_t number, ReplayResult result) {
    RankRun out;
    out.place.row.rank = number;
    out.place.row.host = number < 2 ? "a" : "b";
    out.place.boot = number < 2 ? "kernel a" : "kernel b";
    out.place.device = "8:0";
    out.result = std::move(result);
    return out;
}

}  // namespace reprise::test
