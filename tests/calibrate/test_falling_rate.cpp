// SPDX-License-Identifier: MIT
#include "calibrate/falling_rate.h"

#include "tests/support.h"

namespace reprise::test {
namespace {

DepthRow row(int64_t bytes, int depth, double per_s) {
    DepthRow made;
    made.bytes = bytes;
    made.depth = depth;
    made.per_s = per_s;
    return made;
}

}  // namespace

TEST_CASE("a rate that halves with more in flight is named, of each size by itself") {
    StorageModel model;
    model.read_depth = {row(4096, 1, 5'000), row(4096, 16, 9'486), row(4096, 64, 3'954), row(131072, 1, 900)};
    CHECK(falling_rate(model) == "9,486 reads of 4.00 KiB a second with 16 in flight, and 3,954 with 64");
    model.read_depth[2].per_s = 4'800;  // more than half
    CHECK(falling_rate(model).empty());
    model.write_depth = {row(131072, 4, 1'000), row(131072, 16, 400)};
    CHECK(falling_rate(model).empty());  // a cache that is full
    CHECK(falling_rate(StorageModel{}).empty());
}

}  // namespace reprise::test
