// SPDX-License-Identifier: MIT
// Ops whose access a what-if changes: the recorded results, got otherwise, in a real root.
#include <sys/mman.h>

#include <cerrno>
#include <functional>

#include "tests/replay/engine/run_fixture.h"

namespace reprise::test {
namespace {

using enum AccessCount;

constexpr int64_t kPage = 4096;

struct Fixture : RunInRoot {
    AccessCounts counts;
    uint64_t mismatches = 0;
    std::string says;

    void run_with(JobBuilder& job, const AccessChange& change) {
        const LogReader log = job.finish();
        ReplayOptions options = afap(root);
        options.output = run_log;
        options.access = change;
        const ReplayResult result = replay(log, options);
        CHECK_EQ(result.ended, "complete");
        counts = result.access_counts;
        mismatches = result.mismatches;
        says = result.access;
    }
    /// Maps the 20,000 bytes of /d/in and closes the descriptor, as most programs do.
    void map_in(JobBuilder& job, TaskId t, uint32_t map, int64_t flags = MAP_SHARED) {
        const HandleId in = job.open(t, job.file("/d/in"));
        job.add(t, {.kind = OpKind::mmap,
                    .handle = in,
                    .fd = job.fd(in),
                    .size = 20'000,
                    .flags = flags,
                    .mode = PROT_READ,
                    .map = map});
        job.close(t, in);
    }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "touches of a mapping are reads of what they touch, in pieces") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    map_in(job, t, 1);
    job.add(t, {.kind = OpKind::touch, .size = 2 * kPage, .map = 1});
    job.add(t, {.kind = OpKind::madvise, .size = 20'480, .arg = MADV_WILLNEED, .map = 1});
    job.add(t, {.kind = OpKind::touch, .offset = 2 * kPage, .size = 3 * kPage, .map = 1});  // up to the end of the file
    job.add(t, {.kind = OpKind::munmap, .size = 20'480, .map = 1});
    run_with(job, {.mmap_as_read = 2 * kPage});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[touched_bytes], 5 * kPage);
    CHECK_EQ(counts[map_reads], 3);
    CHECK_EQ(counts[map_read_bytes], 20'000);
    CHECK(says.find("3 reads of 19.5 KiB in place of 20.0 KiB of page faults") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "mapped for writing to the file, it stays mapped") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"), O_RDWR);
    job.add(t, {.kind = OpKind::mmap,
                .handle = in,
                .fd = job.fd(in),
                .size = 20'000,
                .flags = MAP_SHARED,
                .mode = PROT_READ | PROT_WRITE,
                .map = 1});
    job.add(t, {.kind = OpKind::touch, .size = kPage, .flags = 1, .map = 1});
    map_in(job, t, 2);
    job.add(t, {.kind = OpKind::touch, .size = kPage, .map = 2});
    run_with(job, {.mmap_as_read = 1 << 20});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[map_reads], 1);
    CHECK_EQ(counts[map_read_bytes], kPage);
}

TEST_CASE_FIXTURE(Fixture, "a mapping whose file came apart differs, and populated ones are read at once") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    map_in(job, t, 1, MAP_SHARED | MAP_POPULATE);
    job.add(t, {.kind = OpKind::touch, .result = -EFAULT, .size = kPage, .map = 1});  // failed where it was recorded
    run_with(job, {.mmap_as_read = 1 << 20});
    CHECK_EQ(mismatches, 1);
    CHECK_EQ(counts[map_reads], 2);
}

TEST_CASE_FIXTURE(Fixture, "touches far beyond the end of a file end there") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    map_in(job, t, 1);
    job.add(t, {.kind = OpKind::touch, .size = int64_t{1} << 60, .map = 1});
    job.add(t, {.kind = OpKind::touch, .offset = int64_t{1} << 60, .size = int64_t{1} << 60, .map = 1});
    run_with(job, {.mmap_as_read = kPage});
    CHECK_EQ(counts[map_read_bytes], 20'000);
}

TEST_CASE_FIXTURE(Fixture, "direct reads take whole blocks, and return what was asked for") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));
    const std::vector<int64_t> sizes{100, 200};
    job.pread(t, in, 5'000, 1'000);
    job.read(t, in, 0, 700);
    job.add(t, {.kind = OpKind::readv,
                .result = 300,
                .handle = in,
                .fd = job.fd(in),
                .offset = 700,
                .size = 300,
                .list = sizes});
    job.add(t, {.kind = OpKind::lseek, .result = 1'000, .handle = in, .fd = job.fd(in), .arg = SEEK_CUR});
    job.add(t, {.kind = OpKind::preadv,
                .result = 300,
                .handle = in,
                .fd = job.fd(in),
                .offset = 19'000,
                .size = 300,
                .list = sizes});
    job.add(t, {.kind = OpKind::pread, .result = 900, .handle = in, .fd = job.fd(in), .offset = 19'100, .size = 4'000});
    job.add(t, {.kind = OpKind::pread, .result = 0, .handle = in, .fd = job.fd(in), .offset = 20'000, .size = 4'000});
    job.close(t, in);
    run_with(job, {.direct = true});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[direct_reads] + counts[buffered_reads], 6);
    if (counts[direct_refused] == 0) {
        CHECK_EQ(counts[direct_asked], 1'000 + 700 + 300 + 300 + 900);
        CHECK(counts[direct_fetched] > counts[direct_asked]);
        CHECK(says.find("6 reads with O_DIRECT") != std::string::npos);
    }
}

TEST_CASE_FIXTURE(Fixture, "what is written through the same open file is read as recorded") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in")),
                   out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT);
    job.pread(t, in, 0, 1'000);
    job.pwrite(t, out, 0, 5'000);
    job.pread(t, out, 1'000, 1'000);
    run_with(job, {.direct = true});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[direct_reads] + counts[buffered_reads], 1);
    CHECK(says.find("1 open file is written or copied, too, and read as recorded") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "writes that wait for the device") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in")),
                   out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT);
    const std::vector<int64_t> sizes{100, 200};
    job.write(t, out, 0, 1'000);
    job.pwrite(t, out, 5'000, 2'000);
    job.add(t, {.kind = OpKind::writev,
                .result = 300,
                .handle = out,
                .fd = job.fd(out),
                .offset = 1'000,
                .size = 300,
                .list = sizes});
    job.add(t, {.kind = OpKind::sendfile,
                .result = 400,
                .handle = in,
                .fd = job.fd(in),
                .handle2 = out,
                .fd2 = job.fd(out),
                .offset = 0,
                .offset2 = 1'300,
                .size = 400});
    run_with(job, {.sync_writes = true});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[sync_writes], 4);
    CHECK_EQ(counts[sync_bytes], 3'700);
    CHECK_EQ(std::filesystem::file_size(root / "d/out"), 7'000);
}

TEST_CASE_FIXTURE(Fixture, "reads are touches of a mapping, and end where the file ends") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));
    job.read(t, in, 0, 700);
    job.add(t, {.kind = OpKind::lseek, .result = 700, .handle = in, .fd = job.fd(in), .arg = SEEK_CUR});
    job.pread(t, in, 5'000, 1'000);
    job.add(t, {.kind = OpKind::pread, .result = 900, .handle = in, .fd = job.fd(in), .offset = 19'100, .size = 4'000});
    job.add(t, {.kind = OpKind::pread, .result = 0, .handle = in, .fd = job.fd(in), .offset = 50'000, .size = 4'000});
    job.close(t, in);
    run_with(job, {.read_as_mmap = true});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[mapped_reads], 4);
    CHECK_EQ(counts[mapped_bytes], 700 + 1'000 + 900);
}

