// SPDX-License-Identifier: MIT
#include "formats/oplog/in_flight.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

#include "formats/oplog/op_fields.h"

namespace reprise {
namespace {

/// Changes that a ring keeps apart: what comes later than half of them joins a run of its own.
constexpr size_t kRecent = 4096;
/// Distances are stored with one more bit.
constexpr uint64_t kLongest = uint64_t{1} << 62;

}  // namespace

void RequestFigures::add(const RequestFigures& other) {
    requests += other.requests;
    reads += other.reads;
    writes += other.writes;
    failed += other.failed;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    latency.merge(other.latency);
}

std::string_view does_name(AsyncRequest::Does does) {
    using Does = AsyncRequest::Does;
    switch (does) {
        case Does::nothing: return "nop";
        case Does::read: return "read";
        case Does::write: return "write";
        case Does::sync: return "fsync";
        case Does::sync_data: return "fdatasync";
        case Does::sync_range: return "sync_file_range";
        case Does::allocate: return "fallocate";
        case Does::advise: return "fadvise";
        case Does::open: return "open";
        case Does::close: return "close";
        case Does::stat: return "statx";
        case Does::make_name: return "mkdir, link";
        case Does::end_name: return "unlink, rename";
        case Does::splice: return "splice";
        case Does::advise_memory: return "madvise";
        case Does::other: return "other";
    }
    return "other";
}

std::vector<DepthShare> depth_shares(const Histogram& depth, bool doubling) {
    constexpr int64_t kExact = 128;
    std::vector<DepthShare> out;
    depth.each([&](int64_t number, uint64_t ns) {
        DepthShare part{number, number, static_cast<double>(ns) / static_cast<double>(depth.count())};
        if (number > 2 && (doubling || number > kExact)) {
            const int width = std::bit_width(static_cast<uint64_t>(number - 1));
            part.from = (int64_t{1} << (width - 1)) + 1;
            part.to = int64_t{1} << width;
        }
        if (!out.empty() && out.back().to == part.to) {
            out.back().share += part.share;
        } else {
            out.push_back(part);
        }
    });
    return out;
}

void InFlightCounter::add(const DoneRequest& request) {
    ++by_kind_[static_cast<size_t>(request.what.does)];
    if (!request.what.on_storage()) {
        return;
    }
    if (request.ring >= rings_.size()) {
        rings_.resize(size_t{request.ring} + 1);
    }
    OfRing& ring = rings_[request.ring];
    RequestFigures& figures = ring.figures;
    ++figures.requests;
    figures.reads += request.what.reads() ? 1 : 0;
    figures.writes += request.what.writes() ? 1 : 0;
    figures.failed += request.result < 0 ? 1 : 0;
    (request.what.reads() ? figures.bytes_read : figures.bytes_written) += request.bytes();
    figures.latency.add(request.latency());
    ring.recent.push_back({request.begin, true});
    ring.recent.push_back({std::max(request.begin, request.end), false});
    if (ring.recent.size() >= kRecent) {
        store(request.ring, kRecent / 2);
    }
}

/// The earliest of what is recent goes to the ring's run.
void InFlightCounter::store(uint32_t ring, size_t changes) {
    OfRing& of = rings_[ring];
    std::sort(of.recent.begin(), of.recent.end());
    if (changes == 0) {
        return;
    }
    if (of.run == SIZE_MAX || of.recent.front().at < runs_[of.run].last) {
        of.run = runs_.size();
        runs_.push_back({ring, of.recent.front().at, of.recent.front().at, {}});
    }
    Run& run = runs_[of.run];
    for (size_t i = 0; i < changes; ++i) {
        const Change& change = of.recent[i];
        const auto distance = static_cast<uint64_t>(wrapping_sub(change.at, run.last));
        put_varint(run.changes, std::min(distance, kLongest) << 1 | (change.begins ? 1 : 0));
        run.last = change.at;
    }
    of.recent.erase(of.recent.begin(), of.recent.begin() + static_cast<std::ptrdiff_t>(changes));
}

/// Goes through all runs at once, in the order of time.
class InFlightCounter::Sweep {
public:
    Sweep(const std::vector<Run>& runs, std::vector<OfRing>& rings, InFlight& out)
        : rings_(rings), out_(out), of_ring_(rings.size()) {
        for (const Run& run : runs) {
            open_.push_back({ByteReader(ByteView(run.changes)), run.first, false, run.ring});
            out_.begin = std::min(out_.begin, run.first);
            out_.end = std::max(out_.end, run.last);
        }
        whole_ = std::max(static_cast<double>(distance_ns(out_.begin, out_.end)), 1.0);
    }

