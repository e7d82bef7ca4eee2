// SPDX-License-Identifier: MIT
// Which bytes a replay reads, and what the recording says of the page cache.
#include "replay/prepare/cache_plan.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "formats/oplog/async_request.h"
#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "replay/plan/reads.h"
#include "replay/plan/recorded_doubts.h"
#include "replay/prepare/cache_regime.h"
#include "tests/replay/job_builder.h"

namespace reprise::test {
namespace {

constexpr uint64_t kPage = RangeSet::kPage;
using Ranges = std::map<uint64_t, uint64_t>;

/// In pages.
Ranges pages(const RangeSet& set) {
    Ranges out;
    for (const auto& [from, to] : set.ranges()) {
        out.emplace(from / kPage, to / kPage);
    }
    return out;
}

bool all_files(FileId) { return true; }

const CacheTarget* target(const CachePlan& plan, std::string_view path) {
    const auto found = std::find_if(plan.targets.begin(), plan.targets.end(),
                                    [&](const CacheTarget& one) { return path == one.path; });
    return found == plan.targets.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("reads: at positions and offsets, as far as they got, not past the page cache") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId a = job.file("/d/a"), b = job.file("/d/b");
    const HandleId plain = job.open(t, a), direct = job.open(t, a, O_RDONLY | O_DIRECT), other = job.open(t, b);
    job.pread(t, plain, 10 * kPage, 100);
    job.read(t, plain, 0, 2 * kPage);
    job.add(t, {.kind = OpKind::pread, .result = 0, .handle = plain, .offset = 20 * kPage, .size = kPage});
    job.add(t, {.kind = OpKind::pread, .result = -5, .handle = plain, .offset = 30 * kPage, .size = kPage});
    job.add(t, {.kind = OpKind::pread, .result = kPage, .handle = plain, .offset = 40 * kPage, .size = 9 * kPage});
    job.pread(t, direct, 50 * kPage, kPage);
    job.pwrite(t, plain, 60 * kPage, kPage);
    job.add(t, {.kind = OpKind::copy_file_range,
                .result = kPage,
                .handle = plain,
                .handle2 = other,
                .offset = 70 * kPage,
                .size = kPage});
    job.add(t, {.kind = OpKind::aio_submit,
                .handle = plain,
                .offset = 80 * kPage,
                .size = kPage,
                .arg = IOCB_CMD_PREAD,
                .request = 1});
    job.add(t, {.kind = OpKind::aio_submit,
                .handle = plain,
                .offset = 90 * kPage,
                .size = kPage,
                .arg = IOCB_CMD_PWRITE,
                .request = 2});
    const LogReader log = job.finish();
    const FileRanges reads = gather_reads(log, all_files).reads;
    CHECK(pages(reads[a]) == Ranges{{0, 2}, {10, 11}, {40, 41}, {70, 71}, {80, 81}});
    CHECK(reads[b].empty());
    CHECK(gather_reads(log, [&](FileId file) { return file != a; }).reads[a].empty());
}

TEST_CASE("reads: what a device may serve besides the page cache's reads, and whether it may serve it again") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId a = job.file("/d/a"), made = job.file("/d/made", Origin::created);
    const HandleId plain = job.open(t, a, O_RDWR), direct = job.open(t, a, O_RDONLY | O_DIRECT),
                   own = job.open(t, made, O_RDWR);
    job.pread(t, plain, 0, kPage);
    job.pread(t, direct, 0, 5 * kPage);
    job.pwrite(t, plain, 0, kPage);  // whole pages are not read first
    job.pwrite(t, plain, kPage, 100);
    job.pwrite(t, own, 0, 100);
    uint64_t drops = 0;
    SUBCASE("once") {}
    SUBCASE("again") {
        job.add(t, {.kind = OpKind::fadvise, .handle = own, .size = kPage, .arg = POSIX_FADV_DONTNEED});
        drops = 1;
    }
    SUBCASE("again, as a call leaves nothing in memory") {
        constexpr int64_t kDontCache = 0x80;  // RWF_DONTCACHE
        job.add(t, {.kind = OpKind::preadv, .result = 0, .handle = plain, .size = kPage, .flags = kDontCache});
        drops = 1;
    }
    const LogReader log = job.finish();
    const FileReads found = gather_reads(log, [&](FileId file) { return file == a; });
    CHECK(found.beside_bytes == 7 * kPage);
    CHECK(found.drops == (drops != 0));
    const Plan plan = make_plan(log, OpFilter{}, PathMap::parse({"/d=data"}));
    const CachePlan cache = plan_cache(plan, log);
    CHECK(cache.beside_bytes == 7 * kPage);
    CHECK(cache.drops == (drops != 0));
}

TEST_CASE("reads: by an instance that was made direct, from the device each time") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId a = job.file("/d/a");
    const HandleId handle = job.open(t, a, O_RDWR);
    job.add(t, {.kind = OpKind::fcntl, .handle = handle, .fd = 3, .flags = O_DIRECT, .arg = F_SETFL});
    job.pwrite(t, handle, 0, 4 * kPage);
    for (int i = 0; i < 5; ++i) {
        job.pread(t, handle, 0, 4 * kPage);
    }
    const FileReads found = gather_reads(job.finish(), [&](FileId file) { return file == a; });
    CHECK(found.beside_bytes == 20 * kPage);
    CHECK(found.made[a].empty());
}

