// SPDX-License-Identifier: MIT
// What the recorder itself took, by kind of event, and memory that cost more than usual: neither is the job's
// computing.
#include <doctest/doctest.h>

#include <numeric>

#include "formats/raw/costs.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

std::string meta_with(const RecorderCosts& costs) {
    std::string text;
    for (const char c : costs.json()) {
        text += c == '"' ? std::string("\\\"") : std::string(1, c);
    }
    return R"({"command":["job"],"costs":")" + text + "\"}";
}

std::vector<int64_t> durations(const AssembledLog& log, OpKind kind) {
    std::vector<int64_t> out;
    for (const Op& op : log.of_kind(kind)) {
        out.push_back(op.duration);
    }
    return out;
}

int64_t fact_of(const AssembledLog& log, const std::string& key) {
    const auto& extra = log.reader.header().extra;
    const auto found = extra.find("capture." + key);
    return found == extra.end() ? 0 : std::stoll(found->second);
}

// Opens a file, then `between` has `us` until the read.
template <class Between>
AssembledLog job_with(const RecorderCosts& costs, int64_t us, const Between& between) {
    RawJob job(meta_with(costs));
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    between(job, from);
    const uint64_t enter = from + static_cast<uint64_t>(us * kUs);
    job.call_at(enter, enter + 1000, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    return job.assemble();
}

}  // namespace

TEST_CASE("costs: as text and back; what cannot be a cost is none") {
    RecorderCosts costs;
    costs.call = 400;
    costs.fault = 250;
    costs.huge_page = 57'515;
    CHECK(RecorderCosts::of(costs.json()) == costs);
    CHECK(RecorderCosts::of("") == RecorderCosts());
    CHECK(RecorderCosts::of("[1]") == RecorderCosts());
    const RecorderCosts strange = RecorderCosts::of(R"({"call":-1,"fault":"7","switch":1e99,"wake":2.5,"folio":90})");
    CHECK(strange.call == 0);
    CHECK(strange.fault == 0);
    CHECK(strange.off == 0);
    CHECK(strange.wake == 0);
    CHECK(strange.folio == 90);
}

TEST_CASE("faults: the recorder's part of each, and what dear ones took beyond the usual, is not computing") {
    RecorderCosts costs;
    costs.fault = 200;
    const auto faults = [](RawJob& job, uint64_t from) {
        job.faults(from + 100 * kUs, 50);
        job.faults(from + 380 * kUs, 30, 20, 210 * kUs);
    };
    CHECK(durations(job_with(costs, 400, [](RawJob&, uint64_t) {}), OpKind::compute) ==
          std::vector<int64_t>{400 * kUs});
    const AssembledLog log = job_with(costs, 400, faults);
    CHECK(durations(log, OpKind::compute) == std::vector{400 * kUs - 80 * 200 - 210 * kUs});
    CHECK(fact_of(log, "dear_pages") == 20);
    CHECK(fact_of(log, "dear_ns") == 210 * kUs);
    CHECK(fact_of(log, "taken_off_ns") == 80 * 200);
    CHECK(fact_of(log, "compute_ns") == 400 * kUs - 80 * 200 - 210 * kUs);
    SUBCASE("an unknown cost takes nothing off") {
        const AssembledLog unknown = job_with(RecorderCosts(), 400, faults);
        CHECK(durations(unknown, OpKind::compute) == std::vector{400 * kUs - 210 * kUs});
        CHECK(fact_of(unknown, "taken_off_ns") == 0);
    }
    SUBCASE("never below nothing") {
        const AssembledLog short_one =
            job_with(costs, 400, [](RawJob& job, uint64_t from) { job.faults(from + 380 * kUs, 30, 20, UINT64_MAX); });
        CHECK(durations(short_one, OpKind::compute).empty());
    }
}

TEST_CASE("faults: a long one in hundreds was interrupted, and is no dear memory") {
    const auto compute_of = [](uint32_t dear) {
        const AssembledLog log = job_with(RecorderCosts(), 400, [&](RawJob& job, uint64_t from) {
            job.faults(from + 100 * kUs, 150);
            job.faults(from + 300 * kUs, 50, dear, 100 * kUs);
        });
        CHECK(fact_of(log, "dear_pages") == (dear < 10 ? 0 : dear));
        return durations(log, OpKind::compute);
    };
    CHECK(compute_of(9) == std::vector{400 * kUs});
    CHECK(compute_of(10) == std::vector{300 * kUs});
}

TEST_CASE("faults before a wait: more than the computing before it is of that after it") {
    RecorderCosts costs;
    costs.fault = 100;
    const AssembledLog log = job_with(costs, 300, [](RawJob& job, uint64_t from) {
        job.faults(from + 20 * kUs, 40, 30, 30 * kUs);
        job.off(from + 24 * kUs, from + 90 * kUs, from + 100 * kUs, 0xffff);
    });
    CHECK(durations(log, OpKind::idle) == std::vector{66 * kUs});
    CHECK(durations(log, OpKind::compute) ==
          std::vector{200 * kUs - 10 * kUs});  // 24 before it, and 34 were not its own
}

