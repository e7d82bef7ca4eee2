// SPDX-License-Identifier: MIT
// How far a time may be off: by its sources, one after the other and together.
#include "replay/interval/interval.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

using namespace reprise;

namespace {

constexpr int64_t kSecond = 1'000'000'000;

ErrorSources all_in(PathPart part) {
    ErrorSources from;
    from.elapsed_ns = 10 * kSecond;
    from.path.of(part) = 10 * kSecond;
    return from;
}
double down(const ErrorSources& from) {
    return static_cast<double>(from.elapsed_ns - interval_of(from)->low_ns) / kSecond;
}
double up(const ErrorSources& from) {
    return static_cast<double>(interval_of(from)->high_ns - from.elapsed_ns) / kSecond;
}
/// How far down a source reaches, s; 0 where it is not among the parts.
double part_down(const ErrorSources& from, const std::string& name) {
    const TimeInterval interval = *interval_of(from);
    for (const TimeInterval::Part& part : interval.parts) {
        if (part.name == name) {
            return part.down_ns / kSecond;
        }
    }
    return 0;
}

}  // namespace

TEST_CASE("interval: no time, no interval") { CHECK(!interval_of({})); }

TEST_CASE("interval: it holds the time, and lies evenly about it where no source has a side") {
    for (size_t part = 0; part < kPathParts; ++part) {
        const ErrorSources from = all_in(static_cast<PathPart>(part));
        CAPTURE(part);
        CHECK(down(from) > 0);
        CHECK(down(from) == doctest::Approx(up(from)));
    }
}

TEST_CASE("interval: waits whose cause nobody knows are the least certain, sleeps the most") {
    CHECK(up(all_in(PathPart::unexplained)) > up(all_in(PathPart::compute)));
    CHECK(up(all_in(PathPart::compute)) > up(all_in(PathPart::device)));
    CHECK(up(all_in(PathPart::device)) > up(all_in(PathPart::accelerator)));
    CHECK(up(all_in(PathPart::accelerator)) > up(all_in(PathPart::asleep)));
}

TEST_CASE("interval: each source widens it, some downwards only") {
    const ErrorSources plain = all_in(PathPart::compute);
    const auto wider = [&](auto change, bool both) {
        ErrorSources from = plain;
        change(from);
        CHECK(down(from) > down(plain));
        if (both) {
            CHECK(up(from) > up(plain));
        } else {
            CHECK(up(from) == doctest::Approx(up(plain)));
        }
    };
    wider([](ErrorSources& s) { s.speed_uncertainty = 0.2; }, true);
    wider([](ErrorSources& s) { s.order_open = true; }, true);
    wider([](ErrorSources& s) { s.added_ns = 1e9; }, false);
    wider([](ErrorSources& s) { s.alone_ns = kSecond; }, false);
    wider([](ErrorSources& s) { s.taken_share = 0.2; }, false);
    wider([](ErrorSources& s) { s.path.doubtful_ns = 1e9; }, false);
    ErrorSources storage = all_in(PathPart::device), predicted = storage;
    predicted.predicted = true;
    CHECK(up(predicted) > up(storage));
}

TEST_CASE("interval: independent sources add in quadrature") {
    ErrorSources from = all_in(PathPart::asleep);
    from.added_ns = 3e9;
    from.path.doubtful_ns = 4e9;
    CHECK(down(from) == doctest::Approx(5).epsilon(0.01));
}

TEST_CASE("interval: never below 0") {
    ErrorSources from = all_in(PathPart::compute);
    from.added_ns = 50e9;
    CHECK(interval_of(from)->low_ns == 0);
}

TEST_CASE("interval: several recordings and runs say themselves how much they vary") {
    ErrorSources calm = all_in(PathPart::compute);
    calm.recordings = {5, 0.001};
    calm.runs = {5, 0.001};
    CHECK(up(calm) < up(all_in(PathPart::compute)) / 5);
    ErrorSources wild = calm;
    wild.recordings.deviation = 0.2;
    CHECK(up(wild) > up(all_in(PathPart::compute)));
    // Two of them say too little.
    ErrorSources two = all_in(PathPart::compute);
    two.recordings = {2, 0.0};
    two.runs = {2, 0.0};
    CHECK(up(two) == doctest::Approx(up(all_in(PathPart::compute))));
    // Unless they lie far apart.
    two.runs = scatter_of({0.685, 0.762});
    CHECK(up(two) > up(all_in(PathPart::compute)));
    CHECK(up(two) / 10 > 0.762 / 0.7235 - 1);
    two.runs = {2, 0.0};
    two.recordings = {2, 0.2};
    CHECK(up(two) > 4);
    // Of as much scatter, more runs leave less open.
    const auto runs = [](size_t count) {
        ErrorSources from = all_in(PathPart::asleep);
        from.runs = {count, 0.05};
        return up(from);
    };
    CHECK(runs(3) > runs(5));
    CHECK(runs(11) > runs(12));
    CHECK(runs(12) > runs(100));
}

