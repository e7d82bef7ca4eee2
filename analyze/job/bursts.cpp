// SPDX-License-Identifier: MIT
#include "analyze/job/bursts.h"

#include <algorithm>
#include <cmath>

#include "formats/support/percentile.h"

namespace reprise {

Bursts find_bursts(std::span<const double> bytes, double interval_ns) {
    constexpr size_t kApart = 50;
    constexpr double kPart = 0.01, kMostTime = 0.5;
    Bursts out;
    const size_t apart = std::max<size_t>(bytes.size() / kApart, 1);
    struct Run {
        size_t first, last;
        double bytes;
    };
    std::vector<Run> runs;
    for (size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] <= 0) {
            continue;
        }
        out.bytes += bytes[i];
        if (runs.empty() || i - runs.back().last > apart) {
            runs.push_back({i, i, 0});
        }
        runs.back().last = i;
        runs.back().bytes += bytes[i];
    }
    size_t time = 0;
    for (const Run& run : runs) {
        if (run.bytes >= kPart * out.bytes) {
            time += run.last - run.first + 1;
            out.bursts.push_back({std::llround(static_cast<double>(run.first) * interval_ns),
                                  std::llround(static_cast<double>(run.last + 1) * interval_ns), run.bytes});
        }
    }
    if (static_cast<double>(time) > kMostTime * static_cast<double>(bytes.size())) {
        out.bursts.clear();
    }
    std::vector<int64_t> distances;
    for (size_t i = 1; i < out.bursts.size(); ++i) {
        distances.push_back(out.bursts[i].begin_ns - out.bursts[i - 1].begin_ns);
    }
    out.period_ns = median(std::move(distances));
    return out;
}

}  // namespace reprise
