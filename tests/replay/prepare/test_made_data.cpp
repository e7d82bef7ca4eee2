// SPDX-License-Identifier: MIT
// What a job wrote, cut off or punched before it reads it comes from no device, in the recording or here.
#include <fcntl.h>
#include <linux/falloc.h>

#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "formats/oplog/cached_pages.h"
#include "replay/plan/reads.h"
#include "replay/prepare/cache_plan.h"
#include "replay/prepare/cache_regime.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

constexpr int64_t kPage = RangeSet::kPage;
using Ranges = std::map<uint64_t, uint64_t>;

/// A file of 100 pages, the last of which ends early.
struct OwnData {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    ProcessId process = job.process();
    TaskId t = job.task(process), second = job.task(process);
    FileId a = job.file("/d/a");
    HandleId h = job.open(t, a, O_RDWR), direct = job.open(t, a, O_RDWR | O_DIRECT);
    FetchedPages fetched;
    std::optional<LogReader> log;  // what is planned points into them
    std::optional<Plan> plan;

    OwnData() {
        FileRow row = job.writer().tables().files[a];
        row.size = 100 * kPage - 7;
        row.size_exact = true;
        job.writer().update_file(a, row);
    }
    /// Pages.
    void write(int64_t from, int64_t to) { job.pwrite(t, h, from * kPage, (to - from) * kPage); }
    void read(int64_t from, int64_t to) { job.pread(t, h, from * kPage, (to - from) * kPage); }
    Ranges reads() {
        log.emplace(job.finish());
        Ranges out;
        const FileReads all = gather_reads(*log, [](FileId) { return true; });
        for (const auto& [from, to] : all.reads[a].ranges()) {
            out.emplace(from / kPage, to / kPage);
        }
        return out;
    }
    /// Of a recording that found nothing of the file in memory.
    RecordedCache recorded() {
        job.writer().keep(encode_cached({{a, 0}}));
        job.writer().keep(encode_fetched(fetched));
        log.emplace(job.finish());
        plan.emplace(make_plan(*log, OpFilter{}, PathMap::parse({"/d=data"})));
        return plan_cache(*plan, *log).recorded;
    }
};

}  // namespace

TEST_CASE_FIXTURE(OwnData, "reads: not what the job wrote before") {
    write(10, 20);
    read(5, 25);
    write(0, 8);  // later
    CHECK(reads() == Ranges{{5, 10}, {20, 25}});
}

TEST_CASE_FIXTURE(OwnData, "reads: a page of which a part is written is read, but for the end of the file") {
    job.pwrite(t, h, 10 * kPage + 1, 5 * kPage);
    job.pwrite(t, h, 90 * kPage, 10 * kPage - 7);
    read(0, 100);
    CHECK(reads() == Ranges{{0, 11}, {15, 90}});
}

TEST_CASE_FIXTURE(OwnData, "reads: the rest of pages of which parts are written, but not behind the file's end") {
    job.pwrite(t, h, 10 * kPage + 100, 100);
    job.pwrite(t, h, 20 * kPage - 100, 200);       // parts of two
    job.pwrite(t, h, 30 * kPage, 3 * kPage);       // whole ones
    job.pwrite(t, direct, 40 * kPage + 100, 100);  // past the cache
    job.pwrite(t, h, 99 * kPage, kPage - 7);       // to the end
    job.pwrite(t, h, 120 * kPage + 100, 100);      // behind it
    CHECK(reads() == Ranges{{10, 11}, {19, 21}});
}

TEST_CASE_FIXTURE(OwnData,
                  "a file that the job renames, links, or whose directory it renames, is read by its first name") {
    FileRow row = job.writer().tables().files[a];
    row.device = 1;
    row.inode = 77;
    row.origin = Origin::created;
    row.path = job.writer().intern("/d/b");
    const FileId other = job.writer().add_file(row);
    bool counts = true;
    SUBCASE("itself") { job.add(t, {.kind = OpKind::rename, .file = a, .file2 = other}); }
    SUBCASE("linked") { job.add(t, {.kind = OpKind::link, .file = a, .file2 = other}); }
    SUBCASE("its directory") {
        FileRow first = job.writer().tables().files[a];
        first.device = 1;
        first.inode = 77;
        job.writer().update_file(a, first);
        const auto directory = [&](const char* path, Origin origin) {
            return job.file(path, origin, Role::dataset, FileType::directory);
        };
        job.add(t, {.kind = OpKind::rename,
                    .file = directory("/d", Origin::existed),
                    .file2 = directory("/e", Origin::created)});
    }
    SUBCASE("exchanged with another") {
        FileRow first = job.writer().tables().files[a];
        first.device = 1;
        first.inode = 77;
        job.writer().update_file(a, first);
        job.add(t, {.kind = OpKind::rename, .file = job.file("/d/b2"), .file2 = a, .flags = 2});
    }
    SUBCASE("another file, of the same inode number") {
        counts = false;
        FileRow first = job.writer().tables().files[a];
        first.device = 1;
        first.inode = 77;
        job.writer().update_file(a, first);
        job.add(t, {.kind = OpKind::unlink, .file = a});
    }
    SUBCASE("in a ring of names") {
        counts = false;
        job.add(t, {.kind = OpKind::rename, .file = a, .file2 = other});
        job.add(t, {.kind = OpKind::rename, .file = other, .file2 = a});
    }
    const HandleId in = job.open(t, other, O_RDONLY);
    job.pread(t, in, 10 * kPage, 10 * kPage);
    fetched[a].add(10 * kPage, 15 * kPage);
    const RecordedCache found = recorded();
    CHECK(found.read_bytes == (counts ? 10 * kPage : 0));
    CHECK(found.fetched_bytes == (counts ? 5 * kPage : 0));
}

