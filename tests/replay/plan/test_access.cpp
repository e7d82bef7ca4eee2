// SPDX-License-Identifier: MIT
// Which touches of a mapping belong together, and what is read for them.
#include "replay/plan/access.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <utility>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/touched.h"
#include "replay/plan/fault_reach.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kPage = 4 * kKiB;
using Reads = std::vector<std::pair<int64_t, int64_t>>;

/// What is read for touches of single pages at these offsets, each an op.
struct Fixture : TempDir {
    Reads reads(const std::vector<int64_t>& at, int64_t piece, int64_t begin = 0) const {
        JobBuilder job(*this / "job.oplog");
        const TaskId t = job.lone_task();
        const HandleId in = job.open(t, job.file("/in"));
        job.add(t, {.kind = OpKind::mmap,
                    .handle = in,
                    .fd = 3,
                    .offset = begin,
                    .size = 64 * kMiB,
                    .flags = MAP_SHARED,
                    .mode = PROT_READ,
                    .map = 1});
        for (const int64_t offset : at) {
            job.add(t, {.kind = OpKind::touch, .offset = offset, .size = kPage, .map = 1});
        }
        const LogReader log = job.finish();
        const Plan plan = make_plan(log, {}, {});
        const AccessPlan access = plan_access(plan, {.mmap_as_read = piece});
        REQUIRE(access.runs_of(t, 1) != nullptr);
        RunCursor cursor;
        Reads out;
        for (const int64_t offset : at) {
            cursor.bring(*access.runs_of(t, 1), offset, kPage, piece, [&](int64_t from, int64_t bytes) {
                out.emplace_back(from, bytes);
                return true;
            });
        }
        return out;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "faults that follow on each other are read without gaps, far ones by themselves") {
    // 64 KiB mapped by each.
    CHECK_EQ(reads({0, 64 * kKiB, 128 * kKiB, 192 * kKiB}, 128 * kKiB),
             Reads{{0, 128 * kKiB}, {128 * kKiB, 128 * kKiB}});
    // Larger pieces of the page cache, and smaller ones at the end.
    CHECK_EQ(reads({256 * kKiB, 512 * kKiB, kMiB, 2 * kMiB, 4 * kMiB, 4 * kMiB + 64 * kKiB}, 8 * kMiB),
             Reads{{256 * kKiB, 3968 * kKiB}});
    // Pages here and there.
    CHECK_EQ(reads({9 * kMiB + kPage, kMiB + kPage, 5 * kMiB + kPage}, kMiB),
             Reads{{9 * kMiB + kPage, kPage}, {kMiB + kPage, kPage}, {5 * kMiB + kPage, kPage}});
    // Of a mapping that begins somewhere in its file, pieces lie at multiples in the file.
    CHECK_EQ(reads({252 * kKiB, 508 * kKiB}, 8 * kMiB, kPage), Reads{{252 * kKiB, 512 * kKiB}});
    CHECK_EQ(reads({256 * kKiB, 512 * kKiB}, 8 * kMiB, kPage), Reads{{256 * kKiB, kPage}, {512 * kKiB, kPage}});
    // Backwards, and the same page again.
    CHECK_EQ(reads({128 * kKiB, 64 * kKiB, 64 * kKiB}, kMiB), Reads{{128 * kKiB, kPage}, {64 * kKiB, kPage}});
}

TEST_CASE("what came with a fault, as far as the recording fetched it") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId cold = job.file("/cold"), warm = job.file("/warm");
    FetchedPages fetched;
    fetched[cold].add(0, 2 * kMiB);
    fetched[cold].add(3 * kMiB, 4 * kMiB);
    job.writer().keep(encode_fetched(fetched));
    job.add(
        t,
        {.kind = OpKind::mmap, .handle = job.open(t, cold), .fd = 3, .size = 8 * kMiB, .flags = MAP_SHARED, .map = 1});
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, {}, {});
    CHECK(came_with_fault(plan, cold, kPage, 2 * kMiB, false));
    CHECK_FALSE(came_with_fault(plan, cold, 2 * kMiB + kPage, 4 * kMiB, true));  // a part was not fetched
    CHECK_FALSE(came_with_fault(plan, cold, kPage, 2 * kMiB + kPage, true));
    CHECK_FALSE(came_with_fault(plan, warm, kPage, 2 * kMiB, false));
    CHECK(came_with_fault(plan, warm, kPage, 2 * kMiB, true));
    CHECK_FALSE(came_with_fault(plan, cold, -kPage, 2 * kMiB, true));
}

TEST_CASE("what can have come with a fault") {
    CHECK(comes_with_fault(kPage, 2 * kMiB));
    CHECK(comes_with_fault(128 * kKiB + kPage, 256 * kKiB));
    CHECK_FALSE(comes_with_fault(kPage, 64 * kKiB));               // too little to be one piece
    CHECK_FALSE(comes_with_fault(kPage, 4 * kMiB));                // more than one has
    CHECK_FALSE(comes_with_fault(kPage, 2 * kMiB + kPage));        // no multiple
    CHECK_FALSE(comes_with_fault(64 * kKiB + kPage, 384 * kKiB));  // another piece lies between
    CHECK_FALSE(comes_with_fault(2 * kMiB + kPage, 2 * kMiB));     // backwards
}

TEST_CASE("access: parts of blocks that a storage refuses are said, with or without other changes") {
    using enum AccessCount;
    AccessCounts counts;
    CHECK(access_sentence(nullptr, counts).empty());
    counts[part_writes] = 1;
    counts[part_written] = 512;
    const std::string only =
        "this storage refuses O_DIRECT on parts of a block: 1 write of 512 B went through the page cache, synced";
    CHECK(access_sentence(nullptr, counts) == only);
    AccessPlan plan;
    plan.change.sync_writes = true;
    CHECK(access_sentence(&plan, counts) == "0 writes of 0 B with O_DSYNC; " + only);
    counts[part_reads] = 2;
    counts[part_asked] = 1'024;
    counts[part_fetched] = 8'192;
    CHECK(part_blocks_sentence(counts) ==
          "this storage refuses O_DIRECT on parts of a block: 2 reads took whole ones (8.00 KiB for 1.00 KiB), 1 write "
          "of 512 B "
          "went through the page cache, synced");
    CHECK(waited_sentence(counts).empty());
    counts[waited] = 1;
    CHECK(access_sentence(nullptr, counts).ends_with("; " + waited_sentence(counts)));
    CHECK(waited_sentence(counts).starts_with("1 call that was not to wait (RWF_NOWAIT) had to here"));
}

}  // namespace reprise::test
