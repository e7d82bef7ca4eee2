// SPDX-License-Identifier: MIT
#include "calibrate/in_flight.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "calibrate/clock.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr std::array<int, 5> kDepths = {1, 4, 16, 64, 128};
constexpr std::array<int64_t, 3> kSizes = {int64_t{4} << 10, int64_t{128} << 10, int64_t{1} << 20};
constexpr int kMostWrites = 64;  // more in flight tell nothing new
/// A limit of which so much is reached decides, unless requests that did not stand still were so many times faster.
constexpr double kAtLimit = 0.8, kFaster = 1.5;

/// Requests a second while none stands still.
double going(const DepthRow& row) { return row.depth * 1e9 / static_cast<double>(std::max<int64_t>(row.mean_ns, 1)); }

using MakeQueue = std::function<std::unique_ptr<InFlightQueue>(int depth)>;

class Measurement {
public:
    Measurement(const StorageFolder& in, const StorageOptions& options, const StorageModel& m)
        : in_(in), options_(options), m_(m) {
        // A limit that lets some through at once after a pause has to come to its rest first.
        constexpr int64_t kMostRest = 250'000'000;
        const int64_t burst = std::min(std::max(m.read_burst_ns, m.read_step_ns), kMostRest);
        times_.rests_ns = std::max(options.each_ns / 10, std::min(burst, options.each_ns));
        times_.lasts_ns = options.each_ns * 3 / 8;
    }

    /// One size at ascending depths, up to where a limit decides or a request would take too long.
    std::vector<DepthRow> size(InFlightLoad load, std::span<const int> depths, double bytes_per_s, double per_s,
                               const MakeQueue& make) const {
        load.places = std::max<int64_t>(options_.file_bytes / load.bytes, 1);
        const double limit = std::min(bytes_per_s / static_cast<double>(load.bytes), per_s);
        std::vector<DepthRow> rows;
        for (const int depth : depths) {
            in_.check();
            if (depth > 1 && static_cast<double>(depth) / limit > static_cast<double>(options_.each_ns) / 1e9) {
                break;
            }
            load.depth = depth;
            const std::unique_ptr<InFlightQueue> queue = make(depth);
            DepthRow row = keep_in_flight(
                *queue, load, times_, [] { return monotonic_ns(); }, [this] { in_.check(); });
            row.limited = (m_.read_burst_ns > 0 && load.reads > 0 && row.per_s > kAtLimit * limit &&
                           going(row) < kFaster * limit) ||
                          (!rows.empty() && stood_still(row, rows.back()));
            rows.push_back(row);
            if (row.limited) {
                break;
            }
        }
        return rows;
    }

    /// What reads of such a row keep up once a limit has given out what it had saved up.
    DepthRow held(const DepthRow& row, const MakeQueue& make) const {
        constexpr int64_t kRests = 2, kLasts = 3;
        const InFlightLoad load{row.bytes, row.depth, 100, std::max<int64_t>(options_.file_bytes / row.bytes, 1)};
        const std::unique_ptr<InFlightQueue> queue = make(row.depth);
        return keep_in_flight(
            *queue, load, {kRests * options_.each_ns, kLasts * options_.each_ns}, [] { return monotonic_ns(); },
            [this] { in_.check(); });
    }

private:
    const StorageFolder& in_;
    const StorageOptions& options_;
    const StorageModel& m_;
    InFlightTimes times_;
};

/// The median; the mean without those that stood still.
std::pair<int64_t, int64_t> usual(std::vector<int64_t> took) {
    const int64_t middle = median(took), most = std::max(kStill * middle, kLeastStill);
    std::erase_if(took, [&](int64_t ns) { return ns > most; });
    const double sum = std::accumulate(took.begin(), took.end(), 0.0);
    return {middle, static_cast<int64_t>(sum / static_cast<double>(std::max<size_t>(took.size(), 1)))};
}

/// Opened without O_TRUNC: what lies there is read.
UniqueFd open_direct(const StorageFolder& in, const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    const StorageBuffer buffer(kAlign);
    const bool takes = fd.valid() && ::pread(fd.get(), buffer.data, kAlign, 0) == static_cast<ssize_t>(kAlign);
    in.check();
    return takes ? std::move(fd) : UniqueFd();
}

}  // namespace

