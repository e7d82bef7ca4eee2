// SPDX-License-Identifier: MIT
// What is said of the epochs of a run.
#include "cli/show_epochs.h"
#include "tests/units.h"

#include <doctest/doctest.h>

namespace reprise::cli {
namespace {

std::vector<EpochProof> epochs(const std::vector<std::optional<uint64_t>>& own_bytes) {
    std::vector<EpochProof> out;
    for (const auto& bytes : own_bytes) {
        EpochProof epoch;
        epoch.accesses = 10;
        epoch.begin_ns = static_cast<int64_t>(out.size()) * 2'000'000'000;
        epoch.elapsed_ns = 2'000'000'000;
        epoch.device_bytes = bytes;
        epoch.own_bytes = bytes;
        out.push_back(epoch);
    }
    return out;
}
const std::vector<uint64_t> kAsked{kMiB, 100 * kMiB, 100 * kMiB, 100 * kMiB, 100 * kMiB};

}  // namespace

TEST_CASE("epochs that never reached the storage are named") {
    const auto line = [](const std::vector<std::optional<uint64_t>>& bytes) {
        return epochs_line(epochs(bytes), kAsked, false);
    };
    CHECK(line({100 * kMiB, 0}) == "2 (of 2) never reached the storage: the device read 0 B of the 100 MiB asked for");
    CHECK(line({100 * kMiB, 0, kMiB / 2}) ==
          "2 and 3 (of 3) never reached the storage: the device read 512 KiB of the 200 MiB asked for");
    CHECK(line({100 * kMiB, 0, 0, 0}).starts_with("2 to 4 (of 4) never reached the storage"));
    CHECK(line({0, 2 * kMiB, 0, 0}).starts_with("1, 3 and 4 (of 4) never"));
    CHECK(line({100 * kMiB, 2 * kMiB}).empty());
    CHECK(line({0, 0}).empty());  // the first lines say WARM
    CHECK(line({std::nullopt, std::nullopt}).empty());
    CHECK(line({}).empty());
}

TEST_CASE("under a limit the share of each epoch is said") {
    CHECK(epochs_line(epochs({100 * kMiB, 75 * kMiB}), kAsked, true) ==
          "1: 100.0 % from the device in 2.00 s; 2: 75.0 % in 2.00 s");
}

TEST_CASE("the table has a row for each epoch, and JSON says null where nobody knows") {
    std::vector<EpochProof> two = epochs({100 * kMiB, std::nullopt});
    two[0].resident_before = 0.0;
    two[0].resident_after = two[1].resident_before = 0.5;
    const Json json = epochs_table(two, kAsked).json();
    REQUIRE(json.size() == 2);
    CHECK(json[0]["epoch"] == 1);
    CHECK(json[0]["asked_bytes"] == 100 * kMiB);
    CHECK(json[0]["own_bytes"] == 100 * kMiB);
    CHECK(json[0]["resident_after_share"] == 0.5);
    CHECK(json[1]["begin_ns"] == 2'000'000'000);
    CHECK(json[1]["device_bytes"].is_null());
    CHECK(json[1]["amplification"].is_null());
    CHECK(json[1]["resident_after_share"].is_null());
}

}  // namespace reprise::cli