TEST_CASE("reads: what a mapping touches, whichever task made it") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const ProcessId process = job.process();
    const TaskId first = job.task(process), second = job.task(process);
    const FileId a = job.file("/d/a");
    const HandleId h = job.open(second, a);
    const std::vector<int64_t> list{2 * kPage, 3 * kPage, kPage, kPage};
    job.add(second, {.kind = OpKind::mmap, .handle = h, .offset = 100 * kPage, .size = 50 * kPage, .map = 1});
    job.add(second, {.kind = OpKind::mmap, .result = -12, .handle = h, .size = 50 * kPage, .map = 2});
    job.add(second, {.kind = OpKind::mmap, .size = 50 * kPage, .map = 3});  // no file
    for (const uint32_t map : {1, 2, 3, 4}) {
        job.add(first, {.kind = OpKind::touch, .offset = kPage, .size = 8 * kPage, .map = map, .list = list});
        job.add(first, {.kind = OpKind::touch, .offset = 20 * kPage, .size = 2 * kPage, .map = map});
    }
    job.add(first, {.kind = OpKind::touch, .result = -14, .offset = 30 * kPage, .size = kPage, .map = 1});
    const LogReader log = job.finish();
    CHECK(pages(gather_reads(log, all_files).reads[a]) == Ranges{{103, 106}, {107, 108}, {120, 122}});
}

TEST_CASE("reads: pages of a mapping touched in any order") {
    const TempDir dir;
    constexpr int64_t kOne = kPage;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId a = job.file("/d/a");
    const HandleId h = job.open(t, a);
    job.add(t, {.kind = OpKind::mmap, .handle = h, .offset = 100 * kOne, .size = 500 * kOne, .map = 1});
    const std::vector<int64_t> list{0, kOne, -30 * kOne, 2 * kOne, 300 * kOne, kOne, -101 * kOne, kOne};
    job.add(t, {.kind = OpKind::touch, .offset = 40 * kOne, .size = 300 * kOne, .map = 1, .list = list});
    const std::vector<int64_t> outside{0, kOne, -60 * kOne, kOne, 0, kOne};
    job.add(t, {.kind = OpKind::touch, .offset = 50 * kOne, .size = kOne, .map = 1, .list = outside});
    const LogReader log = job.finish();
    CHECK(pages(gather_reads(log, all_files).reads[a]) ==
          Ranges{{111, 113}, {140, 141}, {150, 151}, {313, 314}, {413, 414}});
}

