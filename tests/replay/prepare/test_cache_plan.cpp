// SPDX-License-Identifier: MIT
// Which bytes a replay reads, and what the recording says of the page cache.
#include "replay/prepare/cache_plan.h"

#include <linux/aio_abi.h>

#include <algorithm>
#include <map>
#include <utility>

#include "formats/oplog/fetched.h"
#include "formats/oplog/header_facts.h"
#include "replay/prepare/cache_regime.h"
#include "replay/prepare/reads.h"
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
                                    [&](const CacheTarget& one) { return one.path == path; });
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
    const std::vector<RangeSet> reads = gather_reads(log, all_files);
    CHECK(pages(reads.at(a)) == Ranges{{0, 2}, {10, 11}, {40, 41}, {70, 71}, {80, 81}});
    CHECK(reads.at(b).empty());
    CHECK(gather_reads(log, [&](FileId file) { return file != a; }).at(a).empty());
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
    CHECK(pages(gather_reads(log, all_files).at(a)) == Ranges{{103, 106}, {107, 108}, {120, 122}});
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

TEST_CASE("cache plan: older recordings have counters of the whole machine") {
    const TempDir dir;
    JobBuilder job(dir / "job.oplog");
    const TaskId t = job.lone_task();
    const HandleId h = job.open(t, job.file("/d/a"));
    job.pread(t, h, 0, 1 << 20);
    write_fact(job.writer().header(), fact::context,
               R"({"interval_ms":200,"series":{"cache_added_kib":[0,512,256],"block_read_kib":[100,300,200]}})");
    const LogReader log = job.finish();
    const CachePlan cache = plan_cache(make_plan(log, OpFilter{}, PathMap{}), log);
    CHECK_FALSE(cache.recorded.pages_known);
    CHECK(cache.recorded.read_bytes == 1 << 20);
    REQUIRE(cache.recorded.fetched_bytes);
    CHECK(static_cast<double>(*cache.recorded.fetched_bytes) == doctest::Approx(600 * 1024).epsilon(0.001));
}

TEST_CASE("the regime: as asked, or as the recording was") {
    using Why = CacheChoice::Why;
    const auto choose = [](std::optional<CacheRegime> asked, const RecordedCache& recorded) {
        const CacheChoice choice = choose_regime(asked, recorded);
        CHECK(choice.asked == asked);
        return std::pair(choice.regime, choice.why);
    };
    const RecordedCache unknown, cold{1000, 10, true}, warm{1000, 9, true}, nothing{0, 0, true};
    const RecordedCache seems_cold{1000, 500, false}, seems_warm{1000, 499, false};
    CHECK(choose({}, unknown) == std::pair(CacheRegime::as_is, Why::unknown));
    CHECK(choose({}, nothing) == std::pair(CacheRegime::as_is, Why::unknown));
    CHECK(choose({}, cold) == std::pair(CacheRegime::cold, Why::fetched));
    CHECK(choose({}, warm) == std::pair(CacheRegime::as_is, Why::in_memory));
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