DepthRow keep_in_flight(InFlightQueue& queue, const InFlightLoad& load, const InFlightTimes& times,
                        const std::function<int64_t()>& now, const std::function<void()>& check) {
    constexpr uint64_t kLeast = 8;  // requests, however long they take
    std::mt19937_64 random(static_cast<uint64_t>(load.bytes) + static_cast<uint64_t>(load.depth));
    std::vector<int64_t> since(static_cast<size_t>(load.depth)), took;
    const auto ask = [&](int slot) {
        const bool write = static_cast<int>(random() % 100) >= load.reads;
        const int64_t place = static_cast<int64_t>(random() % static_cast<uint64_t>(load.places));
        since[static_cast<size_t>(slot)] = now();
        queue.submit(slot, write, place * load.bytes);
    };
    const int64_t begin = now();
    for (int slot = 0; slot < load.depth; ++slot) {
        ask(slot);
    }
    std::exception_ptr stopped;
    int64_t from = -1, at = begin;
    int in_flight = load.depth;
    bool goes_on = true;
    while (in_flight > 0) {
        const int slot = queue.wait();
        --in_flight;
        if (!goes_on) {
            continue;
        }
        at = now();
        if (from >= 0) {
            took.push_back(at - since[static_cast<size_t>(slot)]);
            goes_on = took.size() < kLeast || at - from < times.lasts_ns;
        } else if (at - begin >= times.rests_ns) {
            from = at;
        }
        if (took.size() % 1024 == 1) {
            try {
                check();
            } catch (const Error&) {
                stopped = std::current_exception();
                goes_on = false;
            }
        }
        if (goes_on) {
            ask(slot);
            ++in_flight;
        }
    }
    if (stopped) {
        std::rethrow_exception(stopped);
    }
    DepthRow row{load.bytes, load.depth, 0, 0, 0, false};
    row.per_s = static_cast<double>(took.size()) * 1e9 / static_cast<double>(std::max<int64_t>(at - from, 1));
    std::tie(row.ns, row.mean_ns) = usual(std::move(took));
    return row;
}

void measure_in_flight(const StorageFolder& in, const StorageOptions& options, const std::string& path, StorageModel& m,
                       const std::function<void(const char*)>& step) {
    const UniqueFd file = open_direct(in, path);
    const Measurement measure(in, options, m);
    const auto append = [](std::vector<DepthRow>& to, const std::vector<DepthRow>& rows) {
        to.insert(to.end(), rows.begin(), rows.end());
    };
    const auto queues = [&](int64_t bytes) -> MakeQueue {
        return [&, bytes](int depth) {
            std::unique_ptr<InFlightQueue> ring = uring_queue(in, file.get(), depth, bytes);
            return ring ? std::move(ring) : thread_queue(in, file.get(), depth, bytes);
        };
    };
    const std::span<const int> depths(kDepths), writes = depths.first(4), few = depths.first(3);
    static_assert(kDepths[3] == kMostWrites);
    for (const int64_t bytes : kSizes) {
        step("reads in flight");
        if (file.valid()) {
            append(m.read_depth,
                   measure.size({bytes, 1, 100, 1}, depths, m.read_bytes_per_s, m.reads_per_s, queues(bytes)));
        }
    }
    for (const int64_t bytes : kSizes) {
        step("writes in flight");
        if (file.valid()) {
            append(m.write_depth, measure.size({bytes, 1, 0, 1}, writes, m.write_bytes_per_s, 1e15, queues(bytes)));
        }
    }
    step("reads and writes in flight");
    if (file.valid()) {
        m.mixed_depth = measure.size({kSizes[0], 1, StorageModel::kMixedReads, 1}, writes, m.read_bytes_per_s,
                                     m.reads_per_s, queues(kSizes[0]));
    }
    step("syncs in flight");
    m.sync_depth = measure.size({kSizes[0], 1, 0, 1}, few, 1e15, 1e15,
                                [&](int depth) { return sync_queue(in, depth, kSizes[0]); });
    if (m.read_burst_ns == 0) {
        // What threads were able to do is no limit where a ring does more, all the time.
        constexpr double kAll = 0.85, kMore = 1.02;
        const auto raise = [&](double& rate, const auto& rate_of) {
            const DepthRow* most = nullptr;
            for (const DepthRow& row : m.read_depth) {
                if (row.per_s > kAll * going(row) && (most == nullptr || rate_of(row) > rate_of(*most))) {
                    most = &row;
                }
            }
            if (most != nullptr && rate_of(*most) > kMore * rate) {
                rate = std::max(rate, std::min(rate_of(*most), rate_of(measure.held(*most, queues(most->bytes)))));
            }
        };
        raise(m.read_bytes_per_s, [](const DepthRow& row) { return row.per_s * static_cast<double>(row.bytes); });
        raise(m.reads_per_s, [](const DepthRow& row) { return row.per_s; });
    }
}

}  // namespace reprise