TEST_CASE("reads: what is populated is read, what the kernel is advised to read may be") {
    const TempDir dir;
    constexpr int64_t kOne = kPage;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    FileRow sized;
    sized.path = job.writer().intern("/d/a");
    sized.type = FileType::regular;
    sized.origin = Origin::existed;
    sized.size = 1000 * kOne;
    sized.size_exact = true;
    const FileId a = job.writer().add_file(sized);
    const HandleId h = job.open(t, a);
    const auto map = [&](uint32_t id, int64_t at, int64_t flags, int64_t mode = PROT_READ) {
        job.add(t, {.kind = OpKind::mmap,
                    .handle = h,
                    .offset = at * kOne,
                    .size = 10 * kOne,
                    .flags = MAP_SHARED | flags,
                    .mode = mode,
                    .map = id});
    };
    map(1, 0, MAP_POPULATE);
    map(2, 20, MAP_POPULATE | MAP_NONBLOCK);
    map(3, 40, MAP_POPULATE, PROT_NONE);
    map(4, 995, MAP_POPULATE);  // beyond the end
    map(5, 100, 0);
    const auto advise = [&](int64_t at, int64_t advice, int64_t result = 0) {
        job.add(
            t, {.kind = OpKind::madvise, .result = result, .offset = at * kOne, .size = kOne, .arg = advice, .map = 5});
    };
    advise(1, MADV_POPULATE_READ);
    advise(3, MADV_POPULATE_WRITE);
    advise(5, MADV_WILLNEED);
    advise(7, MADV_RANDOM);
    advise(9, MADV_POPULATE_READ, -EFAULT);
    const auto start = [&](OpKind kind, int64_t at, int64_t size, int64_t arg, int64_t result = 0) {
        job.add(t, {.kind = kind, .result = result, .handle = h, .offset = at * kOne, .size = size * kOne, .arg = arg});
    };
    start(OpKind::readahead, 200, 4, 0);
    start(OpKind::readahead, 210, 4, 0, -EBADF);
    start(OpKind::fadvise, 220, 4, POSIX_FADV_WILLNEED);
    start(OpKind::fadvise, 230, 4, POSIX_FADV_SEQUENTIAL);
    start(OpKind::fadvise, 990, 0, POSIX_FADV_WILLNEED);  // to the end
    job.add(t, {.kind = OpKind::uring_submit,
                .handle = h,
                .offset = 240 * kOne,
                .size = kOne,
                .flags = int64_t{POSIX_FADV_WILLNEED} << kUringOwnFlags,
                .arg = IORING_OP_FADVISE,
                .request = 1});
    for (const OpKind kind : {OpKind::sendfile, OpKind::splice}) {
        job.add(t, {.kind = kind,
                    .result = kOne,
                    .handle = h,
                    .offset = kind == OpKind::splice ? 300 * kOne : 310 * kOne,
                    .size = 5 * kOne});
    }
    const LogReader log = job.finish();
    const FileReads found = gather_reads(log, all_files);
    CHECK(pages(found.reads[a]) == Ranges{{0, 10}, {101, 102}, {103, 104}, {300, 301}, {310, 311}, {995, 1000}});
    CHECK(pages(found.advised[a]) == Ranges{{105, 106}, {200, 204}, {220, 224}, {240, 241}, {990, 1000}});
    CHECK(gather_reads(log, [](FileId) { return false; }).advised[a].empty());
}

TEST_CASE("cache plan: of what was advised, the recording read what it fetched") {
    const TempDir dir;
    FetchedPages fetched;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId a = job.file("/d/a");
    const HandleId h = job.open(t, a);
    job.add(t, {.kind = OpKind::readahead, .handle = h, .size = 100 * kPage});
    job.pread(t, h, 50 * kPage, 10 * kPage);
    bool fetched_known = true;
    SUBCASE("known") {}
    SUBCASE("not known") { fetched_known = false; }
    if (fetched_known) {
        fetched[a].add(0, 20 * kPage);
        fetched[a].add(50 * kPage, 55 * kPage);
        job.writer().keep(encode_fetched(fetched));
    } else {
        job.writer().keep(encode_cached({{a, 0}}));
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter{}, PathMap::parse({"/d=data"}));
    const CachePlan cache = plan_cache(plan, log);
    const CacheTarget* const of_a = target(cache, "data/a");
    REQUIRE(of_a);
    CHECK(pages(of_a->reads) == Ranges{{0, 100}});
    CHECK(pages(of_a->resident) == (fetched_known ? Ranges{{55, 60}} : Ranges{}));
    CHECK(cache.recorded.read_bytes == (fetched_known ? 30 : 100) * kPage);
    CHECK(cache.recorded.fetched_bytes == (fetched_known ? 25 : 100) * kPage);
}

namespace {

/// A task that maps a file, and what it fetched of that.
struct MappedFile {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    TaskId t = job.lone_task();
    FileId a = job.file("/d/a");
    HandleId h = job.open(t, a);
    FetchedPages fetched;

    MappedFile() { job.add(t, {.kind = OpKind::mmap, .handle = h, .size = 3000 * kPage, .map = 1}); }
    CachePlan planned() {
        job.writer().keep(encode_fetched(fetched));
        log.emplace(job.finish());
        plan.emplace(make_plan(*log, OpFilter{}, PathMap::parse({"/d=data"})));
        return plan_cache(*plan, *log);
    }
    std::optional<LogReader> log;  // what is planned points into them
    std::optional<Plan> plan;
};

}  // namespace

