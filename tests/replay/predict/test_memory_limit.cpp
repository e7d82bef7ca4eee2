// SPDX-License-Identifier: MIT
// Predictions with less memory: what the job leaves to the page cache, what epochs read, what is not to be trusted.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "formats/oplog/held_memory.h"
#include "replay/predict/planned_job.h"
#include "replay/predict/predict.h"
#include "tests/replay/job_builder.h"
#include "tests/replay/predict/virtual_calls_fixture.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

StorageModel one_ms_a_read() {
    StorageModel m;
    m.read = {{4096, kMs}};
    m.read_bytes_per_s = m.write_bytes_per_s = m.cached_bytes_per_s = 1e15;
    return m;
}

/// Files of a MiB, read whole, in epochs.
struct Epochs {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    TaskId t = job.lone_task();
    std::vector<LogEpoch> epochs;
    std::unique_ptr<LogReader> log;
    uint64_t ops = 0;
    int64_t end = 0;  // of the last compute

    FileId sized(const std::string& path) {
        const FileId file = job.file(path);
        FileRow row = job.writer().tables().files[file];
        row.size = kMiB;
        job.writer().update_file(file, row);
        return file;
    }
    void read(const std::string& path) {
        const HandleId h = job.handle(sized(path));
        ops = job.add(t, {.kind = OpKind::pread,
                          .begin = std::max(job.now(), end) + 10'000,
                          .result = static_cast<int64_t>(kMiB),
                          .handle = h,
                          .fd = 3,
                          .size = static_cast<int64_t>(kMiB)});
    }
    void map(HandleId handle, uint32_t number) {
        job.add(t, {.kind = OpKind::mmap,
                    .handle = handle,
                    .fd = 5,
                    .size = static_cast<int64_t>(kMiB),
                    .flags = MAP_SHARED,
                    .mode = PROT_READ,
                    .map = number});
    }
    void compute(int64_t ns) {
        job.add(t, {.kind = OpKind::compute, .begin = std::max(job.now(), end) + 10'000, .duration = ns, .flags = 3});
        end = job.now() + ns;
    }
    void epoch(const std::vector<int>& files) {
        bool first = true;
        for (const int file : files) {
            read("/data/" + std::to_string(file));
            if (first) {
                epochs.push_back({files.size(), {{t, ops}}});
            }
            first = false;
        }
    }
    Prediction run(std::optional<PredictedLimit> memory) {
        if (!log) {
            log = std::make_unique<LogReader>(job.finish());
        }
        PredictOptions how;
        how.storage = one_ms_a_read();
        how.filter = OpFilter::all();
        how.memory = memory;
        how.epochs = epochs;
        return predict(*log, how);
    }
};

std::vector<uint64_t> read_in(const Prediction& p) {
    std::vector<uint64_t> mib;
    for (const PredictedEpoch& epoch : p.epochs) {
        mib.push_back(epoch.storage_bytes / kMiB);
    }
    return mib;
}

using Read = std::vector<uint64_t>;

}  // namespace

TEST_CASE("a limit makes later epochs read again, in order nothing stays") {
    Epochs job;
    for (int i = 0; i < 3; ++i) {
        job.epoch({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    }
    CHECK(read_in(job.run({})) == Read{12, 0, 0});
    for (const PageCachePolicy policy : {PageCachePolicy::lru, PageCachePolicy::two_lists}) {
        const Prediction all = job.run(PredictedLimit{13 * kMiB, true, policy});
        CHECK(read_in(all) == Read{12, 0, 0});
        const Prediction less = job.run(PredictedLimit{10 * kMiB, true, policy});
        CHECK(read_in(less) == Read{12, 12, 12});
        CHECK(less.limit_bytes == 10 * kMiB);
        CHECK(less.held_unknown);
        CHECK(fair_reason(less, {}) ==
              "the log does not say what memory the job held: here all of the limit is page cache");
        CHECK(less.epochs[1].asked_bytes == 12 * kMiB);
        CHECK(less.epochs[1].accesses == 12);
        CHECK(less.epochs[1].begin_ns == less.epochs[0].begin_ns + less.epochs[0].elapsed_ns);
        CHECK(less.epochs[2].begin_ns + less.epochs[2].elapsed_ns == less.elapsed_ns);
        CHECK(less.elapsed_ns > all.elapsed_ns);
    }
}

TEST_CASE("with room for everything a prediction is the same as without a limit") {
    Epochs job;
    const FileId made = job.job.file("/data/made", Origin::created);
    for (int i = 0; i < 3; ++i) {
        job.epoch({3, 1, 2, 0, 7, 5, 4, 6});
        const HandleId w = job.job.handle(made, O_RDWR), m = job.job.handle(job.sized("/data/1"));
        job.job.add(job.t, {.kind = OpKind::pwrite, .result = 100'000, .handle = w, .fd = 4, .size = 100'000});
        const auto map = static_cast<uint32_t>(i + 1);
        job.map(m, map);
        job.job.add(job.t, {.kind = OpKind::touch, .offset = 8'192, .size = 4'096, .map = map});
        job.job.add(job.t, {.kind = OpKind::munmap, .size = static_cast<int64_t>(kMiB), .map = map});
    }
    const Prediction free = job.run({});
    for (const PageCachePolicy policy : {PageCachePolicy::lru, PageCachePolicy::two_lists}) {
        const Prediction limited = job.run(PredictedLimit{uint64_t{1} << 50, true, policy});
        CHECK(limited.elapsed_ns == free.elapsed_ns);
        CHECK(limited.storage_reads == free.storage_reads);
        CHECK(limited.storage_bytes == free.storage_bytes);
        CHECK(limited.storage_ns == free.storage_ns);
        CHECK(limited.touched_pages == free.touched_pages);
        CHECK(limited.left_mapped_bytes == 0);
        CHECK(read_in(limited) == read_in(free));
    }
}

TEST_CASE("what the job holds is not there for the page cache, at its place in the job") {
    Epochs job;
    for (int i = 0; i < 3; ++i) {
        job.epoch({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
        job.compute(1'000 * kMs);
    }
    // From the middle of the second epoch's compute on.
    job.job.writer().keep(encode_held_memory({{1, {{0, 0, 0}, {1'500 * kMs, 20 * kMiB, 0}}}}));
    CHECK(read_in(job.run(PredictedLimit{30 * kMiB, false})) == Read{12, 0, 0});
    const Prediction less = job.run(PredictedLimit{30 * kMiB, true});
    CHECK(read_in(less) == Read{12, 0, 12});
    CHECK(!less.held_unknown);
    CHECK(fair_reason(less, {}).empty());
}

TEST_CASE("room over time") {
    Epochs job;
    for (int i = 0; i < 4; ++i) {
        job.compute(100 * kMs);
    }
    job.job.writer().keep(encode_held_memory({{1, {{0, 0, 0}, {200 * kMs, 60 * kMiB, 10 * kMiB}}}}));
    const LogReader log = job.job.finish();
    const PlannedJob planned(log, OpFilter::all(), {});
    REQUIRE(planned.held());
    CHECK(most_held(*planned.held()) == 70 * kMiB);
    const auto room = [&](uint64_t limit, uint64_t done, int64_t now) {
        RoomOverTime over(planned.memory(), limit);
        CHECK(over.changed(done, now));
        return static_cast<uint64_t>(over.bytes());
    };
    CHECK(room(100 * kMiB, 0, 0) == 100 * kMiB);
    CHECK(room(100 * kMiB, 1, 5) == 100 * kMiB);
    CHECK(room(100 * kMiB, 3, 5) == 30 * kMiB);
    CHECK(room(72 * kMiB, 3, 5) == 8 * kMiB);  // something is left to it
    CHECK(room(4 * kMiB, 3, 5) == 4 * kMiB);
    RoomOverTime over(planned.memory(), 100 * kMiB);
    CHECK(over.changed(0, 0));
    CHECK(!over.changed(1, 10 * kMs));
    CHECK(over.changed(3, 20 * kMs));
    CHECK(!over.changed(4, 30 * kMs));
}

TEST_CASE("pages that leave while they are mapped: what is touched again is not known") {
    Epochs job;
    const HandleId h = job.job.handle(job.sized("/data/mapped"));
    job.map(h, 1);
    for (int64_t page = 0; page < 256; page += 16) {
        job.job.add(job.t, {.kind = OpKind::touch, .offset = page * 4'096, .size = 4'096, .map = 1});
    }
    for (int i = 0; i < 30; ++i) {
        job.read("/data/" + std::to_string(i % 3));
    }
    const Prediction p = job.run(PredictedLimit{kMiB, true});
    CHECK(p.left_mapped_bytes == kMiB);
    CHECK(job.run({}).left_mapped_bytes == 0);
}

TEST_CASE_FIXTURE(Calls, "a file that is replaced, removed or truncated leaves its room to others") {
    policy = PageCachePolicy::lru;
    room = (int64_t{3} << 20) + (int64_t{64} << 10);
    const auto mib = static_cast<int64_t>(kMiB);
    storage.read_ahead_bytes = storage.request_bytes = mib;
    sized(file, kMiB);
    sized(other, kMiB);
    // The second generation of a name, and what is renamed to it.
    const FileId tmp = job.file("/data/tmp", Origin::created);
    FileRow row = job.writer().tables().files[other];
    ++row.generation;
    row.origin = Origin::created;
    const FileId replaced = job.writer().add_file(row);
    const HandleId w = job.handle(tmp, O_RDWR);
    const int64_t ns = kRead + cached(mib);
    add({.kind = OpKind::pread, .result = mib, .handle = in, .fd = 3, .size = mib}, ns);
    add({.kind = OpKind::pread, .result = mib, .handle = out, .fd = 3, .size = mib}, ns);
    add({.kind = OpKind::pwrite, .result = mib, .handle = w, .fd = 3, .size = mib}, cached(mib));
    add({.kind = OpKind::rename, .file = tmp, .file2 = replaced}, kMake);
    // There is room for one more, that of `other` before.
    add({.kind = OpKind::pwrite, .result = mib, .handle = w, .fd = 3, .offset = mib, .size = mib}, cached(mib));
    add({.kind = OpKind::pread, .result = mib, .handle = in, .fd = 3, .size = mib}, cached(mib));
    add({.kind = OpKind::unlink, .file = replaced}, kRemove);
    CHECK(check().storage().reads == 2);
}
