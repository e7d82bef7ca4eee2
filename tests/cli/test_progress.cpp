// SPDX-License-Identifier: MIT
// The progress line: when it shows, what it says, that it goes away.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): posix_openpt
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"

namespace reprise::cli {

namespace {

/// A pseudo-terminal: what is written to `end` is read back by taken().
struct Terminal {
    int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
    int end = -1;

    Terminal() {
        REQUIRE(controller >= 0);
        REQUIRE(::grantpt(controller) == 0);
        REQUIRE(::unlockpt(controller) == 0);
        end = ::open(::ptsname(controller), O_RDWR | O_NOCTTY);
        REQUIRE(end >= 0);
        ::fcntl(controller, F_SETFL, O_NONBLOCK);
    }
    ~Terminal() {
        ::close(end);
        ::close(controller);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    [[nodiscard]] std::string taken() const {
        std::string out;
        std::array<char, 4096> buffer{};
        ssize_t got = 0;
        while ((got = ::read(controller, buffer.data(), buffer.size())) > 0) {
            out.append(buffer.data(), static_cast<std::size_t>(got));
        }
        return out;
    }
};

constexpr std::chrono::milliseconds kNone{0};

}  // namespace

TEST_CASE("the line says share, rate and time left") {
    CHECK(progress_line("replay", 500000, 1000000, 2, ProgressUnit::count, "lag 3 us", 200) ==
          "replay  500,000 of 1,000,000  50.0 %  250 k /s  2.00 s left  lag 3 us");
    CHECK(progress_line("prepare", 1 << 20, 0, 1, ProgressUnit::bytes, "", 200) == "prepare  1.00 MiB  1.00 MiB/s");
    CHECK(progress_line("x", 0, 10, 0, ProgressUnit::count, "", 200) == "x  0 of 10  0.0 %");
    CHECK(progress_line("caf\xc3\xa9", 1, 2, 0, ProgressUnit::count, "a\nb", 5) == "caf\xc3\xa9 ");
    CHECK(progress_line("x", 1, ~0ULL, 1e9, ProgressUnit::count, "", 200).find("left") == std::string::npos);
}

TEST_CASE("it draws on a terminal and clears its line") {
    const Terminal terminal;
    Progress progress("work", ProgressUnit::count, {terminal.end, kNone, kNone});
    CHECK(progress.active());
    progress.update(1, 2, "so far");
    const std::string drawn = terminal.taken();
    CHECK(drawn.starts_with("\rwork  1 of 2  50.0 %"));
    CHECK(drawn.find("so far") != std::string::npos);
    progress.finish();
    CHECK(terminal.taken() == "\r\x1b[K");
    progress.update(2, 2);
    progress.finish();
    CHECK(terminal.taken().empty());
}

TEST_CASE("it is silent before its delay, off a terminal, and when quiet") {
    const Terminal terminal;
    {
        Progress progress("work", ProgressUnit::count, {terminal.end, std::chrono::minutes(10), kNone});
        progress.update(1, 2);
    }
    CHECK(terminal.taken().empty());
    std::array<int, 2> pipe{};
    REQUIRE(::pipe2(pipe.data(), O_NONBLOCK) == 0);
    {
        Progress progress("work", ProgressUnit::count, {pipe[1], kNone, kNone});
        CHECK_FALSE(progress.active());
        progress.update(1, 2);
    }
    char byte = 0;
    CHECK(::read(pipe[0], &byte, 1) == -1);
    ::close(pipe[0]);
    ::close(pipe[1]);
    set_verbosity(-1);
    CHECK_FALSE(Progress("work", ProgressUnit::count, {terminal.end, kNone, kNone}).active());
    set_verbosity(0);
}

TEST_CASE("many threads may report at once") {
    const Terminal terminal;
    Progress progress("work", ProgressUnit::count, {terminal.end, kNone, std::chrono::seconds(1)});
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (std::uint64_t done = 0; done < 1000; ++done) {
                progress.update(done, 1000);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    progress.finish();
    CHECK(terminal.taken().ends_with("\r\x1b[K"));
}

}  // namespace reprise::cli
