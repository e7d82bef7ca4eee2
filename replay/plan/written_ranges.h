// SPDX-License-Identifier: MIT
// Who wrote which bytes of a file last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "formats/oplog/op.h"

namespace reprise {

/// Bytes that are written over, as those of a status file that another task polls. Of a file with very many such ranges
/// (a database) those before are forgotten now and then.
class WrittenRanges {
public:
    struct By {
        TaskId task = 0;
        uint64_t op = 0;
        int64_t end = 0;  // of the op, ns
    };

    void write(int64_t from, int64_t to, const By& by) {
        if (from < 0 || from >= to) {
            return;
        }
        if (ranges_.size() >= kMost) {
            ranges_.clear();
        }
        auto at = ranges_.upper_bound(from);
        if (at != ranges_.begin()) {
            const auto before = std::prev(at);
            if (const Range old = before->second; old.to > from) {
                before->second.to = from;
                if (old.to > to) {
                    ranges_.insert_or_assign(to, old);
                }
                if (before->first == from) {
                    ranges_.erase(before);
                }
            }
        }
        while (at != ranges_.end() && at->first < to) {
            if (at->second.to > to) {
                ranges_.insert_or_assign(to, at->second);
            }
            at = ranges_.erase(at);
        }
        ranges_.insert_or_assign(from, Range{to, by});
    }

    /// `visit(By)`: of each range that the bytes touch.
    template <typename Visit>
    void each(int64_t from, int64_t to, Visit&& visit) const {
        auto at = ranges_.upper_bound(from);
        if (at != ranges_.begin() && std::prev(at)->second.to > from) {
            --at;
        }
        for (; at != ranges_.end() && at->first < to; ++at) {
            visit(at->second.by);
        }
    }

    void clear() { ranges_.clear(); }

private:
    static constexpr size_t kMost = 4096;
    struct Range {
        int64_t to = 0;
        By by;
    };
    std::map<int64_t, Range> ranges_;  // by first byte; none overlap
};

}  // namespace reprise
