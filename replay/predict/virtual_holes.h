// SPDX-License-Identifier: MIT
// Which bytes of files no device holds, as a prediction goes on: holes, and space that was allocated and not written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "formats/oplog/op.h"
#include "formats/support/range_set.h"

namespace reprise {

/// Offsets are bytes from 0 to kEnd. Only whole pages are holes. Memory is bounded: a file with more than
/// RangeSet::kMost holes counts as one of which nothing is known.
class VirtualHoles {
public:
    static constexpr int64_t kEnd = int64_t{1} << 61;

    /// `first`: the holes that a file has before anything is done to it, those beyond its end among them; none where
    /// its end is not known.
    using First = std::function<std::optional<RangeSet>(FileId)>;
    void begin_with(First first) { first_ = std::move(first); }

    /// [from, to) has no data from now on.
    void make(FileId file, int64_t from, int64_t to);
    /// [from, to) is written.
    void fill(FileId file, int64_t from, int64_t to);
    /// The file has data, and nobody knows where.
    void forget(FileId file) { files_.insert_or_assign(file, std::nullopt); }

    /// Whether it is known what the file has: all but its holes is data.
    bool knows(FileId file) { return of(file).has_value(); }
    bool is_hole(FileId file, int64_t offset);
    /// use(begin, end, is_hole) of each stretch of [from, to), which are whole pages, in order.
    template <class Use>
    void each(FileId file, int64_t from, int64_t to, Use use) {
        if (const std::optional<RangeSet>& holes = of(file); holes && !holes->empty()) {
            for (const auto& [begin, end] : holes->ranges_from(static_cast<uint64_t>(from))) {
                const auto first = std::max(static_cast<int64_t>(begin), from);
                const auto last = std::min(static_cast<int64_t>(end), to);
                if (first >= to) {
                    break;
                }
                if (first >= last) {
                    continue;
                }
                if (from < first) {
                    use(from, first, false);
                }
                use(first, last, true);
                from = last;
            }
        }
        if (from < to) {
            use(from, to, false);
        }
    }

private:
    std::optional<RangeSet>& of(FileId file);

    First first_;
    std::unordered_map<FileId, std::optional<RangeSet>> files_;
};

}  // namespace reprise
