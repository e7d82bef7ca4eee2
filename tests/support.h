// SPDX-License-Identifier: MIT
// What every test needs: a folder that goes away, the recorded traces, and
// skipping aloud.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "formats/support/sanitized.h"

namespace reprise::test {

/// Of a test's repetitions, as many as it needs in a build with a sanitizer, where each takes ten times as long: that
/// looks for errors of memory and threads, which the first few show.
#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr uint64_t rounds(uint64_t plain, uint64_t sanitized) { return kSanitized ? sanitized : plain; }

/// A fresh folder under $TMPDIR, removed with everything in it.
class TempDir {
public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

/// The checkout.
std::filesystem::path source_dir();

/// A file or folder of the recorded traces ("strace/x.strace"), looked for in
/// $REPRISE_TRACES and then in ../shared/traces beside the checkout.
std::optional<std::filesystem::path> find_trace(std::string_view name);

/// Use the macros below.
void report_skip(std::string_view reason);

void write_file(const std::filesystem::path& path, std::string_view contents);
std::string read_file(const std::filesystem::path& path);

}  // namespace reprise::test

/// Ends the test case, which then counts as skipped. Only in the test case
/// itself, not in a function it calls.
#define REPRISE_SKIP(reason)                  \
    do {                                      \
        ::reprise::test::report_skip(reason); \
        return;                               \
    } while (false)

/// Declares `variable` as the path of a trace, or skips the test case.
#define REPRISE_TRACE(variable, name)                                             \
    const auto variable##_found = ::reprise::test::find_trace(name);              \
    if (!variable##_found) {                                                      \
        REPRISE_SKIP(std::string("no trace ") + (name) + "; set REPRISE_TRACES"); \
    }                                                                             \
    [[maybe_unused]] const std::filesystem::path& variable = *variable##_found
