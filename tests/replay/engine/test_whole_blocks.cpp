// SPDX-License-Identifier: MIT
// What is read and written in place of parts of blocks. The file system takes any part here: tests/cli/part_blocks.sh
// has one that does not.
#include "replay/engine/whole_blocks.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/support/unique_fd.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Blocks {
    TempDir dir;
    std::string name = (dir / "file").string();
    std::vector<std::byte> content = std::vector<std::byte>(10'000), buffer = std::vector<std::byte>(24'000);
    Blocks() {
        for (size_t i = 0; i < content.size(); ++i) {
            content[i] = static_cast<std::byte>(i * 7 % 251);
        }
        const UniqueFd out(::open(name.c_str(), O_WRONLY | O_CREAT, 0644));
        REQUIRE(::write(out.get(), content.data(), content.size()) == 10'000);
    }
    /// Of the part that was asked for.
    bool same(BlockRange asked, int64_t bytes, int64_t block) const {
        return std::memcmp(buffer.data() + (asked.offset & (block - 1)), content.data() + asked.offset,
                           static_cast<size_t>(bytes)) == 0;
    }
};

}  // namespace

TEST_CASE("whole blocks: which ranges are parts") {
    CHECK_FALSE(BlockRange{8'192, 4'096}.is_part(4'096));
    CHECK(BlockRange{512, 4'096}.is_part(4'096));
    CHECK(BlockRange{4'096, 512}.is_part(4'096));
    CHECK_FALSE(BlockRange{512, 1'024}.is_part(512));
    CHECK_FALSE(BlockRange{3, 5}.is_part(1));
    CHECK_FALSE(BlockRange{3, 5}.is_part(0));  // read none so: not for us to mend
}

TEST_CASE_FIXTURE(Blocks, "whole blocks: a read takes the blocks around it, and returns what was asked for") {
    const UniqueFd fd(::open(name.c_str(), O_RDONLY));
    const auto read = [&](BlockRange asked, int64_t expected) {
        const BlockRead got = read_whole_blocks(fd.get(), buffer.data(), asked, expected, 4'096);
        CHECK(same(asked, std::max<int64_t>(got.result, 0), 4'096));
        return std::pair{got.result, got.fetched};
    };
    CHECK(read({512, 512}, 512) == std::pair<int64_t, int64_t>{512, 4'096});
    CHECK(read({4'000, 200}, 200) == std::pair<int64_t, int64_t>{200, 8'192});  // of two
    CHECK(read({0, 4'096}, 4'096) == std::pair<int64_t, int64_t>{4'096, 4'096});
    CHECK(read({9'000, 4'000}, 1'000) == std::pair<int64_t, int64_t>{1'000, 1'808});  // at the end
    CHECK(read({10'000, 100}, 0) == std::pair<int64_t, int64_t>{0, 1'808});
    CHECK(read({20'000, 100}, 0) == std::pair<int64_t, int64_t>{0, 0});
    CHECK(read_whole_blocks(fd.get(), buffer.data(), {-1, 100}, 0, 4'096).result == -EINVAL);
    CHECK(read_whole_blocks(fd.get(), buffer.data(), {INT64_MAX - 100, 50}, 0, 4'096).result <= 0);
    CHECK(read_whole_blocks(-1, buffer.data(), {512, 512}, 0, 4'096).result == -EBADF);
}

TEST_CASE_FIXTURE(Blocks, "whole blocks: a write leaves what is around it, and the end where it belongs") {
    const std::vector<std::byte> ones(700, std::byte{255});
    const UniqueFd fd(::open(name.c_str(), O_RDWR));
    CHECK(write_around_direct(fd.get(), ones.data(), 512, 512) == 512);
    std::memset(content.data() + 512, 255, 512);
    CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 0);  // that was no write at the position
    CHECK(::lseek(fd.get(), 9'800, SEEK_SET) == 9'800);
    CHECK(write_around_direct(fd.get(), ones.data(), -1, 700) == 700);
    CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 10'500);
    content.resize(10'500);
    std::memset(content.data() + 9'800, 255, 700);
    CHECK(::pread(fd.get(), buffer.data(), buffer.size(), 0) == 10'500);
    CHECK(std::memcmp(buffer.data(), content.data(), 10'500) == 0);
    SUBCASE("at the end of a file that is only added to") {
        const UniqueFd adds(::open(name.c_str(), O_WRONLY | O_APPEND));
        CHECK(write_around_direct(adds.get(), ones.data(), -1, 100) == 100);
        CHECK(::lseek(adds.get(), 0, SEEK_CUR) == 10'600);
    }
    SUBCASE("nowhere") {
        const UniqueFd reads(::open(name.c_str(), O_RDONLY));
        CHECK(write_around_direct(reads.get(), ones.data(), 0, 100) == -EBADF);
        CHECK(write_around_direct(-1, ones.data(), 0, 100) == -EBADF);
    }
}

TEST_CASE_FIXTURE(Blocks, "whole blocks: what a file system takes is asked, and is a power of two") {
    const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_DIRECT));
    if (!fd.valid()) {
        REPRISE_SKIP("no O_DIRECT on this file system");
    }
    const int64_t block = direct_block(fd.get());
    CHECK(block >= 1);
    CHECK(block <= kMostBlock);
    CHECK((block & (block - 1)) == 0);
}
