// SPDX-License-Identifier: MIT
// The test binaries' main and the helpers of support.h.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/support.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <atomic>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace reprise::test {

namespace {
std::atomic<unsigned> skipped{0};
}  // namespace

TempDir::TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "reprise-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("cannot make " + name);
    }
    path_ = name;
}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path source_dir() { return REPRISE_SOURCE_DIR; }

std::optional<std::filesystem::path> find_trace(std::string_view name) {
    const char* const given = std::getenv("REPRISE_TRACES");
    const std::filesystem::path folder =
        given != nullptr ? std::filesystem::path(given) : source_dir() / "../shared/traces";
    auto path = folder / name;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) {
        return path;
    }
    return std::nullopt;
}

void report_skip(std::string_view reason) {
    ++skipped;
    std::cout << "SKIPPED: " << reason << std::endl;
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    out.close();
    if (!out) {
        throw std::runtime_error("cannot write " + path.string());
    }
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    if (!in) {
        throw std::runtime_error("cannot read " + path.string());
    }
    return out.str();
}

}  // namespace reprise::test

namespace {

/// Counts the test cases that ran, to tell "all skipped" from "some skipped".
struct CountRuns : doctest::IReporter {
    static inline unsigned ran = 0;
    explicit CountRuns(const doctest::ContextOptions&) {}
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats& stats) override { ran = stats.numTestCasesPassingFilters; }
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("count_runs", 1, CountRuns);

}  // namespace

/// 77, the exit code ctest takes for "skipped", where nothing failed and every
/// test case that was to run skipped itself.
int main(int argc, char** argv) {
    doctest::Context context(argc, argv);
    const int result = context.run();
    const unsigned skips = reprise::test::skipped;
    if (result == 0 && skips > 0 && skips >= CountRuns::ran) {
        return 77;
    }
    return result;
}