TEST_CASE_FIXTURE(Fixture, "files are asked for where they are opened") {
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId in = job.open(t, job.file("/d/in"));
    job.pread(t, in, 0, 100);
    const HandleId out = job.open(t, job.file("/d/out", Origin::created), O_RDWR | O_CREAT);
    job.pwrite(t, out, 0, 5'000);
    run_with(job, {.prefetch = true});
    CHECK_EQ(mismatches, 0);
    CHECK_EQ(counts[prefetched_files], 1);
    CHECK_EQ(counts[prefetched_bytes], 20'000);
}

TEST_CASE_FIXTURE(Fixture, "an option that changes nothing is refused") {
    const auto says_of = [&](const AccessChange& change) {
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        static_cast<void>(job.open(t, job.file("/d/in")));
        try {
            run_with(job, change);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(says_of({.direct = true}).find("reads no data through the page cache") != std::string::npos);
    CHECK(says_of({.sync_writes = true}).find("writes no data") != std::string::npos);
    CHECK(says_of({.read_as_mmap = true}).find("--read-as-mmap") != std::string::npos);
    CHECK(says_of({.prefetch = true}).find("reads no data") != std::string::npos);
    CHECK(says_of({.mmap_as_read = kPage}).find("touches no mapped data file") != std::string::npos);
}

}  // namespace reprise::test