TEST_CASE_FIXTURE(MappedFile, "cache plan: touches of mapped files that were in memory") {
    uint64_t touched = 40, in_memory = 30;
    bool hides = true;
    SUBCASE("mostly") {}
    SUBCASE("a few") {
        touched = 15;
        in_memory = 15;
        hides = false;
    }
    SUBCASE("less than half") {
        in_memory = 19;
        hides = false;
    }
    job.add(t, {.kind = OpKind::touch, .size = static_cast<int64_t>(touched * kPage), .map = 1});
    job.pread(t, h, 500 * kPage, 100 * kPage);
    fetched[a].add(in_memory * kPage, 50 * kPage);
    fetched[a].add(500 * kPage, 600 * kPage);
    const CachePlan cache = planned();
    CHECK(cache.recorded.touched_bytes == touched * kPage);
    CHECK(cache.recorded.touched_in_memory == in_memory * kPage);
    CHECK(cache.recorded.hides_touches() == hides);
}

TEST_CASE_FIXTURE(MappedFile, "cache plan: what was fetched around page faults may be used, too") {
    job.add(t, {.kind = OpKind::touch, .offset = 600 * kPage, .size = kPage, .map = 1});
    job.pread(t, h, 1000 * kPage, 10 * kPage);
    fetched[a].add(500 * kPage, 700 * kPage);  // 512 to 1024 are the 2 MiB around the fault
    fetched[a].add(900 * kPage, 1500 * kPage);
    const CachePlan cache = planned();
    CHECK(cache.recorded.touched_bytes == kPage);
    CHECK(cache.recorded.around_bytes == (187 + 124 - 10) * kPage);
    CHECK(cache.around_bytes == 0);  // those are known
    REQUIRE(cache.targets.size() == 1);
    CHECK(pages(cache.targets[0].reads) == Ranges{{512, 700}, {900, 1024}});  // a warm cache has them all
    CHECK(cache.targets[0].resident.empty());
}

TEST_CASE_FIXTURE(MappedFile, "cache plan: how far the recording read around page faults") {
    for (int64_t page = 0; page < 10; ++page) {
        job.add(t, {.kind = OpKind::touch, .offset = page * 16 * static_cast<int64_t>(kPage), .size = kPage, .map = 1});
    }
    FileRow row = job.writer().tables().files[a];
    row.device = gnu_dev_makedev(8, 1);
    job.writer().update_file(a, row);
    int64_t reach = 0;
    SUBCASE("as its read-ahead says") {
        write_fact(job.writer().header(), fact::recorded_read_ahead, R"({"8:1":16384,"8:2":65536})");
        fetched[a].add(0, 160 * kPage);
        reach = 16384;
    }
    SUBCASE("no farther than a fault maps") {
        write_fact(job.writer().header(), fact::recorded_read_ahead, R"({"8:1":4194304})");
        fetched[a].add(0, 160 * kPage);
        reach = kMostFaultReach;
    }
    SUBCASE("of another device, by what was fetched") {
        write_fact(job.writer().header(), fact::recorded_read_ahead, R"({"8:2":16384})");
        fetched[a].add(0, 120 * kPage);  // 48 KiB a fault
        reach = 64 << 10;
    }
    SUBCASE("not what it may be") {
        write_fact(job.writer().header(), fact::recorded_read_ahead, R"({"8:1":-1})");
        fetched[a].add(0, 160 * kPage);
        reach = 64 << 10;
    }
    SUBCASE("nothing") {
        write_fact(job.writer().header(), fact::recorded_read_ahead, R"({"8:1":16384})");
        for (uint64_t page = 0; page < 10; ++page) {
            fetched[a].add(page * 16 * kPage, (page * 16 + 1) * kPage);
        }
    }
    CHECK(planned().recorded.fault_reach == reach);
}

