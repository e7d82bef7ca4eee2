// SPDX-License-Identifier: MIT
// What a replay keeps of each file beside the log, in bytes of the heap.
#include <doctest/doctest.h>
#include <malloc.h>

#include <cstdio>

#include "replay/prepare/cache_regime.h"
#include "replay/prepare/layout.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

size_t heap_bytes() {
    const struct mallinfo2 now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
}

/// A job that opens, reads and closes each of `files` files once.
LogReader small_files(JobBuilder& job, size_t files) {
    const TaskId t = job.lone_task();
    for (size_t i = 0; i < files; ++i) {
        char name[64];
        std::snprintf(name, sizeof name, "/data/train/%04zu/image_%08zu.jpeg", i / 1000, i);
        const FileId file = job.file(name);
        const HandleId handle = job.open(t, file);
        job.read(t, handle, 0, 4096);
        job.close(t, handle);
    }
    return job.finish();
}

}  // namespace

TEST_CASE("plan: at most 200 bytes per file beside the log") {
    const TempDir dir;
    const size_t before = heap_bytes();
    const std::vector<char> probe(1 << 20);
    if (heap_bytes() < before + probe.size()) {
        REPRISE_SKIP("the heap is not glibc's");
    }
    JobBuilder few_job(dir / "few.oplog"), many_job(dir / "many.oplog");
    constexpr size_t kFew = 4096, kMany = 5 * kFew;  // sizes of vectors that double do not flatter
    const LogReader few = small_files(few_job, kFew), many = small_files(many_job, kMany);
    const auto bytes_of = [](const LogReader& log) {
        const size_t start = heap_bytes();
        const Plan plan = make_plan(log, OpFilter{}, PathMap{}, true);
        const CacheKeeper keeper(-1, plan_cache(plan, log), 1);
        return heap_bytes() - start;
    };
    const size_t small = bytes_of(few), large = bytes_of(many);
    CHECK(large > small);
    CHECK((large - small) / (kMany - kFew) <= 200);
    CHECK(small < (size_t{1} << 20) + 200 * kFew);
}

}  // namespace reprise::test
