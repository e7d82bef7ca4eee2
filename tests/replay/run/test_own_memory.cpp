// SPDX-License-Identifier: MIT
// Data of program and libraries in areas of its own: the same bytes, still in use, no longer the files' mappings.
#include "formats/support/sanitized.h"
#include "replay/run/own_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support.h"

namespace reprise::test {
namespace {

int counter = 1;
const char* const relocated_text = "relocated";

int writable_areas_of_files() {
    std::ifstream in("/proc/self/maps");
    int found = 0;
    for (std::string line; std::getline(in, line);) {
        found += line.find(" rw-p ") != std::string::npos && line.find('/') != std::string::npos ? 1 : 0;
    }
    return found;
}

/// In a forked process: 0, or which expectation failed.
int check_own_memory() {
    if (writable_areas_of_files() == 0) {
        return 1;  // nothing to show
    }
    counter = 7;
    own_memory();
    if (writable_areas_of_files() != 0) {
        return 2;
    }
    if (counter != 7 || std::string(relocated_text) != "relocated") {
        return 3;
    }
    ++counter;
    const std::string grown(100'000, 'x');  // the allocator still knows its memory
    const pid_t child = fork();
    if (child == 0) {
        own_memory();
        ++counter;
        _exit(counter == 9 && grown.back() == 'x' ? 0 : 4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return counter == 8 && status == 0 ? 0 : 5;
}

}  // namespace

TEST_CASE("memory that was freed between what is kept is given back before processes are forked") {
#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
    REPRISE_SKIP("sanitizers have their own allocator");
#endif
    const auto own_kib = [] {
        std::ifstream in("/proc/self/status");
        for (std::string word; in >> word;) {
            if (word == "RssAnon:") {
                int64_t kib = 0;
                in >> kib;
                return kib;
            }
        }
        return int64_t{0};
    };
    constexpr size_t kBlocks = 20'000, kBytes = 4'000;
    std::vector<std::unique_ptr<std::string>> kept, freed;
    for (size_t i = 0; i < kBlocks; ++i) {
        (i % 16 == 0 ? kept : freed).push_back(std::make_unique<std::string>(kBytes, 'x'));
    }
    freed.clear();
    const int64_t before = own_kib();
    give_back_memory();
    CHECK(before > static_cast<int64_t>(kBlocks * kBytes / 1024 * 3 / 4));
    CHECK(own_kib() < before / 2);
    CHECK(kept.back()->back() == 'x');
}

TEST_CASE("a forked process gets its data to itself") {
#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
    REPRISE_SKIP("sanitizers watch the memory that would be exchanged");
#endif
    note_program_data();
    const pid_t child = fork();
    if (child == 0) {
        _exit(check_own_memory());
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(counter == 1);
}

}  // namespace reprise::test
