// SPDX-License-Identifier: MIT
// What the calls of a recording take where no device has to be waited for: the copy and the call, learned from those
// calls of the recording that memory served.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/support/histogram.h"
#include "replay/plan/plan.h"

namespace reprise {

/// A call counts as served by memory where it took at most twice as long as the quickest tenth of its like, and 10 us:
/// same kind, same power of two of its size, same kind of buffer. It keeps its recorded time; any other takes the
/// median of those. Of transfers of which no size seems to be served by memory, the copy is taken to run at 3 GB/s.
class MemoryTimes {
public:
    /// Reads the ops of the plan once.
    explicit MemoryTimes(const Plan& plan);
    /// ns; never more than recorded.
    int64_t of(const OpBlock& block, size_t i) const;
    /// Bytes moved by calls whose like was never served by memory: their time is a guess.
    uint64_t guessed_bytes() const { return guessed_bytes_; }

private:
    /// Calls that are alike.
    struct Class {
        Histogram recorded;
        uint64_t bytes = 0;
    };
    struct Settled {
        bool known = false;
        int64_t most = 0, typical = 0;  // ns: served by memory up to `most`
    };
    static uint32_t key_of(const OpBlock& block, size_t i);
    void settle(uint32_t key, const Class& of);

    std::map<uint32_t, Class> learning_;
    std::vector<Settled> settled_;  // by key
    double least_ns_per_byte_ = 0;
    uint64_t guessed_bytes_ = 0;
};

}  // namespace reprise
