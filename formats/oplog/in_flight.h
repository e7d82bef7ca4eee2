// SPDX-License-Identifier: MIT
// Asynchronous requests of a log in figures: how many, how long each took, and how many were in flight for how long.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/oplog/request_matcher.h"
#include "formats/support/bytes.h"
#include "formats/support/histogram.h"

namespace reprise {

/// Requests that occupy the storage (AsyncRequest::on_storage) and whose result the log has.
struct RequestFigures {
    uint64_t requests = 0, reads = 0, writes = 0;
    uint64_t failed = 0;  // results below 0
    uint64_t bytes_read = 0, bytes_written = 0;
    Histogram latency;  // ns from submission to completion
    /// How many were in flight, each number as often as it lasted nanoseconds; without the time with none.
    Histogram depth;

    /// All but the depth: how many were in flight together, the figures of two do not say.
    void add(const RequestFigures& other);
};

struct RingFigures : RequestFigures {
    SeenRing ring;
};

struct InFlight {
    RequestFigures all;
    std::vector<RingFigures> rings;  // those with requests, by process, handle
    uint64_t unfinished = 0;         // requests of any kind, submitted and never reported; in no other figure
    int64_t begin = 0, end = 0;      // ns: first submission and last completion
    /// Mean number in flight in equal parts of the time from `begin` to `end`; empty without requests.
    std::vector<double> over_time;
    /// Requests of any kind that the log has the result of, by what they do.
    std::array<uint64_t, static_cast<size_t>(AsyncRequest::Does::other) + 1> by_kind{};

    bool any() const { return all.requests != 0; }
    static constexpr size_t kParts = 120;
};

/// Share of the time with any in flight in which there were `from` to `to`.
struct DepthShare {
    int64_t from = 0, to = 0;
    double share = 0;
};
/// Each number up to 128 for itself, then doubling; of a RequestFigures::depth. `doubling`: 1, 2, 3 to 4, 5 to 8, ...
std::vector<DepthShare> depth_shares(const Histogram& depth, bool doubling = false);

/// "read", "fdatasync"
std::string_view does_name(AsyncRequest::Does does);

/// Fed with requests in any order. Memory: 3 to 10 bytes for each, and up to 64 KiB for each ring.
class InFlightCounter {
public:
    void add(const DoneRequest& request);
    /// `matcher`: that gave the requests, and has finished. Call once.
    InFlight finish(const RequestMatcher& matcher);

private:
    struct Change {
        int64_t at = 0;
        bool begins = false;
        bool operator<(const Change& other) const {
            return at != other.at ? at < other.at : begins < other.begins;  // ends come first
        }
    };
    /// Changes of one ring in the order of time, each as its distance from the one before and whether a request begins.
    struct Run {
        uint32_t ring = 0;
        int64_t first = 0, last = 0;
        Bytes changes;
    };
    struct OfRing {
        RequestFigures figures;
        std::vector<Change> recent;  // not in a run yet
        size_t run = SIZE_MAX;       // in runs_, that goes on; SIZE_MAX: none
    };
    class Sweep;

    void store(uint32_t ring, size_t changes);

    std::vector<OfRing> rings_;
    std::vector<Run> runs_;
    std::array<uint64_t, static_cast<size_t>(AsyncRequest::Does::other) + 1> by_kind_{};
};

}  // namespace reprise
