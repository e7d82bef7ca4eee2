// SPDX-License-Identifier: MIT
// Raw recordings to op logs: samples of mapped pages that were used again.
#include <doctest/doctest.h>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/touched.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kPage = 4096, kMap = 0x700000;

/// A mapping of 1 MiB at kMap, whose first page the job touched.
struct MappedJob : RawJob {
    MappedJob() {
        open("/d/a", 3, 0xf1, 7, 1 << 20);
        call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 0}, kMap).fd(4, fd_of(3, 0xf1, 7, 1 << 20));
        faulted();
    }
    void faulted() { fault(now + 1000, now + 2000, kMap); }
    void uses(uint64_t from, uint64_t until, const std::vector<raw_s64>& runs, bool huge = false) {
        raw_uses record{};
        record.from = from;
        record.head.time = until;
        record.head.flags = huge ? RAW_FLAG_TRUNCATED : 0;
        RawBytes bytes(RAW_USES, record);
        bytes.numbers(RAW_PART_LIST, 0, runs);
        bytes.head().pid = bytes.head().tid = pid;
        records().push_back(bytes);
    }
    /// Computes for a while, then makes a call.
    void step(uint64_t ns) {
        call_at(now + ns, now + ns + 1000, SYS_lseek, {3, 0, 0}, 0).fd(0, fd_of(3, 0xf1, 7, 1 << 20));
    }
    static raw_s64 run(uint64_t page, uint64_t pages = 1) {
        return static_cast<raw_s64>((kMap + page * kPage) | (pages - 1));
    }
    std::vector<Op> again(const AssembledLog& log) {
        std::vector<Op> touches = log.of_kind(OpKind::touch);
        std::erase_if(touches, [](const Op& op) { return op.flags != kTouchAgain; });
        return touches;
    }
};

int64_t pages_of(const std::vector<Op>& touches) {
    int64_t bytes = 0;
    for (const Op& touch : touches) {
        bytes += touch.size;
    }
    return bytes / static_cast<int64_t>(kPage);
}

}  // namespace

TEST_CASE("pages used again are touched before the computing in which they were used") {
    MappedJob job;
    job.step(kMs);
    const uint64_t from = job.now;
    job.step(10 * kMs);
    job.uses(from, job.now, {MappedJob::run(40), MappedJob::run(100, 2), MappedJob::run(110)});
    const AssembledLog log = job.assemble();
    const std::vector<Op> again = job.again(log);
    REQUIRE(again.size() == 3);
    CHECK(again[0].offset == 40 * kPage);
    CHECK(again[0].size == kPage);
    CHECK(again[0].duration == 0);
    CHECK(again[1].offset == 100 * kPage);
    CHECK(again[1].size == 2 * kPage);
    CHECK(again[2].offset == 110 * kPage);
    const std::vector<Op> seeks = log.of_kind(OpKind::lseek);
    REQUIRE(seeks.size() == 2);
    CHECK(again[0].begin >= seeks[0].end());
    CHECK(again[1].begin <= seeks[0].end() + static_cast<int64_t>(kMs));
    CHECK(log.of_kind(OpKind::compute).back().duration > static_cast<int64_t>(9 * kMs));
    CHECK(!read_fact(log.reader.header(), fact::mapped_uses_unplaced));
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("a sample's pages go to its computing in proportion") {
    MappedJob job;
    std::vector<raw_s64> runs;
    for (uint64_t page = 0; page < 100; ++page) {
        runs.push_back(MappedJob::run(2 * page));
    }
    uint64_t from = job.now;
    for (int sample = 0; sample < 2; ++sample) {  // how much is computed in one, the one before tells
        for (const uint64_t ms : {40, 10, 30, 20}) {
            job.step(ms * kMs);
        }
        job.uses(from, job.now, runs);
        from = job.now;
    }
    const AssembledLog log = job.assemble();
    const std::vector<Op> seeks = log.of_kind(OpKind::lseek);
    REQUIRE(seeks.size() == 8);
    std::vector<Op> first;
    for (const Op& touch : job.again(log)) {
        if (touch.begin >= seeks[3].end() && touch.begin < seeks[4].begin) {
            first.push_back(touch);
        }
    }
    CHECK(pages_of(first) >= 35);  // 40 of 100 ms
    CHECK(pages_of(first) <= 45);
    CHECK(pages_of(job.again(log)) == 200);
}

TEST_CASE("only tasks that touched such pages use them again") {
    MappedJob job;
    job.spawn(100, 101, 0x10f00);
    job.as(100, 101);
    job.step(kMs);
    job.faulted();
    job.step(kMs);
    const uint64_t from = job.now;
    job.step(10 * kMs);
    job.as(100, 102);  // computes as much, and never touched any
    job.step(10 * kMs);
    job.step(10 * kMs);
    job.uses(from, job.now, {MappedJob::run(1)});
    job.as(100, 101);
    job.step(10 * kMs);
    const AssembledLog log = job.assemble();
    CHECK(job.again(log).size() == 1);
    uint64_t of_others = 0;
    log.reader.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        const int32_t tid = log.tables().tasks[task].tid;
        of_others += op.kind == OpKind::touch && op.flags == kTouchAgain && tid != 100 && tid != 101 ? 1 : 0;
    });
    CHECK(of_others == 0);
}

TEST_CASE("uses that nobody computed for, and huge pages, are counted") {
    MappedJob job;
    job.step(kMs);
    job.uses(job.now + 50 * kMs, job.now + 60 * kMs, {MappedJob::run(1, 3)}, true);
    const AssembledLog log = job.assemble();
    CHECK(job.again(log).empty());
    CHECK(read_fact(log.reader.header(), fact::mapped_uses_unplaced) == 3);
    CHECK(read_fact(log.reader.header(), fact::mapped_uses_huge) == 1);
}
