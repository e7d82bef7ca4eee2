// SPDX-License-Identifier: MIT
#include "calibrate/clock.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace reprise {
namespace {

bool kernel_uses_tsc() {
#if defined(__x86_64__)
    std::ifstream in("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;
    return in >> name && name == "tsc";
#else
    return false;
#endif
}

}  // namespace

const bool detail::ticks_are_tsc = kernel_uses_tsc();

TickPoint take_tick_point() {
    TickPoint best;
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 7; ++i) {
        const uint64_t before = ticks_now();
        const int64_t ns = monotonic_ns();
        const uint64_t after = ticks_now();
        if (after - before < width) {
            width = after - before;
            best = {before + (after - before) / 2, ns};
        }
    }
    return best;
}

double tick_length_ns(const TickPoint& from, const TickPoint& to) {
    if (to.tick <= from.tick || to.ns <= from.ns) {
        return 1.0;
    }
    return static_cast<double>(to.ns - from.ns) / static_cast<double>(to.tick - from.tick);
}

double measure_tick_length_ns(const TickPoint& from, int64_t ns) {
    const int64_t missing = from.ns + ns - monotonic_ns();
    if (missing > 0) {
        const timespec rest{missing / 1'000'000'000, missing % 1'000'000'000};
        nanosleep(&rest, nullptr);
    }
    return tick_length_ns(from, take_tick_point());
}

void TickTimeline::add(const TickPoint& point) {
    if (points_.empty() || point.tick > points_.back().tick) {
        points_.push_back(point);
    }
}

void TickTimeline::catch_up(const TickTimeline& longer) {
    for (size_t i = points_.size(); i < longer.points_.size(); ++i) {
        points_.push_back(longer.points_[i]);
    }
}

void SharedTimeline::add(const TickPoint& point) {
    const std::lock_guard lock(mutex_);
    points_.add(point);
}

void SharedTimeline::add_now() {
    const std::lock_guard lock(mutex_);
    points_.add(take_tick_point());
}

void SharedTimeline::catch_up(TickTimeline& copy) const {
    const std::lock_guard lock(mutex_);
    copy.catch_up(points_);
}

int64_t TickTimeline::ns(uint64_t tick) const {
    if (points_.empty()) {
        return 0;
    }
    if (points_.size() == 1) {
        return points_[0].ns + static_cast<int64_t>(tick - points_[0].tick);
    }
    const size_t segments = points_.size() - 1;
    const auto holds = [&](size_t i) {
        return (i == 0 || points_[i].tick <= tick) && (i + 1 == segments || tick < points_[i + 1].tick);
    };
    if (last_ >= segments || !holds(last_)) {
        const auto after = std::upper_bound(points_.begin(), points_.end(), tick,
                                            [](uint64_t t, const TickPoint& p) { return t < p.tick; });
        const size_t index = after == points_.begin() ? 0 : static_cast<size_t>(after - points_.begin()) - 1;
        last_ = std::min(index, segments - 1);
    }
    const TickPoint& from = points_[last_];
    const double length = tick_length_ns(from, points_[last_ + 1]);
    const auto distance = static_cast<int64_t>(tick - from.tick);
    return from.ns + static_cast<int64_t>(static_cast<double>(distance) * length);
}

}  // namespace reprise
