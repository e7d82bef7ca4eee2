// SPDX-License-Identifier: MIT
// Spans of the mark `accelerator`: the job's own stand-in for a device.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct MarkedJob : RawJob {
    // A mark whose call lasts 1 us and begins now.
    void mark(uint64_t number, uint64_t phase, std::string_view name = "accelerator") {
        call_at(now, now + kUs, SYS_prctl, {RAW_MARKER_PRCTL, 0x1000, number, phase, RAW_MARKER_MAGIC}, -22)
            .string(1, name);
    }
    // Sleeps as time.sleep does: some computing, the call, some computing. It waits for a processor when it is over.
    static constexpr int64_t kLate = 5 * kUs;
    void sleep(uint64_t length) {
        const uint64_t enter = now + 20 * kUs;
        off(enter + 2 * kUs, enter + length - 10 * kUs, enter + length - 5 * kUs, SYS_clock_nanosleep);
        call_at(enter, enter + length, SYS_clock_nanosleep, {1, 0, 0x1000, 0}, 0);
        now += 30 * kUs;
    }
};

struct Seen {
    OpKind kind;
    int64_t begin, end, size, device, stream;
    bool operator==(const Seen&) const = default;
};

std::vector<Seen> accelerator_ops(const AssembledLog& log, TaskId task = 1) {
    std::vector<Seen> out;
    for (const Op& op : log.ops(task)) {
        if (op.kind == OpKind::gpu_submit || op.kind == OpKind::gpu_wait) {
            out.push_back({op.kind, op.begin, op.end(), op.size, op.arg, op.flags});
        }
    }
    return out;
}

std::vector<OpKind> kinds(const AssembledLog& log, TaskId task = 1) {
    std::vector<OpKind> out;
    for (const Op& op : log.ops(task)) {
        out.push_back(op.kind);
    }
    return out;
}

}  // namespace

TEST_CASE("a span of the mark accelerator is work of a device that its thread waits for") {
    MarkedJob job;
    job.now += 9000;
    const int64_t first = int64_t(job.now);
    job.mark(0, 1);
    job.sleep(100 * kMs);
    const int64_t whole = int64_t(job.now) - first - int64_t(kUs), length = whole - MarkedJob::kLate;
    job.mark(0, 2);
    job.pread(3, 0xf1, 7, 0, 4096);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds(log) == std::vector{marker, gpu_submit, gpu_wait, marker, compute, pread});
    // Log time 0 is where the first call began.
    CHECK(accelerator_ops(log) ==
          std::vector<Seen>{{gpu_submit, 1000, 1000, length, 0, 0}, {gpu_wait, 1000, 1000 + length, 0, 0, 0}});
    CHECK(log.ops()[3].begin == 1000 + whole);  // the thread was late, the device was not
    CHECK(log.reader.header().extra.at("accelerator.source") == "marks");
    CHECK(log.counter("accelerator_spans_unended") + log.counter("accelerator_spans_unbegun") == 0);
}

TEST_CASE("calls of a thread inside its accelerator span keep their time, and split the work") {
    MarkedJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.mark(0, 1);
    const uint64_t from = job.now;
    job.sleep(10 * kMs);
    const uint64_t at = job.now;
    job.call_at(at, at + 5 * kMs, SYS_pread64, {3, 0x9000, 10, 0}, 10).fd(0, RawJob::fd_of(3, 0xf1, 7));
    job.sleep(20 * kMs);
    const uint64_t until = job.now;
    job.mark(0, 2);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds(log) == std::vector{open, marker, gpu_submit, gpu_wait, pread, gpu_submit, gpu_wait, marker});
    const auto seen = accelerator_ops(log);
    CHECK(seen[0].size == int64_t(at - from) - MarkedJob::kLate);
    CHECK(seen[2].size == int64_t(until - at - 5 * kMs) - MarkedJob::kLate);
    CHECK(log.ops()[4].duration == 5 * kMs);
    CHECK(seen[2].begin == log.ops()[4].end());
}

TEST_CASE("waits of any kind inside a span are the device's time, waking others is not") {
    MarkedJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.mark(0, 1);
    const uint64_t from = job.now;
    job.woken(from + 10 * kUs, from + 900 * kUs, from + 903 * kUs, SYS_futex, 100, 200, SYS_futex, from + 800 * kUs);
    job.call_at(from + 9 * kUs, from + 904 * kUs, SYS_futex, {0x7000, 0x80, 5, 0}, 0);  // waits
    job.call_at(from + 950 * kUs, from + 960 * kUs, SYS_futex, {0x7100, 0x81, 1}, 1);   // wakes somebody
    job.off(from + 970 * kUs, from + 990 * kUs, from + 995 * kUs, 0xffff);              // idle
    job.off(from + 996 * kUs, from + 997 * kUs, from + 998 * kUs, SYS_ioctl);           // in a call not in the table
    job.now = from + kMs;
    job.mark(0, 2);
    const AssembledLog log = job.assemble();
    using enum OpKind;
    CHECK(kinds(log) == std::vector{open, marker, gpu_submit, gpu_wait, wait, gpu_submit, gpu_wait, marker});
    CHECK(log.ops()[4].arg == 6);
    CHECK(log.ops()[4].duration == 10 * kUs);
}

TEST_CASE("each process has a device, each thread of it a stream") {
    MarkedJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.spawn(100, 101, 0x10000);
    job.spawn(200, 200, 17);
    for (const auto& [pid, tid] : {std::pair{100u, 100u}, {200u, 200u}, {100u, 101u}}) {
        job.as(pid, tid);
        job.mark(0, 1);
        job.sleep(10 * kMs);
        job.mark(0, 2);
    }
    const AssembledLog log = job.assemble();
    const auto device = [&](TaskId task) {
        const auto seen = accelerator_ops(log, task);
        REQUIRE(seen.size() == 2);
        CHECK(seen[1].device == seen[0].device);
        CHECK(seen[1].stream == seen[0].stream);
        return std::pair(seen[0].device, seen[0].stream);
    };
    CHECK(device(1) == std::pair<int64_t, int64_t>{0, 0});
    CHECK(device(2) == std::pair<int64_t, int64_t>{0, 1});
    CHECK(device(3) == std::pair<int64_t, int64_t>{1, 0});
}

TEST_CASE("accelerator spans that do not pair are repaired and counted") {
    MarkedJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.mark(0, 2);  // never begun
    job.mark(1, 1);
    job.sleep(kMs);
    job.mark(2, 1);  // inside the one before
    job.sleep(kMs);
    job.mark(2, 2);
    job.sleep(kMs);
    job.mark(3, 1);
    job.sleep(kMs);
    job.exit(0);  // never ended
    const AssembledLog log = job.assemble();
    CHECK(log.counter("accelerator_spans_unended") == 1);
    CHECK(log.counter("accelerator_spans_unbegun") == 1);
    const auto seen = accelerator_ops(log);
    REQUIRE(seen.size() == 6);
    const auto ops = log.ops();
    CHECK(ops.back().kind == OpKind::exit);
    CHECK(seen.back().end == ops.back().begin - MarkedJob::kLate);
    // The third sleep lies outside and stays what it was.
    CHECK(log.of_kind(OpKind::wait).size() == 1);
}
