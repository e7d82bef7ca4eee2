// SPDX-License-Identifier: MIT
// Several tasks at one storage: requests that are on their way, faults that wait for them, who is served first.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <memory>
#include <vector>

#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/virtual_steps.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kSize = int64_t{64} << 20;

/// A request takes a millisecond, one at a time; nothing else takes time.
StorageModel one_by_one() {
    StorageModel m;
    m.read = {{4096, kMs}};
    m.read_bytes_per_s = m.write_bytes_per_s = m.cached_bytes_per_s = 1e15;
    return m;
}

PageWalk touching(const std::vector<int64_t>& pages, MapAdvice advice = {}, bool writes = false) {
    PageWalk walk;
    walk.by = PageWalk::By::touch;
    walk.file = walk.handle = 1;
    walk.size = kSize;
    walk.writes = writes;
    for (const int64_t page : pages) {
        walk.ranges.push_back({page, page + 1, advice});
    }
    return walk;
}

}  // namespace

TEST_CASE("what is on its way is waited for, not asked for again") {
    const StorageModel m = one_by_one();
    VirtualStorage storage(m, false);
    PageWalk first = touching({100}), second = touching({101}),
             read = storage.reading(1, 2, 90 * kPageBytes, 4'096, kSize);
    CHECK(storage.go_on(first, 0) == kMs);
    CHECK(storage.go_on(second, kMs / 4) == kMs);
    CHECK(storage.go_on(read, kMs / 2) == kMs);
    CHECK(storage.reads == 1);
    CHECK(storage.time_ns == kMs + 3 * kMs / 4 + kMs / 2);
    CHECK(!second.done);
    CHECK(storage.go_on(second, kMs) == kMs);
    CHECK(second.done);
    CHECK(second.fetched);
    CHECK(walk_to_end(storage, touching({102}), 2 * kMs) == 2 * kMs);
    // A mark is met while its own page is still on the way: the window after it is asked for at once.
    CHECK(walk_to_end(storage, touching({108}), 2 * kMs) == 2 * kMs);  // the mark of 84 to 115: asks for 116 to 147
    CHECK(storage.reads == 2);
    PageWalk ahead = touching({116});
    CHECK(storage.go_on(ahead, 2 * kMs) == 3 * kMs);
    CHECK(storage.reads == 3);
}

TEST_CASE("a walk leaves the device to others between its requests") {
    const StorageModel m = one_by_one();
    VirtualStorage storage(m, false);
    constexpr MapAdvice kRandom{.random = true};
    PageWalk many = touching({1, 1'001, 2'001, 3'001}, kRandom), other = touching({5'001}, kRandom);
    CHECK(storage.go_on(many, 0) == kMs);
    CHECK(storage.go_on(other, kMs / 2) == 2 * kMs);  // not after all four
    CHECK(storage.go_on(many, kMs) == 3 * kMs);
    CHECK(storage.go_on(other, 2 * kMs) == 2 * kMs);
    CHECK(other.done);
    CHECK(walk_to_end(storage, many, 3 * kMs) == 5 * kMs);
    CHECK(storage.bytes_read == 5 * kPageBytes);
}

TEST_CASE("faults of writes map nothing around them, and what is mapped around counts as found") {
    const StorageModel m = one_by_one();
    VirtualStorage reads(m, false), writes(m, false);
    int64_t now = 0;
    for (int64_t i = 0; i < 150; ++i) {
        now = walk_to_end(reads, touching({16 + i * 64}), now);
        walk_to_end(writes, touching({16 + i * 64}, {}, true), now);
    }
    CHECK(reads.bytes_read == 150 * 32 * kPageBytes);  // Linux reads around for as long as that: seen with 2 000 faults
    CHECK(writes.bytes_read == (100 * 32 + 50) * kPageBytes);
}

TEST_CASE("a task that touches a lot does not hold up others in a prediction") {
    const TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const FileId file = job.file("/data/in");
    FileRow row = job.writer().tables().files[file];
    row.size = static_cast<uint64_t>(kSize);
    job.writer().update_file(file, row);
    const ProcessId process = job.process();
    const TaskId a = job.task(process), b = job.task(process);
    const HandleId h = job.handle(file);
    const auto map = [&](TaskId task, uint32_t id) {
        job.add(task, {.kind = OpKind::mmap,
                       .begin = 1'000,
                       .duration = 1'000,
                       .handle = h,
                       .fd = 3,
                       .size = kSize,
                       .flags = MAP_SHARED,
                       .mode = PROT_READ,
                       .map = id});
        job.add(
            task,
            {.kind = OpKind::madvise, .begin = 2'000, .duration = 1'000, .size = kSize, .arg = MADV_RANDOM, .map = id});
    };
    map(a, 1);
    map(b, 2);
    std::vector<int64_t> list;
    for (int i = 0; i < 100; ++i) {
        list.insert(list.end(), {kPageBytes * 9, kPageBytes});
    }
    job.add(
        a,
        {.kind = OpKind::touch, .begin = 3'000, .duration = 1'000, .size = kPageBytes * 1'000, .map = 1, .list = list});
    job.add(b, {.kind = OpKind::touch,
                .begin = 3'000,
                .duration = 1'000,
                .offset = kPageBytes * 5'000,
                .size = kPageBytes,
                .map = 2});
    const LogReader log = job.finish();
    PredictOptions options;
    options.storage = one_by_one();
    options.filter = OpFilter::all();
    options.output = dir / "run.oplog";
    const Prediction found = predict(log, options);
    CHECK(found.storage_reads == 101);
    CHECK(found.elapsed_ns / kMs == 101);
    int64_t took = 0;
    LogReader(dir / "run.oplog").for_each(b, [&](const Op& op, uint64_t) { took = op.duration; });
    CHECK(took > 0);
    CHECK(took < 3 * kMs);
}