TEST_CASE("interval: of several runs it holds the one that is shown") {
    ErrorSources from = all_in(PathPart::asleep);
    from.runs = {10, 0.001};
    for (const int64_t shown : {9 * kSecond, 11 * kSecond}) {
        from.shown_ns = shown;
        CHECK(interval_of(from)->low_ns <= std::min(shown, from.elapsed_ns));
        CHECK(interval_of(from)->high_ns >= std::max(shown, from.elapsed_ns));
    }
}

TEST_CASE("interval: what waits are taken to make of compute may be less") {
    ErrorSources from = all_in(PathPart::compute);
    const TimeInterval without = *interval_of(from);
    from.after_waits_ns = -2e9;  // taken off
    const TimeInterval less = *interval_of(from);
    CHECK(less.low_ns == without.low_ns);
    CHECK(less.high_ns >= from.elapsed_ns + 2 * kSecond);
    from.after_waits_ns = 2e9;
    const TimeInterval more = *interval_of(from);
    CHECK(more.high_ns == without.high_ns);
    CHECK(more.low_ns <= from.elapsed_ns - 2 * kSecond);
    PathTimes path;
    path.of(PathPart::compute) = kSecond;
    CHECK(after_waits_on_path(path, -4e8, 4e9) == doctest::Approx(-1e8));  // a quarter of it is on the path
    CHECK(after_waits_on_path(path, -4e8, 0.5e9) == doctest::Approx(-4e8));
    CHECK(after_waits_on_path(path, -4e8, 0) == 0);
    CHECK(guessed_after_waits(-1e8, kSecond, 0.1).empty());
    CHECK(guessed_after_waits(-2e8, kSecond, 0.1) ==
          "assumed 200 ms less compute after shorter waits (this machine's cache costs; the job's may be lower)");
}

TEST_CASE("interval: its parts have names, and each of them once") {
    ErrorSources from = all_in(PathPart::compute);
    from.path.of(PathPart::device) = kSecond;
    from.path.doubtful_ns = 1e9;
    from.added_ns = 1e9;
    from.taken_share = 0.1;
    from.speed_uncertainty = 0.1;
    from.predicted = true;
    std::set<std::string> names;
    const TimeInterval interval = *interval_of(from);
    for (const TimeInterval::Part& part : interval.parts) {
        CHECK(names.insert(part.name).second);
    }
    CHECK(names.count("CPU speed") == 1);
    CHECK(names.count("the runs' variation") == 0);  // a prediction has none
    CHECK(part_down(from, "added by the replay") == doctest::Approx(1));
    CHECK(part_down(from, "other load") == doctest::Approx(1));
}

TEST_CASE("scatter: as a share of the mean") {
    CHECK(scatter_of({}).count == 0);
    CHECK(scatter_of({3}).deviation == 0);
    const Scatter scatter = scatter_of({9, 10, 11});
    CHECK(scatter.count == 3);
    CHECK(scatter.deviation == doctest::Approx(0.1));
    CHECK(scatter_of({0, 0}).deviation == 0);
}

TEST_CASE("parts of a path: by what decides how long an op takes") {
    const auto part = [](OpKind kind, CausalRole role, int64_t ns = 1'000'000, int64_t arg = 0, int64_t result = 1) {
        return path_part(kind, arg, result, role, ns);
    };
    CHECK(part(OpKind::pread, CausalRole::call) == PathPart::device);
    CHECK(part(OpKind::pread, CausalRole::call, 5'000) == PathPart::call);
    CHECK(part(OpKind::send, CausalRole::call) == PathPart::call);
    CHECK(part(OpKind::compute, CausalRole::compute) == PathPart::compute);
    CHECK(part(OpKind::compute, CausalRole::delay) == PathPart::compute);
    CHECK(part(OpKind::gpu_wait, CausalRole::drain) == PathPart::accelerator);
    CHECK(part(OpKind::gpu_submit, CausalRole::submit) == PathPart::accelerator);
    CHECK(part(OpKind::wait, CausalRole::wait) == PathPart::call);
    CHECK(part(OpKind::wait, CausalRole::delay) == PathPart::unexplained);
    CHECK(part(OpKind::receive, CausalRole::delay) == PathPart::unexplained);
    CHECK(part(OpKind::wait, CausalRole::delay, 1'000'000, kWaitSleep) == PathPart::asleep);
    CHECK(part(OpKind::wait, CausalRole::delay, 1'000'000, kWaitPoll) == PathPart::unexplained);
    CHECK(part(OpKind::wait, CausalRole::delay, 1'000'000, kWaitPoll, 0) == PathPart::asleep);  // its time was over
    CHECK(part(OpKind::wait, CausalRole::delay, 1'000'000, epoll_arg(-1), 0) == PathPart::unexplained);
    CHECK(part(OpKind::wait, CausalRole::delay, 1'000'000, epoll_arg(20), 0) == PathPart::asleep);
    CHECK(part(OpKind::wait, CausalRole::delay, 1'000'000, kWaitFutex, -ETIMEDOUT) == PathPart::asleep);
    CHECK(part(OpKind::idle, CausalRole::delay) == PathPart::asleep);
    CHECK(part(OpKind::pread, CausalRole::delay) == PathPart::call);  // it was not performed
    std::set<std::string> names;
    for (size_t i = 0; i < kPathParts; ++i) {
        names.insert(path_part_name(static_cast<PathPart>(i)));
    }
    CHECK(names.size() == kPathParts);
}
