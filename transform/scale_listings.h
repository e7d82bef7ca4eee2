// SPDX-License-Identifier: MIT
// Listings of directories that hold more files (or fewer) in a scaled job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "transform/scale_piece.h"
#include "transform/scale_set.h"

namespace reprise {

class ScaledListings {
public:
    ScaledListings(const Tables& tables, const LargerSet& set);
    /// Finds the listings of a piece.
    void look_at(const std::vector<PieceOp>& ops);
    /// An op of it, if it is part of such a listing; put(op) makes one more before it.
    template <class Put>
    void change(PieceOp& op, Put&& put) {
        const auto found = op.op.kind == OpKind::getdents ? last_.find(key(op)) : last_.end();
        if (found == last_.end()) {
            return;
        }
        const Last& last = found->second;
        for (int64_t i = 0; i < last.more; ++i) {
            PieceOp one = op;
            one.edges.clear();
            one.op.result = last.full;
            put(one);
        }
        op.op.result = last.rest;
    }

private:
    /// The last op of a listing that returned names.
    struct Last {
        int64_t more = 0, full = 0, rest = 0;  // further ops, what each returns and what the last one does
    };
    static uint64_t key(const PieceOp& op) { return uint64_t{op.task} << 32 | op.number; }

    const Tables& tables_;
    std::unordered_map<std::string_view, int64_t> more_;  // bytes of a listing, by directory
    std::unordered_map<uint64_t, Last> last_;
};

}  // namespace reprise
