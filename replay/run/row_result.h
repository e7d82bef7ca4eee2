// SPDX-License-Identifier: MIT
// What a row of the spool says of its op's result: the one rule of the collector and of live figures.
#pragma once

#include <cerrno>
#include <cstdint>

#include "formats/oplog/repeated_looks.h"
#include "formats/oplog/result_rule.h"
#include "replay/plan/left_out.h"
#include "replay/run/shared.h"

namespace reprise {

struct RowResult {
    bool performed = true;
    LeftOut reason = LeftOut::none;
    int64_t actual = 0;       // the call's, or -errno; made up where it was not performed
    bool own_reason = false;  // it was left out on purpose: its result says nothing

    RowResult(const SpoolRow& row, OpKind kind, int64_t recorded) {
        performed = (row.begin & kNotPerformed) == 0;
        if (performed) {
            actual = row.result;
            return;
        }
        reason = static_cast<LeftOut>(row.end);
        // What the job read or wrote through it would be missing without a word.
        const OpInfo& of_kind = info(kind);
        const bool no_data =
            reason == LeftOut::not_permitted && recorded > 0 && (of_kind.is(Trait::reads) || of_kind.is(Trait::writes));
        actual = reason == LeftOut::not_open ? -EBADF : no_data ? -EACCES : -ECANCELED;
        own_reason = reason != LeftOut::none && reason != LeftOut::not_open && !no_data;
    }
};

/// Whether the op has another result than in the recording. `listings`: of the run so far. `looks`: of the op's task.
inline bool result_differs(OpKind kind, const OpBlock& block, size_t i, int64_t recorded, int64_t actual,
                           ListingResults& listings, const LooksOfTask& looks) {
    const ResultMatch match =
        kind == OpKind::getdents
            ? listings.match(block.handle[i], recorded, actual)
            : match_results(kind, result_detail(kind, block.arg[i], block.flags[i]), recorded, actual);
    return match == ResultMatch::differs && !(is_found_or_not(actual) && looks.has(block.first + i));
}

}  // namespace reprise
