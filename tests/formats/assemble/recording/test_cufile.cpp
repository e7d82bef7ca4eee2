// SPDX-License-Identifier: MIT
// Calls of libcufile: which of them passed no system call, and what becomes of those.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>

#include <utility>

#include "formats/oplog/open_flags.h"
#include "tests/formats/assemble/recording/raw_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kFile = 0xf1, kInode = 7, kHandle = 0x5000, kBatch = 0x6000, kBytes = 65536;
constexpr int kFd = 3;

/// A job that registers one file, and calls libcufile.
struct CufileJob : RawJob {
    explicit CufileJob(uint64_t flags = kOpenDirect, uint64_t bytes = 16 * kBytes) : bytes_of_file(bytes) {
        open("/d/a", kFd, kFile, kInode, bytes, flags);
        fd = fd_of(kFd, kFile, kInode, bytes);
        fd.flags = static_cast<uint32_t>(flags);
        raw_cufile record = made(RAW_CUFILE_REGISTERED);
        record.handle = kHandle;
        record.fd = fd;
        put(record);
    }
    raw_cufile made(raw_cufile_kind kind) {
        raw_cufile record{};
        record.kind = kind;
        record.fd.fd = -1;
        return record;
    }
    void put(raw_cufile record, uint64_t after = 10 * kUs) {
        record.head.pid = record.head.pid == 0 ? pid : record.head.pid;
        record.head.tid = record.head.tid == 0 ? tid : record.head.tid;
        record.head.time = record.head.time == 0 ? now += after : record.head.time;
        records().emplace_back(RAW_CUFILE, record);
    }
    uint64_t enter() {
        put(made(RAW_CUFILE_ENTER));
        return now;
    }
    void moved(uint64_t begun, int64_t offset, uint64_t size, int64_t result, bool writes = false,
               uint64_t handle = kHandle) {
        raw_cufile record = made(RAW_CUFILE_MOVED);
        record.enter = begun;
        record.handle = handle;
        record.offset = offset;
        record.size = size;
        record.result = result;
        record.how = writes ? RAW_CUFILE_WRITES : 0;
        record.fd = handle == kHandle ? fd : raw_fd{};
        put(record, 500 * kUs);
    }
    void asked(uint64_t request, int64_t offset, uint64_t size = kBytes) {
        raw_cufile record = made(RAW_CUFILE_ASKED);
        record.handle = kHandle;
        record.stream = kBatch;
        record.request = request;
        record.offset = offset;
        record.size = size;
        record.fd = fd;
        put(record, 1);
    }
    void over(raw_cufile_kind kind, uint64_t begun, uint64_t requests, int64_t least = 0, int64_t result = 0) {
        raw_cufile record = made(kind);
        record.enter = begun;
        record.stream = kBatch;
        record.size = requests;
        record.offset = least;
        record.result = result;
        put(record, 1);
    }
    void done(uint64_t request, int64_t result) {
        raw_cufile record = made(RAW_CUFILE_DONE);
        record.stream = kBatch;
        record.request = request;
        record.result = result;
        put(record, 1);
    }
    /// A system call of the library's, on another thread where `by` is one.
    void pread_inside(uint64_t offset, uint64_t size, uint32_t by = 100) {
        const uint32_t own = std::exchange(tid, by);
        pread(kFd, kFile, kInode, offset, size);
        tid = own;
    }
    uint64_t bytes_of_file;
    raw_fd fd{};
};

}  // namespace

