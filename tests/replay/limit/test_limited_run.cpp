// SPDX-License-Identifier: MIT
// Runs under limits: how far they are, what is refused, and what a replay says of its memory.
#include "replay/limit/limited_run.h"

#include "formats/support/error.h"
#include "formats/support/sanitized.h"
#include "replay/prepare/prepare.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

#if defined(REPRISE_ASAN) || defined(REPRISE_TSAN)
constexpr uint64_t kOwn = 12 * kMiB;  // what a process itself holds, more or less
#else
constexpr uint64_t kOwn = 3 * kMiB;
#endif

void compute(JobBuilder& job, TaskId task, int64_t begin, int64_t duration) {
    job.add(task, {.kind = OpKind::compute, .begin = begin, .duration = duration, .flags = 3});
}

}  // namespace

TEST_CASE("limits that nothing could run in are refused, with what is needed") {
    const std::vector<HeldTotal> job = {{0, 300 * kMiB}};
    const auto refused = [&](const RunLimits& limits, const char* why) {
        CHECK_THROWS_WITH_AS(LimitedRun(limits, 800 * kMiB, job, 4), doctest::Contains(why), Error);
    };
    refused({.memory = kMiB}, "a memory limit of 1.00 MiB is less than the replay itself needs, 10.0 MiB");
    refused({.memory = 200 * kMiB}, "less than the recorded job itself held at its peak, 300 MiB");
    refused({.ratio = 4.0}, "a memory limit of 200 MiB (800 MiB of data, ratio 4) is less than the recorded job");
    refused({.ratio = 400.0, .ballast = false}, "less than the replay itself needs");
}

TEST_CASE("a replay in a memory limit: proof, and the job's own memory stood in for") {
    try {
        const ControlGroup group(64 * kMiB);
    } catch (const Error&) {
        REPRISE_SKIP("no control group can be made here: needs root and the memory controller");
    }
    constexpr uint64_t kFiles = 64, kFile = kMiB;
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId task = job.task(process);
    for (int epoch = 0; epoch < 2; ++epoch) {
        for (uint64_t i = 0; i < kFiles; ++i) {
            const FileId file = job.file("/data/" + std::to_string(i));
            const HandleId handle = job.open(task, file);
            job.read(task, handle, 0, kFile);
            job.close(task, handle);
        }
        compute(job, task, job.now() + 10'000, 300 * kMs);
        job.skip(300 * kMs);
    }
    job.writer().keep(encode_held_memory({{process, {{0, 20 * kMiB, 0}}}}));
    const LogReader log = job.finish();
    std::filesystem::create_directories(dir / "root/data");
    for (uint64_t i = 0; i < kFiles; ++i) {
        write_file(dir / ("root/data/" + std::to_string(i)), std::string(kFile, 'x'));
    }
    ReplayOptions options;
    options.root = dir / "root";
    options.pace = Pace::causal;
    options.cache = CacheRequest{};
    options.limits.ratio = 1.6;  // 40 MiB
    const ReplayResult result = replay(log, options);
    CHECK(result.ended == "complete");
    CHECK(result.mismatches == 0);
    REQUIRE(result.memory);
    const LimitedMemory& memory = *result.memory;
    CHECK(memory.data == kFiles * kFile);
    CHECK(memory.limit == 40 * kMiB);
    CHECK(memory.group.peak >= 38 * kMiB);
    CHECK(memory.group.peak <= 40 * kMiB);
    CHECK(memory.group.reached > 0);
    CHECK(memory.group.killed == 0);
    CHECK(memory.job_peak == 20 * kMiB);
    CHECK(memory.stood_in);
    CHECK(memory.held_peak >= 19 * kMiB);
    CHECK(memory.held_peak <= 20 * kMiB + kOwn);
    REQUIRE(result.cache);
    CHECK(result.cache->choice.regime == CacheRegime::cold);
    CHECK(result.cache->before == 0);
    CHECK(result.cache->after.value_or(kFiles * kFile) < 24 * kMiB);
}

}  // namespace reprise::test
