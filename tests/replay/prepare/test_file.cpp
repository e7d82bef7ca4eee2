// SPDX-License-Identifier: MIT
// The content of one file: written past the page cache or through it, in parts, and stopped.
#include "replay/prepare/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "formats/support/unique_fd.h"
#include "replay/content/content.h"
#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 77;

/// A file of 'x' that is written to.
struct Written {
    TempDir dir;
    fs::path path = dir / "file";
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> done{0};

    UniqueFd open(size_t before, int flags = 0) const {
        write_file(path, std::string(before, 'x'));
        return UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags));
    }
    static std::string random(uint64_t from, uint64_t to) {
        std::string text(to - from, '\0');
        fill_random(kSeed, from, std::as_writable_bytes(std::span(text)));
        return text;
    }
};

/// The largest file this process may write, for as long as it lives; beyond it calls fail.
class Limit {
public:
    explicit Limit(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~Limit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

private:
    void (*handler_)(int);
    rlimit before_{};
};

}  // namespace

TEST_CASE_FIXTURE(Written, "content is written where it belongs, and nothing else is") {
    for (const Content content : {Content::random, Content::zero}) {
        CAPTURE(content_name(content));
        WriteBuffer buffer(content);
        for (const auto& [from, to] : {std::pair<uint64_t, uint64_t>{0, 0},
                                       {0, 1},
                                       {kContentUnit, kContentUnit + 100},
                                       {2 * kContentUnit, 5 * kContentUnit},
                                       {kContentUnit, kContentUnit + kWriteBytes + 17}}) {
            const auto& this_from = from;  // clang 14 has no capture of bindings
            CAPTURE(this_from);
            const auto& this_to = to;  // clang 14 has no capture of bindings
            CAPTURE(this_to);
            const size_t size = kWriteBytes + 3 * kContentUnit;
            const UniqueFd fd = open(size);
            done = 0;
            CHECK(write_content(fd.get(), kSeed, from, to, buffer, stop, done) == 0);
            CHECK(done == to - from);
            const std::string text = read_file(path);
            REQUIRE(text.size() == size);
            const std::string wanted = content == Content::zero ? std::string(to - from, '\0') : random(from, to);
            CHECK((text.substr(0, from) == std::string(from, 'x')));
            CHECK((text.substr(from, to - from) == wanted));
            CHECK((text.substr(to) == std::string(size - to, 'x')));
        }
    }
}

TEST_CASE_FIXTURE(Written, "what cannot be written past the page cache is written through it") {
    const UniqueFd fd = open(200'000, O_DIRECT);
    if (!fd.valid()) {
        REPRISE_SKIP("this file system knows no direct access");
    }
    WriteBuffer buffer(Content::zero);
    // From a place where no direct write can begin.
    CHECK(write_content(fd.get(), kSeed, 100, 10'000, buffer, stop, done) == 0);
    CHECK(done == 9'900);
    const std::string text = read_file(path);
    CHECK((text.substr(0, 100) == std::string(100, 'x')));
    CHECK((text.substr(100, 9'900) == std::string(9'900, '\0')));
    CHECK((text.substr(16'384) == std::string(200'000 - 16'384, 'x')));
    CHECK(text.size() == 200'000);
}

TEST_CASE_FIXTURE(Written, "a stop ends the writing, an error is told") {
    WriteBuffer buffer(Content::random);
    SUBCASE("stopped") {
        const UniqueFd fd = open(10);
        stop = true;
        CHECK(write_content(fd.get(), kSeed, 0, 10, buffer, stop, done) == 0);
        CHECK(done == 0);
        CHECK(read_file(path) == "xxxxxxxxxx");
    }
    SUBCASE("not open for writing") {
        write_file(path, "");
        const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        CHECK(write_content(fd.get(), kSeed, 0, 10, buffer, stop, done) == -EBADF);
        CHECK(begin_file(fd.get(), 10) == -EBADF);
        CHECK(finish_file(fd.get(), 10) == -EINVAL);
    }
    SUBCASE("beyond a limit") {
        const UniqueFd fd = open(0);
        const Limit limit(100'000);
        CHECK(write_content(fd.get(), kSeed, 0, 200'000, buffer, stop, done) == -EFBIG);
        CHECK(begin_file(fd.get(), 200'000) == -EFBIG);
        CHECK(finish_file(fd.get(), 200'000) == -EFBIG);
    }
}

TEST_CASE_FIXTURE(Written, "a file that is begun is a byte too large, until it is finished") {
    const UniqueFd fd = open(0);
    CHECK(begin_file(fd.get(), 1'000'000) == 0);
    CHECK(fs::file_size(path) == 1'000'001);
    CHECK(finish_file(fd.get(), 1'000'000) == 0);
    CHECK(fs::file_size(path) == 1'000'000);
}

TEST_CASE_FIXTURE(Written, "a file larger than a limit allows is refused before anything is written") {
    const UniqueFd nameless(::open(dir.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (!nameless.valid()) {
        REPRISE_SKIP("this file system knows no files without a name");
    }
    LogBuilder builder(dir / "log");
    builder.file("/small", 10);
    builder.file("/large", uint64_t{3} << 30);
    const LogReader log = builder.finish();
    const fs::path root = dir / "root";
    {
        const Limit limit(uint64_t{1} << 31);
        const std::string why = refusal(log, {.root = root, .content = Content::sparse});
        CHECK(contains(why, "4 the log has a file of 3221225472 bytes, large, which is more than the file system"));
        CHECK_FALSE(fs::exists(root / "small"));
    }
    REQUIRE(prepare(log, {.root = root, .content = Content::sparse}));
    CHECK(fs::file_size(root / "large") == uint64_t{3} << 30);
}

}  // namespace reprise::test
