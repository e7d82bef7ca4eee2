// SPDX-License-Identifier: MIT
// Memory that the processes of a job held: in the log and out of it, and of all together.
#include "formats/oplog/held_memory.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"
#include "tests/support.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

HeldMemories some() {
    return {{1, {{100 * kMs, 10 * kMiB, 0}, {300 * kMs, 30 * kMiB, kMiB}, {900 * kMs, 0, 0}}},
            {3, {{200 * kMs, 5 * kMiB, 0}, {300 * kMs, 1024, 2048}}}};
}

std::filesystem::path write_log(const TempDir& dir, const std::optional<Derived>& held) {
    const auto path = dir / "a.oplog";
    LogWriter writer(path, Header{});
    for (int i = 0; i < 3; ++i) {
        writer.add_process({.pid = 10 + i});
    }
    if (held) {
        writer.keep(*held);
    }
    writer.finish();
    return path;
}

}  // namespace

TEST_CASE("held memory: kept in the log, and by logs made of it") {
    const TempDir dir;
    const LogReader log(write_log(dir, encode_held_memory(some())));
    CHECK(held_memory(log) == some());
    const auto copied = dir / "copy.oplog";
    LogWriter copy(copied, Header{});
    for (int i = 0; i < 3; ++i) {
        copy.add_process({.pid = 10 + i});
    }
    copy_held_memory(log, copy);
    copy.finish();
    CHECK(held_memory(LogReader(copied)) == some());
    CHECK_FALSE(held_memory(LogReader(write_log(dir, std::nullopt))));
}

TEST_CASE("held memory: damaged, it is refused") {
    const Bytes good = encode_held_memory(some()).bytes;
    CHECK(decode_held_memory(good, 4) == some());
    CHECK_THROWS_AS(decode_held_memory(good, 3), Corrupt);  // a process that is not there
    for (size_t cut = 0; cut < good.size(); ++cut) {
        CHECK_THROWS_AS(decode_held_memory(ByteView(good.data(), cut), 4), Corrupt);
    }
    Bytes more = good;
    more.push_back(0);
    CHECK_THROWS_AS(decode_held_memory(more, 4), Corrupt);
    const TempDir dir;
    Derived bad = encode_held_memory(some());
    bad.bytes.pop_back();
    CHECK_THROWS_WITH_AS(held_memory(LogReader(write_log(dir, bad))),
                         doctest::Contains("what it holds of the job's memory"), Error);
}

TEST_CASE("held memory: of all processes together") {
    const std::vector<HeldTotal> total = total_held(some());
    CHECK(total ==
          std::vector<HeldTotal>{
              {100 * kMs, 10 * kMiB}, {200 * kMs, 15 * kMiB}, {300 * kMs, 31 * kMiB + 3072}, {900 * kMs, 3072}});
    CHECK(most_held(total) == 31 * kMiB + 3072);
    CHECK(most_held({}) == 0);
    CHECK(held_at(total, 99 * kMs) == 0);
    CHECK(held_at(total, 100 * kMs) == 10 * kMiB);
    CHECK(held_at(total, 299 * kMs) == 15 * kMiB);
    CHECK(held_at(total, 5'000 * kMs) == 3072);
}

}  // namespace reprise::test
