// SPDX-License-Identifier: MIT
#include "calibrate/other_io.h"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

namespace reprise {
namespace {

constexpr uint64_t kMib = 1 << 20;

/// What passes in one measurement, MiB.
struct Passed {
    uint64_t device_read = 0, own_read = 0, device_written = 0, own_written = 0;
};

int disturbed(const std::vector<Passed>& all, double share) {
    OtherIo others;
    MovedBytes sum{{1000 * kMib, 7 * kMib}, {3 * kMib, 5 * kMib}};
    others.next(sum);
    for (const Passed& one : all) {
        sum.device.read_bytes += one.device_read * kMib;
        sum.device.write_bytes += one.device_written * kMib;
        sum.own.read_bytes += one.own_read * kMib;
        sum.own.write_bytes += one.own_written * kMib;
        others.next(sum);
    }
    CHECK(others.share() == doctest::Approx(share));
    return others.disturbed();
}

}  // namespace

TEST_CASE("others use a device while it is measured: by what it moved beyond this process's own") {
    CHECK(disturbed({}, 0) == 0);
    CHECK(disturbed({{100, 100, 0, 0}, {0, 0, 0, 0}}, 0) == 0);
    CHECK(disturbed({{3, 0, 0, 0}}, 0) == 0);     // little
    CHECK(disturbed({{100, 91, 0, 0}}, 0) == 0);  // less than a tenth
    CHECK(disturbed({{100, 88, 0, 0}, {50, 50, 0, 0}}, 0.5) == 1);
    CHECK(disturbed({{0, 0, 300, 0}}, 1) == 1);  // others write while this process reads
    CHECK(disturbed({{10, 10, 10, 200}, {0, 0, 180, 0}}, 0) == 0);
    CHECK(disturbed({{10, 10, 10, 200}, {0, 0, 180, 0}, {0, 0, 30, 0}}, 1.0 / 3) == 1);
    CHECK(disturbed({{10, 10, 300, 200}}, 0) == 0);  // its own writes come when they come
    CHECK(disturbed({{30, 10, 300, 300}}, 0) == 0);
    CHECK(disturbed({{130, 10, 300, 300}}, 1) == 1);
    CHECK(disturbed({{10, 50, 0, 0}}, 0) == 0);  // it counts what a device below moved twice
}

TEST_CASE("others use a device: what cannot be counted is not") {
    OtherIo others;
    others.next(std::nullopt);
    others.next(MovedBytes{});
    others.next(std::nullopt);
    others.next(MovedBytes{{1 << 30, 0}, {}});
    CHECK(others.share() == 0);
    CHECK(others.disturbed() == 0);
}

}  // namespace reprise
