// SPDX-License-Identifier: MIT
#include "formats/oplog/loader_marks.h"

#include <doctest/doctest.h>

using namespace reprise;

TEST_CASE("marks of loaders: what they are of, and whose") {
    REQUIRE(loader_mark("epoch"));
    CHECK(loader_mark("epoch")->loader == 1);
    CHECK(loader_mark("fetch.12")->what == "fetch");
    CHECK(loader_mark("fetch.12")->loader == 12);
    for (const char* other :
         {"", "step", "epoch.", "epoch.1", "epoch.x", "epoch.2x", "epoch.block", "epochs", "step.2"}) {
        CHECK_MESSAGE(!loader_mark(other), other);
    }
}

TEST_CASE("marks of loaders: which epochs are those of the job") {
    using Epochs = std::map<uint32_t, uint64_t>;
    CHECK(which_epoch_marks({}, 2) == EpochMarks::first);
    CHECK(which_epoch_marks(Epochs{{1, 1}}, 2) == EpochMarks::first);
    CHECK(which_epoch_marks(Epochs{{1, 3}, {2, 3}}, 3) == EpochMarks::first);                 // another one validates
    CHECK(which_epoch_marks(Epochs{{1, 1}, {2, 1}}, 1) == EpochMarks::first);                 // likewise
    CHECK(which_epoch_marks(Epochs{{1, 1}, {2, 1}}, 0) == EpochMarks::first);                 // nobody knows
    CHECK(which_epoch_marks(Epochs{{1, 1}, {2, 1}}, 2) == EpochMarks::every);                 // a new one each time
    CHECK(which_epoch_marks(Epochs{{1, 1}, {2, 1}, {3, 1}, {4, 1}}, 2) == EpochMarks::none);  // both new each time
}
