// SPDX-License-Identifier: MIT
// The clocks of several recordings, made one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/oplog/tables.h"

namespace reprise {

/// Logs of one boot of one machine have one clock.
class MergeClocks {
public:
    /// `headers`: of the logs; the first one's clock is the merged log's.
    explicit MergeClocks(const std::vector<const Header*>& headers);

    /// A message was sent no earlier than `sent` of log `from` and received no later than `received` of log `to`, in
    /// the times of these logs.
    void see(size_t from, size_t to, int64_t sent, int64_t received);
    /// Moves the clocks of other machines by the least that no message is received before it is sent.
    void correct();

    /// What is added to a log's times, ns.
    int64_t offset(size_t log) const { return offsets_[log] + clocks_[clock_of_[log]].moved; }
    int64_t corrected(size_t log) const { return clocks_[clock_of_[log]].moved; }
    bool same_clock(size_t a, size_t b) const { return clock_of_[a] == clock_of_[b]; }
    /// How far it may be off from the first log's; none: not known.
    std::optional<int64_t> error(size_t log) const;
    std::string how(size_t log) const;

private:
    struct Clock {
        bool by_wall = false;               // aligned by the wall clocks
        std::optional<int64_t> wall_error;  // of both machines together
        int64_t moved = 0;
    };
    std::vector<size_t> clock_of_;
    std::vector<int64_t> offsets_;
    std::vector<Clock> clocks_;
    std::map<std::pair<size_t, size_t>, int64_t> least_;  // by clocks (a, b): how much later b's must be set, at least
};

}  // namespace reprise
