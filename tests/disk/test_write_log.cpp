// SPDX-License-Identifier: MIT
// The log of a disk's writes, and the disk as it was after any of them.
#include "disk/write_log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;

namespace {

std::span<const std::byte> bytes(const char* text) { return std::as_bytes(std::span(text, std::strlen(text))); }

}  // namespace

TEST_CASE("a write log: what was written is applied in its order; a torn end is left out, damage is named") {
    const test::TempDir folder;
    const auto path = folder / "log";
    {
        WriteLogWriter log(path);
        CHECK(log.add({DiskWrite::Kind::write, 2, 3, 100, 0}, bytes("abc")) == 0);
        CHECK(log.add({DiskWrite::Kind::flush, 0, 0, 200, 0}, {}) == 0);
        CHECK(log.add({DiskWrite::Kind::write, 3, 1, 300, 0}, bytes("X")) == 0);
        CHECK(log.add({DiskWrite::Kind::zero, 2, 1, 400, 0}, {}) == 0);
    }
    const WriteLog log(path);
    REQUIRE(log.writes().size() == 4);
    CHECK(log.writes()[1].kind == DiskWrite::Kind::flush);
    CHECK(log.writes()[2].arrived == 300);
    test::write_file(folder / "image", "........");
    const UniqueFd image(::open((folder / "image").c_str(), O_RDWR | O_CLOEXEC));
    const char* const after[] = {"..abc...", "..abc...", "..aXc..."};
    for (size_t i = 0; i < 3; ++i) {
        log.apply(log.writes()[i], image.get());
        CHECK(test::read_file(folder / "image") == after[i]);
    }
    log.apply(log.writes()[3], image.get());
    CHECK(test::read_file(folder / "image") == std::string("..\0Xc...", 8));

    const std::string whole = test::read_file(path);
    for (size_t size = 8; size < whole.size(); ++size) {
        test::write_file(path, whole.substr(0, size));
        CHECK(WriteLog(path).writes().size() < 4);
    }
    test::write_file(path, whole.substr(0, 7));
    CHECK_THROWS_AS(WriteLog{path}, Error);
    std::string damaged = whole;
    damaged[8] = 9;
    test::write_file(path, damaged);
    CHECK_THROWS_AS(WriteLog{path}, Error);
    CHECK_THROWS_AS(WriteLog{folder / "none"}, Error);
    CHECK_THROWS_AS(WriteLogWriter{folder / "none/log"}, Error);
}
