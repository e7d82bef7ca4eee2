// SPDX-License-Identifier: MIT
// Raw recordings to op logs: faults on neighbouring pages that are one record.
#include <doctest/doctest.h>

#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("faults on neighbouring pages are one touch, and the time between them is computing") {
    RawJob job;
    job.open("/dev/shm/t", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 20, 3, 1, 3, 8192}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    const uint64_t from = job.now;
    job.now = from + 10 * kMs;
    job.touches(from + 100 * kUs, from + 500 * kUs, 50 * kUs, 0x703000, 8);
    // The last pages of the mapping, and two behind it.
    job.touches(from + 2000 * kUs, from + 2010 * kUs, 10 * kUs, 0x7fe000, 4);
    job.call_at(from + 10 * kMs, from + 10 * kMs + kUs, SYS_munmap, {0x700000, 1 << 20}, 0);
    const AssembledLog log = job.assemble();
    std::vector<Op> touches = log.of_kind(OpKind::touch);
    REQUIRE(touches.size() == 2);
    CHECK(touches[0].begin == log.of_kind(OpKind::mmap)[0].end() + static_cast<int64_t>(100 * kUs));
    CHECK(touches[0].offset == 3 * 4096);
    CHECK(touches[0].size == 8 * 4096);
    CHECK(touches[0].duration == 50 * kUs);
    CHECK(touches[0].flags == 1);
    CHECK(touches[1].offset == 254 * 4096);
    CHECK(touches[1].size == 2 * 4096);
    CHECK(log.counter("faults_outside_mappings") == 2);
    const std::vector<Op> computes = log.of_kind(OpKind::compute);
    REQUIRE(computes.size() == 4);              // after the open too
    CHECK(computes[2].duration == 1850 * kUs);  // 350 between the faults, 1500 after them
    CHECK(computes[3].duration == 7990 * kUs);
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("a write that mapped a whole folio is one to all of its pages") {
    RawJob job;
    job.open("/data/t", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 20, 3, 1, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    const uint64_t from = job.now;
    job.now = from + 10 * kMs;
    const auto writes = [&](uint64_t after, uint64_t address, uint64_t folio, uint32_t pages) {
        if (address != 0) {
            job.fault(from + after, from + after + kUs, address, RAW_FAULT_WRITES);
        }
        job.touches(from + after, from + after + 3 * kUs, 3 * kUs, folio, pages, RAW_FAULT_WRITES | RAW_FAULT_FOLIO)
            .head()
            .time = from + after + 3 * kUs;
    };
    writes(100 * kUs, 0x705123, 0x704000, 4);
    writes(110 * kUs, 0x708000, 0x708000, 8);
    // Of a fault that nobody told of: nothing.
    writes(500 * kUs, 0, 0x720000, 4);
    // Outside mappings it counts as the one fault that it is.
    writes(900 * kUs, 0xa00000, 0xa00000, 16);
    job.call_at(from + 10 * kMs, from + 10 * kMs + kUs, SYS_munmap, {0x700000, 1 << 20}, 0);
    const AssembledLog log = job.assemble();
    const std::vector<Op> touches = log.of_kind(OpKind::touch);
    REQUIRE(touches.size() == 1);
    CHECK(touches[0].offset == 0x4000);
    CHECK(touches[0].size == 0xc000);
    CHECK(touches[0].flags == 1);
    CHECK(touches[0].duration == 6 * kUs);
    CHECK(log.counter("faults_outside_mappings") == 1);
    CHECK(log.counter("pages_written_along") == 3 + 7);
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("a touch belongs to what was mapped when it happened, whatever other threads have done since") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.open("/d/b", 4, 0xf2, 8, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    job.spawn(100, 101, 0x10f00);
    job.as(100, 101);
    const uint64_t touched = job.now + 100 * kUs;
    job.fault(touched, touched + kUs, 0x704000);
    job.as(100, 100);
    job.now = touched + 100 * kUs;
    job.call(SYS_munmap, {0x704000, 0x4000}, 0);  // that part, and another file in its place
    job.call(SYS_mmap, {0x704000, 0x4000, 1, 0x12, 4, 0}, 0x704000).fd(4, RawJob::fd_of(4, 0xf2, 8, 1 << 20));
    job.as(100, 101);
    job.now += 10 * kMs;
    job.fault(job.now, job.now + kUs, 0x704000);
    job.fault(job.now + 2 * kUs, job.now + 3 * kUs, 0x709000);
    job.now += 10 * kMs;
    job.call(SYS_close, {9}, 0).fd(0, RawJob::fd_of(9, 0xf9, 9));
    const AssembledLog log = job.assemble();
    const std::vector<Op> touches = log.of_kind(OpKind::touch);
    REQUIRE(touches.size() == 3);
    CHECK(touches[0].map == 1);
    CHECK(touches[0].offset == 0x4000);
    CHECK(touches[1].map == 2);
    CHECK(touches[1].offset == 0);
    CHECK(touches[2].map == 1);  // what is left of it, behind the hole
    CHECK(touches[2].offset == 0x9000);
    CHECK(log.counter("faults_outside_mappings") == 0);
}

TEST_CASE("faults of one record on two mappings are two touches, also where the pages' offsets go on") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 0x4000, 1, 2, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    job.call(SYS_mmap, {0x700000, 0x2000, 1, 0x12, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    const uint64_t from = job.now;
    job.now = from + kMs;
    job.touches(from + 100 * kUs, from + 200 * kUs, 40 * kUs, 0x700000, 4);
    job.call_at(from + kMs, from + kMs + kUs, SYS_munmap, {0x700000, 0x4000}, 0);
    const AssembledLog log = job.assemble();
    const std::vector<Op> touches = log.of_kind(OpKind::touch);
    REQUIRE(touches.size() == 2);
    CHECK(touches[0].map == 2);
    CHECK(touches[0].offset == 0);
    CHECK(touches[0].size == 0x2000);
    CHECK(touches[1].map == 1);
    CHECK(touches[1].offset == 0x2000);
    CHECK(touches[1].size == 0x2000);
    CHECK(touches[0].duration + touches[1].duration == 40 * kUs);
}

TEST_CASE("reading the page belongs to the touch, sleeping elsewhere does not") {
    // `twice`: it is recorded when pages around it are mapped, too.
    const auto wait_ns = [](uint16_t nr, uint16_t state, uint64_t later, bool for_io = false, bool major = false,
                            bool twice = false) {
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7, 1 << 20);
        job.call(SYS_mmap, {0, 1 << 20, 1, 2, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
        const uint64_t from = job.now;
        job.fault(from + 100 * kUs, from + 102 * kUs, 0x701000, 0, major && !twice);
        if (twice) {
            job.fault(from + 100 * kUs, from + 102 * kUs, 0x701000, 0, major);
        }
        const uint64_t off = from + 102 * kUs + later;
        job.off(off, off + 480 * kUs, off + 490 * kUs, nr, state, for_io);
        job.call_at(from + kMs, from + kMs + kUs, SYS_munmap, {0x700000, 1 << 20}, 0);
        const AssembledLog log = job.assemble();
        int64_t waited = 0;
        for (const OpKind kind : {OpKind::wait, OpKind::idle}) {
            for (const Op& op : log.of_kind(kind)) {
                waited += op.duration;
            }
        }
        return std::pair(log.of_kind(OpKind::touch).at(0).duration, waited);
    };
    constexpr uint16_t kNone = 0xffff;
    using Times = std::pair<int64_t, int64_t>;
    CHECK(wait_ns(kNone, RAW_OFF_UNINTERRUPTIBLE, 10 * kUs) == Times(502 * kUs, 0));
    CHECK(wait_ns(kNone, RAW_OFF_UNINTERRUPTIBLE, 150 * kUs) == Times(2 * kUs, 480 * kUs));
    // Read-ahead of megabytes is asked for before the wait.
    CHECK(wait_ns(kNone, RAW_OFF_UNINTERRUPTIBLE, 360 * kUs, true, true) == Times(852 * kUs, 0));
    CHECK(wait_ns(kNone, RAW_OFF_UNINTERRUPTIBLE, 360 * kUs, true, true, true) == Times(852 * kUs, 0));
    CHECK(wait_ns(kNone, RAW_OFF_UNINTERRUPTIBLE, 360 * kUs, false, true) == Times(2 * kUs, 480 * kUs));
    CHECK(wait_ns(kNone, RAW_OFF_UNINTERRUPTIBLE, 360 * kUs, true, false) == Times(2 * kUs, 480 * kUs));
    CHECK(wait_ns(kNone, RAW_OFF_SLEEPING, 10 * kUs) == Times(2 * kUs, 480 * kUs));
    CHECK(wait_ns(SYS_ioctl, RAW_OFF_UNINTERRUPTIBLE, 10 * kUs) == Times(2 * kUs, 480 * kUs));
}

TEST_CASE("a page that a call asked for is a touch before the call, where a mapping of the process holds it") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7, 1 << 20);
    job.call(SYS_mmap, {0, 1 << 19, 3, 1, 3, 8192}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
    job.open("/d/b", 4, 0xf2, 8, 1 << 20);
    const uint64_t enter = job.now + 10 * kUs;
    const auto asked = [&](uint64_t at, uint64_t inode, uint64_t offset) {
        raw_fault record{};
        record.head.time = at;
        record.enter = at;
        record.inode = inode;
        record.device = RawJob::fd_of(3, 0xf1, 7).device;
        record.offset = offset;
        job.add(RawBytes(RAW_FAULT, record));
    };
    asked(enter + 1 * kUs, 7, 8192 + 3 * 4096);
    asked(enter + 2 * kUs, 7, 8192 + (1 << 19));  // behind the mapping
    asked(enter + 3 * kUs, 7, 4096);              // before it
    asked(enter + 4 * kUs, 9, 8192);              // another file
    job.call_at(enter, enter + 50 * kUs, SYS_pwrite64, {4, 0x703000, 4096, 0}, 4096).fd(0, RawJob::fd_of(4, 0xf2, 8));
    const AssembledLog log = job.assemble();
    const std::vector<Op> touches = log.of_kind(OpKind::touch);
    REQUIRE(touches.size() == 1);
    CHECK(touches[0].offset == 3 * 4096);
    CHECK(touches[0].size == 4096);
    CHECK(touches[0].flags == 0);
    CHECK(touches[0].end() <= log.of_kind(OpKind::pwrite).at(0).begin);
    CHECK(log.counter("pages_of_calls_unplaced") == 3);
}

TEST_CASE("a direct read into a mapped file writes to its pages, any other read does not") {
    constexpr uint32_t kDirect = 040000 | 2;
    for (const uint32_t flags : {kDirect, 2U}) {
        CAPTURE(flags);
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7, 1 << 20);
        job.call(SYS_mmap, {0, 1 << 20, 3, 1, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
        job.open("/d/b", 4, 0xf2, 8, 1 << 20);
        raw_fd direct = RawJob::fd_of(4, 0xf2, 8);
        direct.flags = flags;
        job.call(SYS_pread64, {4, 0x704200, 8192, 0}, 8192).fd(0, direct);
        job.call(SYS_pread64, {4, 0x100000, 8192, 0}, 8192).fd(0, direct);  // its own memory
        job.call(SYS_pread64, {4, 0x706000, 8192, 1 << 20}, 0).fd(0, direct);
        const AssembledLog log = job.assemble();
        const std::vector<Op> touches = log.of_kind(OpKind::touch);
        REQUIRE(touches.size() == (flags == kDirect ? 1 : 0));
        if (!touches.empty()) {
            CHECK(touches[0].offset == 0x4000);
            CHECK(touches[0].size == 3 * 4096);
            CHECK(touches[0].flags == 1);
        }
        CHECK(log.counter("faults_outside_mappings") == 0);
    }
}

TEST_CASE("of tmpfs a page that a writable mapping has read may be written to without a fault") {
    constexpr uint64_t kShared = 1, kPrivate = 2, kRead = 1, kReadWrite = 3;
    const auto unseen = [](std::string_view path, uint64_t protection, uint64_t flags, uint16_t how, bool many) {
        RawJob job;
        job.open(path, 3, 0xf1, 7, 1 << 20);
        job.call(SYS_mmap, {0, 1 << 20, protection, flags, 3, 0}, 0x700000).fd(4, RawJob::fd_of(3, 0xf1, 7, 1 << 20));
        for (int i = 0; i < 2; ++i) {  // counted once
            const uint64_t at = job.now += 10 * kMs;
            if (many) {
                job.touches(at - kMs, at - kMs + 50 * kUs, 50 * kUs, 0x703000, 8, how);
            } else {
                job.fault(at - kMs, at - kMs + kUs, 0x703000, how);
            }
        }
        job.pread(3, 0xf1, 7, 0, 10);
        return job.assemble().counter("mapped_writes_unseen");
    };
    for (const bool many : {false, true}) {
        CHECK(unseen("/tmp/a", kReadWrite, kShared, RAW_FAULT_MEMORY, many) == 1);
        CHECK(unseen("/tmp/a", kReadWrite, kShared, 0, many) == 0);  // another file system tells of the write
        CHECK(unseen("/tmp/a", kReadWrite, kShared, RAW_FAULT_MEMORY | RAW_FAULT_WRITES, many) == 0);
        CHECK(unseen("/tmp/a", kRead, kShared, RAW_FAULT_MEMORY, many) == 0);
        CHECK(unseen("/tmp/a", kReadWrite, kPrivate, RAW_FAULT_MEMORY, many) == 0);
        CHECK(unseen("/dev/shm/a", kReadWrite, kShared, RAW_FAULT_MEMORY, many) == 0);  // memory in a replay, too
    }
}