TEST_CASE("libcufile: a read that no system call shows is one itself, from begin to end") {
    CufileJob job;
    const uint64_t begun = job.enter();
    job.off(begun + 20 * kUs, begun + 300 * kUs, begun + 310 * kUs, 0xffff);  // in the driver
    job.call_at(begun + 320 * kUs, begun + 330 * kUs, SYS_futex, {0x8000, 0, 0}, 0);
    job.now = begun;
    job.moved(begun, kBytes, kBytes, kBytes);
    const AssembledLog log = job.assemble();
    const auto reads = log.of_kind(OpKind::pread);
    REQUIRE(reads.size() == 1);
    CHECK(reads[0].offset == kBytes);
    CHECK(reads[0].size == kBytes);
    CHECK(reads[0].result == kBytes);
    CHECK(reads[0].duration == 500 * kUs);
    CHECK(log.path_of(log.of_kind(OpKind::open)[0]) == "/d/a");
    CHECK(reads[0].handle == log.of_kind(OpKind::open)[0].handle);
    CHECK(log.of_kind(OpKind::wait).empty());
    CHECK(log.of_kind(OpKind::idle).empty());
    CHECK(log.counter("cufile_past_calls") == 1);
    CHECK(log.counter("cufile_by_calls") == 0);
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("libcufile: what it does by system calls counts once, from whichever thread") {
    for (const uint32_t by : {100u, 101u}) {
        CAPTURE(by);
        CufileJob job;
        const uint64_t begun = job.enter();
        job.pread_inside(0, kBytes / 2, by);
        job.pread_inside(kBytes / 2, kBytes / 2, by);
        job.moved(begun, 0, kBytes, kBytes);
        const AssembledLog log = job.assemble();
        const auto reads = log.of_kind(OpKind::pread);
        REQUIRE(reads.size() == 2);
        CHECK(reads[0].size == kBytes / 2);
        CHECK(log.counter("cufile_by_calls") == 1);
        CHECK(log.counter("cufile_past_calls") == 0);
    }
}

TEST_CASE("libcufile: only a system call of this range, at that time, the same way, is the library's") {
    struct Case {
        const char* what;
        uint64_t offset, size;
        bool before, writes;
    };
    for (const Case& one :
         {Case{"another range", 4 * kBytes, kBytes, false, false}, Case{"before", 0, kBytes, true, false},
          Case{"a write", 0, kBytes, false, true}, Case{"an end of it", 0, 4096, false, false}}) {
        CAPTURE(std::string(one.what));
        CufileJob job;
        if (one.before) {
            job.pread_inside(one.offset, one.size, 101);
        }
        const uint64_t begun = job.enter();
        if (!one.before) {
            job.pread_inside(one.offset, one.size, 101);
        }
        job.moved(begun, 0, kBytes, kBytes, one.writes);
        const AssembledLog log = job.assemble();
        CHECK(log.counter("cufile_past_calls") == 1);
        CHECK(log.of_kind(OpKind::pread).size() == (one.writes ? 1 : 2));
        CHECK(log.of_kind(OpKind::pwrite).size() == (one.writes ? 1 : 0));
    }
}

TEST_CASE("libcufile: a batch is submitted and reaped") {
    CufileJob job;
    uint64_t begun = job.enter();
    job.now += 50 * kUs;
    for (uint64_t i = 0; i < 16; ++i) {
        job.asked(i, static_cast<int64_t>(i * kBytes));
    }
    job.over(RAW_CUFILE_SUBMITTED, begun, 16);
    for (uint64_t i = 0; i < 16; i += 8) {
        begun = job.enter();
        job.now += 400 * kUs;
        for (uint64_t k = 0; k < 8; ++k) {
            job.done(15 - i - k, kBytes);
        }
        job.over(RAW_CUFILE_TAKEN, begun, 8, 4);
    }
    const AssembledLog log = job.assemble();
    const auto asked = log.of_kind(OpKind::aio_submit), done = log.of_kind(OpKind::aio_complete),
               reaps = log.of_kind(OpKind::aio_reap);
    REQUIRE(asked.size() == 16);
    REQUIRE(done.size() == 16);
    REQUIRE(reaps.size() == 2);
    for (size_t i = 0; i < 16; ++i) {
        CHECK(asked[i].offset == static_cast<int64_t>(i * kBytes));
        CHECK(asked[i].size == kBytes);
        CHECK(asked[i].arg == IOCB_CMD_PREAD);
        CHECK(done[i].request == asked[15 - i].request);
        CHECK(done[i].result == kBytes);
    }
    CHECK(reaps[0].result == 8);
    CHECK(reaps[0].arg == 4);
    CHECK(reaps[0].duration > 400 * kUs);
    CHECK(log.counter("cufile_past_calls") == 16);
    CHECK(log.counter("cufile_unfinished") == 0);
}

TEST_CASE("libcufile: of a batch, each request is decided by itself") {
    CufileJob job;
    uint64_t begun = job.enter();
    for (uint64_t i = 0; i < 4; ++i) {
        job.asked(i, static_cast<int64_t>(i * kBytes));
    }
    job.over(RAW_CUFILE_SUBMITTED, begun, 4);
    job.pread_inside(kBytes, kBytes, 101);
    job.pread_inside(3 * kBytes, kBytes, 102);
    begun = job.enter();
    for (uint64_t i = 0; i < 4; ++i) {
        job.done(i, i == 2 ? -1 : static_cast<int64_t>(kBytes));
    }
    job.over(RAW_CUFILE_TAKEN, begun, 4, 4);
    const AssembledLog log = job.assemble();
    CHECK(log.of_kind(OpKind::aio_submit).size() == 1);
    CHECK(log.of_kind(OpKind::aio_complete).size() == 1);
    CHECK(log.of_kind(OpKind::pread).size() == 2);
    CHECK(log.counter("cufile_past_calls") == 1);
    CHECK(log.counter("cufile_by_calls") == 2);
    CHECK(log.counter("cufile_failed") == 1);
}

TEST_CASE("libcufile: requests of the same name, and those that never end") {
    CufileJob job;
    const uint64_t begun = job.enter();
    job.asked(0, 0);
    job.asked(0, kBytes);
    job.asked(5, 2 * kBytes);
    job.over(RAW_CUFILE_SUBMITTED, begun, 3);
    const uint64_t again = job.enter();
    job.done(0, kBytes);
    job.done(0, kBytes);
    job.done(77, kBytes);  // of a submission that was not seen
    job.over(RAW_CUFILE_TAKEN, again, 3, 3);
    const AssembledLog log = job.assemble();
    const auto asked = log.of_kind(OpKind::aio_submit), done = log.of_kind(OpKind::aio_complete);
    REQUIRE(asked.size() == 3);
    REQUIRE(done.size() == 2);
    CHECK(done[0].request == asked[0].request);
    CHECK(done[1].request == asked[1].request);
    CHECK(log.counter("cufile_unfinished") == 1);
    CHECK(log.counter("completions_unmatched") == 1);
}

TEST_CASE("libcufile: files without O_DIRECT are opened with it, and ends of blocks are widened") {
    CufileJob job(O_RDWR, 10'000);
    job.moved(job.enter(), 4096, 4096, 4096);
    job.moved(job.enter(), 5000, 100, 100);
    job.moved(job.enter(), 0, 10'000, 10'000);
    job.moved(job.enter(), 9000, 5000, 1000);
    job.moved(job.enter(), 100, 50, 50, true);  // as the library makes it: through the page cache
    raw_cufile record = job.made(RAW_CUFILE_DEREGISTERED);
    record.handle = kHandle;
    job.put(record);
    const AssembledLog log = job.assemble();
    const auto opens = log.of_kind(OpKind::open), reads = log.of_kind(OpKind::pread),
               writes = log.of_kind(OpKind::pwrite), closes = log.of_kind(OpKind::close);
    REQUIRE(opens.size() == 2);
    CHECK(opens[1].flags == (O_RDWR | kOpenDirect));
    CHECK(log.path_of(opens[1]) == "/d/a");
    REQUIRE(reads.size() == 4);
    const int64_t wanted[4][3] = {{4096, 4096, 4096}, {4096, 4096, 4096}, {0, 12288, 10'000}, {8192, 8192, 1808}};
    for (size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        CHECK(reads[i].handle == opens[1].handle);
        CHECK(reads[i].offset == wanted[i][0]);
        CHECK(reads[i].size == wanted[i][1]);
        CHECK(reads[i].result == wanted[i][2]);
    }
    REQUIRE(writes.size() == 1);
    CHECK(writes[0].handle == opens[0].handle);
    REQUIRE(closes.size() == 1);
    CHECK(closes[0].handle == opens[1].handle);
    CHECK(log.counter("cufile_widened") == 3);
    CHECK(log.tables().losses() == 0);
}

TEST_CASE("libcufile: files that were registered unseen, and a library that could not be probed") {
    CufileJob job;
    job.moved(job.enter(), 0, kBytes, kBytes, false, 0x9999);
    CHECK(job.assemble().counter("cufile_files_unknown") == 1);

    struct Case {
        const char* what;
        uint64_t since, driver;
        uint64_t unseen, unprobed;
    };
    const uint64_t opened = RawJob::kStart + 1000 * kUs;
    for (const Case& one :
         {Case{"from the start", opened - 1, opened + kUs, 0, 0}, Case{"soon", opened + kUs, opened + 2 * kUs, 0, 0},
          Case{"late", opened + 2 * kUs, opened + kUs, 1, 0}, Case{"late, no driver", opened + 2 * kUs, 0, 0, 0},
          Case{"never", 0, opened + kUs, 1, 0}, Case{"never, no driver", 0, 0, 0, 1}}) {
        CAPTURE(std::string(one.what));
        CufileJob late;
        raw_cufile record = late.made(RAW_CUFILE_OPENED);
        record.enter = one.since;
        record.head.time = opened;
        late.put(record);
        if (one.driver != 0) {
            raw_cufile driver = late.made(RAW_CUFILE_DRIVER);
            driver.head.time = one.driver;
            late.put(driver);
        }
        const AssembledLog log = late.assemble();
        CHECK(log.counter("cufile_unseen") == one.unseen);
        CHECK(log.counter("cufile_unprobed") == one.unprobed);
        CHECK(log.tables().losses() == one.unseen);
    }
}

TEST_CASE("libcufile: records that make no sense do no harm") {
    constexpr int64_t kOdd[] = {0, 1, -1, 4095, INT64_MAX, INT64_MIN, INT64_MAX - 4096};
    for (uint16_t kind = 0; kind < 14; ++kind) {
        for (const int64_t odd : kOdd) {
            CAPTURE(kind);
            CAPTURE(odd);
            CufileJob job;
            for (int again = 0; again < 3; ++again) {
                raw_cufile record = job.made(static_cast<raw_cufile_kind>(kind));
                record.enter = static_cast<uint64_t>(odd);
                record.handle = again == 0 ? static_cast<uint64_t>(odd) : kHandle;
                record.stream = kBatch;
                record.offset = odd;
                record.size = static_cast<uint64_t>(odd);
                record.result = odd;
                record.how = static_cast<uint16_t>(odd);
                record.fd = job.fd;
                job.put(record);
            }
            const uint64_t begun = job.enter();
            job.asked(0, odd, static_cast<uint64_t>(odd));
            job.over(RAW_CUFILE_SUBMITTED, begun, 1);
            job.moved(job.enter(), 0, kBytes, kBytes);
            const AssembledLog log = job.assemble();
            // Of one that is no longer registered it is not known which file it is.
            CHECK(log.of_kind(OpKind::pread).empty() == (kind == RAW_CUFILE_DEREGISTERED));
        }
    }
}

TEST_CASE("libcufile: a record that is cut ends the log there, and says so") {
    CufileJob job;
    job.moved(job.enter(), 0, kBytes, kBytes);
    raw_head head{};
    head.pid = head.tid = 100;
    head.time = job.now + kUs;
    job.records().emplace_back(uint8_t{RAW_CUFILE}, head);  // nothing but a head
    CHECK(job.assemble().counter("capture_cut") == 1);
}