    void go() {
        const auto later = [this](size_t a, size_t b) {
            const Open &x = open_[a], &y = open_[b];
            return Change{y.at, y.begins} < Change{x.at, x.begins};
        };
        std::priority_queue<size_t, std::vector<size_t>, decltype(later)> next(later);
        for (size_t run = 0; run < open_.size(); ++run) {
            if (step(open_[run])) {
                next.push(run);
            }
        }
        while (!next.empty()) {
            const size_t run = next.top();
            next.pop();
            change(open_[run]);
            if (step(open_[run])) {
                next.push(run);
            }
        }
    }

private:
    struct Open {
        ByteReader changes;
        int64_t at = 0;
        bool begins = false;
        uint32_t ring = 0;
    };
    struct Depth {
        int64_t now = 0, since = 0;
    };

    static bool step(Open& run) {
        if (run.changes.left() == 0) {
            return false;
        }
        const uint64_t value = run.changes.varint();
        run.begins = (value & 1) != 0;
        run.at = end_of(run.at, static_cast<int64_t>(value >> 1));
        return true;
    }

    static void pass(Depth& depth, Histogram& into, int64_t at) {
        if (depth.now > 0 && at > depth.since) {
            into.add(depth.now, static_cast<uint64_t>(distance_ns(depth.since, at)));
        }
        depth.since = at;
    }

    void change(const Open& run) {
        const int64_t by = run.begins ? 1 : -1;
        Depth& depth = of_ring_[run.ring];
        pass(depth, rings_[run.ring].figures.depth, run.at);
        depth.now += by;
        spread(all_.since, run.at);
        pass(all_, out_.all.depth, run.at);
        all_.now += by;
    }

    void spread(int64_t from, int64_t to) {
        if (all_.now <= 0 || to <= from) {
            return;
        }
        const auto part = [this](int64_t at) {
            return static_cast<double>(distance_ns(out_.begin, at)) / whole_ * double{InFlight::kParts};
        };
        const double first = part(from), last = part(to);
        for (auto at = static_cast<size_t>(first); at < InFlight::kParts; ++at) {
            const auto begin = static_cast<double>(at);
            out_.over_time[at] += static_cast<double>(all_.now) * (std::min(last, begin + 1) - std::max(first, begin));
            if (last <= begin + 1) {
                break;
            }
        }
    }

    std::vector<OfRing>& rings_;
    InFlight& out_;
    std::vector<Open> open_;
    std::vector<Depth> of_ring_;
    Depth all_;
    double whole_ = 1;
};

InFlight InFlightCounter::finish(const RequestMatcher& matcher) {
    InFlight out;
    out.by_kind = by_kind_;
    out.unfinished = matcher.unfinished();
    for (uint32_t ring = 0; ring < rings_.size(); ++ring) {
        store(ring, rings_[ring].recent.size());
    }
    if (runs_.empty()) {
        return out;
    }
    out.begin = std::numeric_limits<int64_t>::max();
    out.end = std::numeric_limits<int64_t>::min();
    out.over_time.resize(InFlight::kParts);
    Sweep(runs_, rings_, out).go();
    for (uint32_t ring = 0; ring < rings_.size(); ++ring) {
        if (rings_[ring].figures.requests == 0) {
            continue;
        }
        out.all.add(rings_[ring].figures);
        RingFigures of;
        static_cast<RequestFigures&>(of) = std::move(rings_[ring].figures);
        of.ring = matcher.rings()[ring];
        out.rings.push_back(std::move(of));
    }
    const auto by_name = [](const RingFigures& a, const RingFigures& b) {
        return static_cast<const RingName&>(a.ring) < static_cast<const RingName&>(b.ring);
    };
    std::sort(out.rings.begin(), out.rings.end(), by_name);
    return out;
}

}  // namespace reprise