TEST_CASE_FIXTURE(OwnData,
                  "holes: those found after the job but for what it made; those found before it, whatever it made") {
    RangeSet after, before;
    after.add(10 * kPage, 50 * kPage);
    before.add(20 * kPage, 40 * kPage);
    job.writer().keep(encode_holes({{a, after}}));
    bool looked = false;
    SUBCASE("after") {}
    SUBCASE("before") {
        looked = true;
        job.writer().keep(encode_holes_before({{a, before}}));
    }
    SUBCASE("it had none before") {
        looked = true;
        before = {};
        job.writer().keep(encode_holes_before({{a, before}}));
    }
    write(20, 100);
    log.emplace(job.finish());
    Holes expected;
    if (!looked) {
        expected[a].add(10 * kPage, 20 * kPage);
    } else if (!before.empty()) {
        expected[a] = before;
    }
    CHECK(holes_at_first(*log) == expected);
}

TEST_CASE_FIXTURE(OwnData, "reads: what another task wrote meanwhile may have come later") {
    const int64_t begin = job.now();
    job.add(t, {.kind = OpKind::pwrite,
                .begin = begin,
                .duration = 1'000,
                .result = 50 * kPage,
                .handle = h,
                .fd = 3,
                .size = 50 * kPage});
    const auto read_at = [&](int64_t at, int64_t page) {
        job.add(second, {.kind = OpKind::pread,
                         .begin = at,
                         .duration = 10,
                         .result = kPage,
                         .handle = h,
                         .fd = 3,
                         .offset = page * kPage,
                         .size = kPage});
    };
    read_at(begin + 500, 7);
    read_at(begin + 1'000, 8);
    CHECK(reads() == Ranges{{7, 8}});
}

TEST_CASE_FIXTURE(OwnData, "reads: not what was cut off or punched") {
    SUBCASE("by its handle") {
        job.add(t, {.kind = OpKind::ftruncate, .handle = h, .fd = 3, .size = 10 * kPage + 1});
        read(0, 100);
        CHECK(reads() == Ranges{{0, 11}});
    }
    SUBCASE("by its name") {
        job.add(t, {.kind = OpKind::truncate, .file = a, .size = 0});
        read(0, 100);
        CHECK(reads().empty());
    }
    SUBCASE("where it is opened") {
        job.open(t, a, O_RDWR | O_TRUNC);
        read(0, 100);
        CHECK(reads().empty());
    }
    SUBCASE("punched") {
        job.add(t, {.kind = OpKind::fallocate,
                    .handle = h,
                    .fd = 3,
                    .offset = 20 * kPage,
                    .size = 10 * kPage,
                    .flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE});
        read(0, 50);
        CHECK(reads() == Ranges{{0, 20}, {30, 50}});
    }
    SUBCASE("allocated is as before") {
        job.add(t, {.kind = OpKind::fallocate, .handle = h, .fd = 3, .size = 100 * kPage});
        read(0, 50);
        CHECK(reads() == Ranges{{0, 50}});
    }
    SUBCASE("nor after a call that failed") {
        job.add(t, {.kind = OpKind::ftruncate, .result = -EPERM, .handle = h, .fd = 3, .size = 0});
        read(0, 50);
        CHECK(reads() == Ranges{{0, 50}});
    }
}

TEST_CASE_FIXTURE(OwnData, "reads: what was written past the page cache has to come into it") {
    job.pwrite(t, direct, 0, 50 * kPage);
    read(0, 50);
    CHECK(reads() == Ranges{{0, 50}});
}

TEST_CASE_FIXTURE(OwnData, "cache plan: a job that reads what it wrote fetched nothing of that") {
    SUBCASE("all of the file") {
        write(0, 100);
        read(0, 100);
        const RecordedCache found = recorded();
        CHECK(found.read_bytes == 0);
        CHECK(found.fetched_bytes == 0);
        CHECK(choose_regime({}, found).regime == CacheRegime::as_is);
    }
    SUBCASE("half of it") {
        write(0, 50);
        read(0, 100);
        fetched[a].add(50 * kPage, 100 * kPage);
        const RecordedCache found = recorded();
        CHECK(found.read_bytes == 50 * kPage - 7);
        CHECK(found.fetched_bytes == found.read_bytes);
        CHECK(choose_regime({}, found).regime == CacheRegime::cold);
    }
    SUBCASE("while another task wrote it") {
        const int64_t begin = job.now();
        job.add(second, {.kind = OpKind::pwrite,
                         .begin = begin,
                         .duration = 1'000'000,
                         .result = 100 * kPage,
                         .handle = h,
                         .fd = 3,
                         .size = 100 * kPage});
        job.add(t, {.kind = OpKind::pread,
                    .begin = begin + 500'000,
                    .duration = 10,
                    .result = 50 * kPage,
                    .handle = h,
                    .fd = 3,
                    .size = 50 * kPage});
        const RecordedCache found = recorded();
        CHECK(found.read_bytes == 50 * kPage);
        CHECK(found.fetched_bytes == 0);
    }
}

TEST_CASE_FIXTURE(OwnData, "cache plan: of a file that was in memory in part, what was not fetched was there") {
    read(0, 50);
    SUBCASE("as a part of it was") {
        fetched[a].add(0, 20 * kPage);
        CHECK(recorded().fetched_bytes == 20 * kPage);
    }
    SUBCASE("unless none of it came into memory") { CHECK(recorded().fetched_bytes == 50 * kPage); }
}

}  // namespace reprise::test