TEST_CASE("cache plan: files below the root, and what the recording found in memory") {
    const TempDir dir;
    FetchedPages fetched;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const FileId a = job.file("/d/a"), b = job.file("/d/b"), made = job.file("/d/made", Origin::created),
                 program = job.file("/bin/x", Origin::existed, Role::program);
    fetched[a].add(0, 8 * kPage);
    fetched[a].add(20 * kPage, 90 * kPage);  // more than was read
    fetched[program].add(0, kPage);
    for (const FileId file : {a, b, made, program}) {
        const HandleId h = job.open(t, file);
        job.pread(t, h, 0, 10 * kPage);
        job.pread(t, h, 30 * kPage, 2 * kPage);
    }
    job.writer().keep(encode_fetched(fetched));
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter{}, PathMap::parse({"/d=data"}));
    const CachePlan cache = plan_cache(plan, log);
    CHECK(cache.targets.size() == 2);
    const CacheTarget* const of_a = target(cache, "data/a");
    const CacheTarget* const of_b = target(cache, "data/b");
    REQUIRE(of_a);
    REQUIRE(of_b);
    CHECK(pages(of_a->reads) == Ranges{{0, 10}, {30, 32}});
    CHECK(pages(of_a->resident) == Ranges{{8, 10}});
    CHECK(pages(of_b->resident) == Ranges{{0, 10}, {30, 32}});
    CHECK(cache.recorded.pages_known);
    CHECK(cache.recorded.read_bytes == 24 * kPage);
    CHECK(cache.recorded.fetched_bytes == 10 * kPage);

    // A variant reads other files; the recording still says what was in memory.
    JobBuilder variant(dir / "variant.oplog");
    const TaskId v = variant.lone_task();
    const HandleId other = variant.open(v, variant.file("/d/b"));
    variant.pread(v, other, 31 * kPage, 10 * kPage);
    const LogReader changed = variant.finish();
    const Plan of_variant = make_plan(changed, OpFilter{}, PathMap::parse({"/d=data"}));
    const CachePlan with = plan_cache(of_variant, log);
    REQUIRE(with.targets.size() == 1);
    CHECK(pages(with.targets[0].reads) == Ranges{{31, 41}});
    CHECK(pages(with.targets[0].resident) == Ranges{{0, 10}, {30, 32}});
    CHECK(with.recorded.read_bytes == 12 * kPage);
    CHECK(with.recorded.fetched_bytes == 0);
    CHECK_FALSE(plan_cache(of_variant, changed).recorded.fetched_bytes);
}

TEST_CASE("cache plan: how much of each file was in memory at its first open") {
    const TempDir dir;
    bool fetched_known = false;
    SUBCASE("alone") {}
    SUBCASE("beside the pages that were fetched") { fetched_known = true; }
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const auto file = [&](const char* path) {
        const FileId id = job.file(path);
        FileRow row = job.writer().tables().files[id];
        row.size = 12 * kPage - 5;
        row.size_exact = true;
        job.writer().update_file(id, row);
        job.pread(t, job.open(t, id), 2 * kPage, 8 * kPage);
        return id;
    };
    const FileId none = file("/d/none"), part = file("/d/part"), all = file("/d/all"), unseen = file("/d/unseen");
    CHECK(unseen != 0);
    job.writer().keep(encode_cached({{none, 0}, {part, 3}, {all, 12}}));
    if (fetched_known) {
        FetchedPages fetched;
        fetched[part].add(2 * kPage, 8 * kPage);
        job.writer().keep(encode_fetched(fetched));
    }
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter{}, PathMap{});
    const CachePlan cache = plan_cache(plan, log);
    REQUIRE(cache.targets.size() == 4);
    const auto resident = [&](const char* path) { return pages(target(cache, path)->resident); };
    CHECK(cache.recorded.pages_known);
    CHECK(cache.recorded.read_bytes == 32 * kPage);
    CHECK(resident("d/none").empty());
    CHECK(resident("d/all") == Ranges{{2, 10}});
    if (fetched_known) {
        CHECK(resident("d/part") == Ranges{{8, 10}});
        CHECK(resident("d/unseen") == Ranges{{2, 10}});
        CHECK(cache.recorded.guessed_files == 0);
        CHECK(cache.recorded.fetched_bytes == (8 + 6) * kPage);
    } else {
        CHECK(resident("d/part") == Ranges{{2, 3}});
        CHECK(resident("d/unseen").empty());
        CHECK(cache.recorded.guessed_files == 2);
        CHECK(cache.recorded.fetched_bytes == (8 + 7 + 8) * kPage);
    }
}

TEST_CASE("cache plan: older recordings have counters of the whole machine") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/a"));
    job.pread(t, h, 0, 1 << 20);
    write_fact(job.writer().header(), fact::context,
               R"({"interval_ms":200,"series":{"cache_added_kib":[0,512,256],"block_read_kib":[100,300,200]}})");
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter{}, PathMap{});
    const CachePlan cache = plan_cache(plan, log);
    CHECK_FALSE(cache.recorded.pages_known);
    CHECK(cache.recorded.read_bytes == 1 << 20);
    REQUIRE(cache.recorded.fetched_bytes);
    CHECK(static_cast<double>(*cache.recorded.fetched_bytes) == doctest::Approx(600 * 1024).epsilon(0.001));
}

