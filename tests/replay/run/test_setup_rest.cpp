// SPDX-License-Identifier: MIT
// The pause after what sets a run up has read from a device.
#include "replay/run/setup_rest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "calibrate/mounted.h"
#include "formats/support/unique_fd.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

constexpr size_t kBlock = 4096;

/// Whether this process is known to have read from a device.
bool read_from_device(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    const std::unique_ptr<void, decltype(&free)> buffer(std::aligned_alloc(kBlock, kBlock), &free);
    const auto before = read_own_counter();
    const bool done = fd.valid() && ::pread(fd.get(), buffer.get(), kBlock, 0) == static_cast<ssize_t>(kBlock);
    const auto after = read_own_counter();
    return done && before && after && after->read_bytes > before->read_bytes;
}

}  // namespace

TEST_CASE("a run rests where setting up has read from a device, and only there") {
    const TempDir dir;
    write_file(dir / "data", std::string(kBlock, 'x'));
    {
        const UniqueFd fd(::open((dir / "data").c_str(), O_RDONLY | O_CLOEXEC));
        ::fsync(fd.get());
    }
    { SetupRest earlier(true); }  // what this process has read until here
    {
        SetupRest none(true);
        CHECK(none.over(1'000));
    }
    if (!read_from_device(dir / "data")) {
        REPRISE_SKIP("no direct reads in the directory for temporary files, or the kernel does not count them");
    }
    {
        SetupRest not_wanted(false);
        CHECK(not_wanted.over(1'000));
    }
    REQUIRE(read_from_device(dir / "data"));
    {
        SetupRest rest(true);
        CHECK(!rest.over(1'000));
        CHECK(!rest.over(1'000 + SetupRest::kRest - 1));
        CHECK(rest.over(1'000 + SetupRest::kRest));
    }
    SetupRest next(true);
    CHECK(next.over(1'000));
}

}  // namespace reprise::test