TEST_CASE("switches and faults on files: the recorder's part of each") {
    RecorderCosts costs;
    costs.off = 300;
    const AssembledLog switched = job_with(costs, 400, [](RawJob& job, uint64_t from) {
        job.off(from + 50 * kUs, 0, from + 60 * kUs, 0xffff, RAW_OFF_RUNNABLE);
        job.off(from + 100 * kUs, 0, from + 110 * kUs, 0xffff, RAW_OFF_RUNNABLE);
        job.off(from + 200 * kUs, from + 250 * kUs, from + 250 * kUs, 0xffff);
    });
    CHECK(durations(switched, OpKind::compute) == std::vector{180 * kUs - 600, 150 * kUs - 300});
    CHECK(fact_of(switched, "taken_off_ns") == 900);
    costs = {};
    costs.file_fault = 400;
    const AssembledLog touched = job_with(costs, 400, [](RawJob& job, uint64_t from) {
        job.fault(from + 50 * kUs, from + 51 * kUs, 0x7000);  // on no mapping that is known: computing, but for that
        job.fault(from + 60 * kUs, from + 61 * kUs, 0x8000);
    });
    const std::vector<int64_t> parts = durations(touched, OpKind::compute);
    CHECK(std::accumulate(parts.begin(), parts.end(), int64_t{0}) == 400 * kUs - 800);
}

TEST_CASE("calls: the recorder's part inside them") {
    RecorderCosts costs;
    costs.off = 300;
    costs.wake = 150;
    costs.folio = 50;
    costs.folio_run = 70;
    RawJob job(meta_with(costs));
    job.open("/d/a", 3, 0xf1, 7);
    const auto begin = job.now + 10 * kUs;
    // A read: 8 folios in one run, and a wait for them.
    raw_page_cache run{};
    run.head.time = begin + 3 * kUs;
    run.first = run.last = begin + 2 * kUs;
    run.inode = 7;
    run.bytes = 8 * 4096;
    run.folios = 8;
    run.in_nr = SYS_pread64;
    job.add(RawBytes(RAW_PAGE_CACHE, run));
    job.off(begin + 4 * kUs, begin + 90 * kUs, begin + 91 * kUs, SYS_pread64, RAW_OFF_UNINTERRUPTIBLE);
    job.call_at(begin, begin + 100 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    // The next one finds them there.
    job.call_at(begin + 110 * kUs, begin + 120 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10)
        .fd(0, RawJob::fd_of(3, 0xf1, 7));
    // Wakes three.
    job.call_at(begin + 130 * kUs, begin + 140 * kUs, SYS_futex, {0x5000, 1, 3}, 3);
    const AssembledLog log = job.assemble();
    CHECK(durations(log, OpKind::pread) == std::vector{100 * kUs - 8 * 50 - 70 - 300, 10 * kUs});
    CHECK(durations(log, OpKind::wait) == std::vector{10 * kUs - 3 * 150});
}

TEST_CASE("calls on the program's own memory are no ops: their time is computing, but for that off the processor") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    const uint64_t from = job.now;
    constexpr uint64_t kDontNeed = 4, kSize = 1 << 20;
    job.off(from + 12 * kUs, 0, from + 17 * kUs, SYS_madvise, RAW_OFF_RUNNABLE);
    job.call_at(from + 10 * kUs, from + 50 * kUs, SYS_madvise, {0x7000000, kSize, kDontNeed}, 0);
    job.call_at(from + 60 * kUs, from + 90 * kUs, SYS_munmap, {0x7000000, kSize}, 0);
    job.call_at(from + 95 * kUs, from + 95 * kUs + 600, SYS_munmap, {0x7000000, kSize}, 0);
    job.call_at(from + 100 * kUs, from + 101 * kUs, SYS_pread64, {3, 0x9000, 10, 0}, 10)
        .fd(0, RawJob::fd_of(3, 0xf1, 7));
    const AssembledLog log = job.assemble();
    const std::vector<int64_t> parts = durations(log, OpKind::compute);
    CHECK(std::accumulate(parts.begin(), parts.end(), int64_t{0}) == 95 * kUs);  // 100, and 5 without the processor
    CHECK(log.of_kind(OpKind::madvise).empty());
    CHECK(log.of_kind(OpKind::munmap).empty());
}

TEST_CASE("a call that was shorter than the recorder's part of it took no time") {
    RecorderCosts costs;
    costs.wake = 9'000;
    RawJob job(meta_with(costs));
    job.open("/d/a", 3, 0xf1, 7);
    job.call(SYS_futex, {0x5000, 1, 1}, 1, 2'000);
    CHECK(durations(job.assemble(), OpKind::wait) == std::vector<int64_t>{0});
}