TEST_CASE("cache plan: what was fetched and no device read was sparse or compressed then") {
    const TempDir dir;
    std::string uncounted = "{}";
    const auto unserved = [&](const char* type, const char* series, bool merged = false) {
        JobBuilder job(dir / "job.oplog");
        const TaskId t = job.lone_task();
        const FileId a = job.file("/d/a");
        FileRow row = job.writer().tables().files[a];
        row.device = makedev(254, 0);
        job.writer().update_file(a, row);
        job.pread(t, job.open(t, a), 0, 1 << 20);
        FetchedPages fetched;
        fetched[a].add(0, 1 << 20);
        job.writer().keep(encode_fetched(fetched));
        write_fact(job.writer().header(), fact::file_systems, std::string("{\"254:0\":\"") + type + "\"}");
        write_fact(job.writer().header(), fact::uncounted_devices, uncounted);
        write_fact(job.writer().header(), fact::context,
                   std::string("{\"interval_ms\":200,\"series\":{") + series + "}}");
        if (merged) {
            write_fact(job.writer().header(), fact::merged, std::string("2 ranks"));
        }
        const LogReader log = job.finish();
        const Plan plan = make_plan(log, OpFilter{}, PathMap{});
        const CachePlan cache = plan_cache(plan, log);
        CHECK(cache.recorded.fetched_bytes == 1 << 20);
        return cache.recorded.unserved_bytes;
    };
    CHECK(unserved("ext4", R"("block_read_kib":[0,256])") == doctest::Approx(768 << 10).epsilon(0.001));
    CHECK(unserved("ext4", R"("block_read_kib":[1024,256])") == 0);
    CHECK(unserved("ext4", R"("cache_added_kib":[1024])") == 0);  // not counted
    CHECK(unserved("ext4", R"("block_read_kib":[0,256])", true) == 0);
    CHECK(unserved("nfs4", R"("block_read_kib":[0,256])") == 0);
    uncounted = R"({"254:0":"zram0"})";
    CHECK(unserved("ext4", R"("block_read_kib":[0,256])") == 0);
    uncounted = R"({"254:1":"zram1"})";
    CHECK(unserved("ext4", R"("block_read_kib":[0,256])") > 0);
}

TEST_CASE("the regime: as asked, or as the recording was") {
    using Why = CacheChoice::Why;
    const auto choose = [](std::optional<CacheRegime> asked, const RecordedCache& recorded) {
        const CacheChoice choice = choose_regime(asked, recorded);
        CHECK(choice.asked == asked);
        return std::pair(choice.regime, choice.why);
    };
    const RecordedCache unknown, cold{1000, 900, true}, mixed{1000, 899, true}, little{1000, 10, true},
        warm{1000, 9, true}, nothing{0, 0, true};
    const RecordedCache seems_cold{1000, 500, false}, seems_warm{1000, 499, false};
    CHECK(choose({}, unknown) == std::pair(CacheRegime::as_is, Why::unknown));
    CHECK(choose({}, nothing) == std::pair(CacheRegime::as_is, Why::unknown));
    CHECK(choose({}, cold) == std::pair(CacheRegime::cold, Why::fetched));
    CHECK(choose({}, mixed) == std::pair(CacheRegime::recorded, Why::fetched));
    CHECK(choose({}, little) == std::pair(CacheRegime::recorded, Why::fetched));
    CHECK(choose({}, warm) == std::pair(CacheRegime::recorded, Why::in_memory));
    CHECK(choose({}, seems_cold) == std::pair(CacheRegime::cold, Why::fetched));
    CHECK(choose({}, seems_warm) == std::pair(CacheRegime::as_is, Why::in_memory));
    for (const CacheRegime asked : {CacheRegime::cold, CacheRegime::warm, CacheRegime::as_is}) {
        CHECK(choose(asked, warm) == std::pair(asked, Why::asked));
        CHECK(cache_regime_by_name(cache_regime_name(asked)) == asked);
    }
    CHECK(choose(CacheRegime::recorded, warm) == std::pair(CacheRegime::recorded, Why::asked));
    CHECK(choose(CacheRegime::recorded, seems_cold) == std::pair(CacheRegime::as_is, Why::unknown));
    CHECK_FALSE(cache_regime_by_name("hot"));
}

}  // namespace reprise::test
