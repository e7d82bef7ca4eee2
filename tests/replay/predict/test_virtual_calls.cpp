// SPDX-License-Identifier: MIT
// How long each call takes in a prediction.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "tests/replay/predict/virtual_calls_fixture.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE_FIXTURE(Calls, "reads: from the storage once, then from the cache; a failed one is a call") {
    const auto read = [&](OpKind kind, int64_t offset, int64_t size, int64_t result, int64_t takes) {
        add({.kind = kind, .result = result, .handle = in, .fd = 3, .offset = offset, .size = size}, takes);
    };
    read(OpKind::pread, 0, 4'096, 4'096, kRead + cached(4'096));
    read(OpKind::pread, 0, 4'096, 4'096, cached(4'096));
    read(OpKind::read, 0, 4'096, 100, cached(100));
    read(OpKind::readv, 0, 4'096, 0, cached(0));
    read(OpKind::preadv, 1 << 20, 4'096, -EIO, kCall);
    read(OpKind::preadv, 1 << 20, 4'096, 50, kRead + cached(50));
    const VirtualCalls& calls = check();
    CHECK(calls.bytes_read == 4'096 + 4'096 + 100 + 50);
    CHECK(calls.bytes_written == 0);
    CHECK(calls.storage().reads == 2);
}

TEST_CASE_FIXTURE(Calls, "writes and copies: into the cache, and a sync waits for what was written") {
    storage.write_bytes_per_s = 1e3;  // a second a thousand bytes
    const auto write = [&](OpKind kind, int64_t result) {
        add({.kind = kind, .result = result, .handle = out, .fd = 4, .size = 300}, result < 0 ? kCall : cached(result));
    };
    const auto copy = [&](OpKind kind, int64_t result, int64_t takes) {
        add({.kind = kind,
             .result = result,
             .handle = in,
             .fd = 3,
             .handle2 = out,
             .fd2 = 4,
             .offset2 = 0,
             .size = 500},
            takes);
    };
    const auto sync = [&](OpKind kind, int64_t result, int64_t takes) {
        add({.kind = kind, .result = result, .handle = out, .fd = 4}, takes);
    };
    constexpr int64_t kSecond = 1'000'000'000;
    sync(OpKind::fsync, 0, kSync);
    write(OpKind::pwrite, 300);  // at 2 s
    sync(OpKind::fdatasync, -EIO, kCall);
    write(OpKind::writev, -ENOSPC);
    write(OpKind::write, 0);
    write(OpKind::pwritev, 4'000);
    // At 7 s: a page of writing, as nothing is written before that, and it is written once.
    sync(OpKind::fsync, 0, 4'096 * kSecond / 1'000 + kSync);
    copy(OpKind::sendfile, 500, kRead + cached(500));
    copy(OpKind::copy_file_range, -EXDEV, kCall);
    sync(OpKind::syncfs, 0, 1'596 * kSecond / 1'000 + kSync);  // at 10 s: after those 4.1
    copy(OpKind::splice, 200, cached(200));
    const VirtualCalls& calls = check();
    CHECK(calls.bytes_written == 300 + 4'000 + 500 + 200);
    CHECK(calls.bytes_read == 500 + 200);
}

TEST_CASE_FIXTURE(Calls, "a sync of a range, of a mapping, and of what was removed or truncated meanwhile") {
    storage.write_bytes_per_s = 1e6;  // a microsecond a byte
    const auto write = [&] {
        add({.kind = OpKind::pwrite, .result = 300, .handle = out, .fd = 4, .size = 300}, cached(300));
    };
    const auto range = [&](int64_t flags, int64_t takes) {
        add({.kind = OpKind::sync_file_range, .handle = out, .fd = 4, .size = 300, .flags = flags}, takes);
    };
    write();
    range(SYNC_FILE_RANGE_WRITE, kCall);
    range(SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER, kCall);  // a second later
    write();
    range(SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER, kCall + 300'000);
    map(1, out, 0);
    write();
    add({.kind = OpKind::msync, .size = 300, .flags = MS_ASYNC, .map = 1}, kCall);
    add({.kind = OpKind::msync, .size = 300, .flags = MS_SYNC, .map = 1}, 300'000 + kSync);
    write();
    add({.kind = OpKind::open, .result = 5, .handle = job.handle(other, O_WRONLY), .file = other, .flags = O_TRUNC},
        kOpen);
    add({.kind = OpKind::fsync, .handle = out, .fd = 4}, kSync);
    write();
    add({.kind = OpKind::unlink, .file = other}, kRemove);
    add({.kind = OpKind::fsync, .handle = out, .fd = 4}, kSync);
    check();
}

TEST_CASE_FIXTURE(Calls, "what was written to a mapping is sent by a sync") {
    storage.write_bytes_per_s = 1e6;  // a microsecond a byte
    constexpr int64_t kPage = 4096;
    const auto touch = [&](int64_t offset, int64_t size, int64_t flags, int64_t takes) {
        add({.kind = OpKind::touch, .offset = offset, .size = size, .flags = flags, .map = 1}, takes);
    };
    const auto sync = [&](int64_t takes) {
        add({.kind = OpKind::msync, .size = 3 * kPage, .flags = MS_SYNC, .map = 1}, takes);
    };
    const auto map_writable = [&] {
        add({.kind = OpKind::mmap,
             .handle = in,
             .fd = 3,
             .size = 3 * kPage,
             .flags = MAP_SHARED,
             .mode = PROT_READ | PROT_WRITE,
             .map = 1},
            kRecorded);
    };
    SUBCASE("cold: a page that is not there is read before") {
        map_writable();
        touch(0, kPage, 0, kRead + 20'000);  // more than any fault that asks for pages
        touch(0, kPage, 1, kFault);
        sync(kPage * 1'000 + kSync);
        sync(kSync);  // nothing is left
        check();
    }
    SUBCASE("warm") {
        map_writable();
        touch(0, 2 * kPage, 1, kRecorded);
        touch(2 * kPage, kPage, 0, kRecorded);
        sync(2 * kPage * 1'000 + kSync);
        check(true);
    }
}

TEST_CASE_FIXTURE(Calls, "a sync writes what the journal has of names and sizes") {
    storage.writes_per_s = 1e3;  // a millisecond each
    constexpr int64_t kWrite = 1'000'000;
    int64_t frame = 0, size = 0, per_two_names = 0;
    SUBCASE("ext4: blocks") {
        storage.file_system = "ext4";
        frame = 2 * kWrite, size = kWrite, per_two_names = 3 * kWrite;
    }
    int64_t unknown = 0;
    SUBCASE("others: not known") {
        storage.file_system = "xfs";
        unknown = (2 * 2 + 1 + 3) * kWrite;
    }
    const auto write = [&](int64_t offset) {
        add({.kind = OpKind::pwrite, .result = 300, .handle = out, .fd = 4, .offset = offset, .size = 300},
            cached(300));
    };
    const auto sync = [&](int64_t journal) {
        add({.kind = OpKind::fsync, .handle = out, .fd = 4},
            std::max(kWrite, kSync) + journal);  // its own page is one of what a sync was measured with
    };
    sized(other, 4'096);
    write(0);
    sync(0);  // is as long as before
    write(4'096);
    sync(frame + size);
    write(4'096);
    sync(0);
    add({.kind = OpKind::unlink, .file = made}, kRemove);
    add({.kind = OpKind::mkdir, .file = made}, kMake);
    write(0);
    sync(frame + per_two_names);
    const VirtualCalls& calls = check();
    CHECK(calls.storage().journal_ns == 2 * frame + size + per_two_names);
    CHECK(calls.storage().unknown_journal_ns() == unknown);
}

TEST_CASE_FIXTURE(Calls, "a sync of a longer file, and after names that changed, takes what was measured of one") {
    constexpr int64_t kLonger = 50 * kSync;
    storage.file_system = "btrfs";
    storage.fsync_longer_ns = kLonger;
    const auto write = [&](int64_t offset, int64_t sync) {
        add({.kind = OpKind::pwrite, .result = 300, .handle = out, .fd = 4, .offset = offset, .size = 300},
            cached(300));
        add({.kind = OpKind::fsync, .handle = out, .fd = 4}, 300 + sync);
    };
    sized(other, 4'096);
    write(0, kSync);
    write(4'096, kLonger);
    write(4'096, kSync);
    add({.kind = OpKind::unlink, .file = made}, kRemove);
    write(0, kLonger);
    add({.kind = OpKind::syncfs, .handle = out, .fd = 4}, kSync);
    check();
}

TEST_CASE_FIXTURE(Calls, "the first look at a file finds its name") {
    storage.open_cold_ns = kOpen + 77;
    const auto open = [&](FileId of, int64_t result, int64_t takes) {
        add({.kind = OpKind::open, .result = result, .handle = result < 0 ? 0 : job.handle(of, O_RDONLY), .file = of},
            takes);
    };
    SUBCASE("cold") {
        open(file, -EACCES, kOpen);
        open(file, 5, kOpen + 77);
        open(file, 6, kOpen);
        add({.kind = OpKind::stat, .file = other}, kStat + 77);
        open(other, 7, kOpen);
        open(made, 8, kOpen);  // by the recording
        check();
    }
    SUBCASE("warm") {
        open(file, 5, kOpen);
        check(true);
    }
}

TEST_CASE_FIXTURE(Calls, "writes and closes that were measured") {
    storage.write = {{1'000, 50}, {2'000, 70}};
    storage.close_ns = 33;
    const auto write = [&](int64_t bytes, int64_t takes) {
        add({.kind = OpKind::pwrite, .result = bytes, .handle = out, .fd = 4, .size = bytes}, takes);
    };
    write(0, kCall);
    write(10, 50);
    write(1'500, 60);
    write(3'000, 90);
    add({.kind = OpKind::close, .handle = out, .fd = 4}, 33);
    check();
}

TEST_CASE_FIXTURE(Calls, "writes that begin within a page") {
    storage.write = {{4'096, 50}};
    storage.write_part_ns = 45;
    const auto write = [&](int64_t offset, int64_t bytes, int64_t takes) {
        add({.kind = OpKind::pwrite, .result = bytes, .handle = out, .fd = 4, .offset = offset, .size = bytes}, takes);
    };
    write(0, 10'240, 50);
    write(10'240, 10'240, 50 + 45);
    write(20'480, 10'240, 50);
    write(100, 3'996, 50);  // up to its end
    write(100, 3'997, 50 + 45);
    check();
}

TEST_CASE_FIXTURE(Calls, "attributes are asked for again after something was fetched") {
    storage.fstat_ns = 44;
    const auto ask = [&](int64_t takes) { add({.kind = OpKind::fstat, .handle = in, .fd = 3}, takes); };
    ask(kRecorded);
    add({.kind = OpKind::pread, .result = 4'096, .handle = in, .fd = 3, .size = 4'096}, kRead + cached(4'096));
    ask(44);
    ask(kRecorded);
    add({.kind = OpKind::pread, .result = 4'096, .handle = in, .fd = 3, .size = 4'096}, cached(4'096));
    ask(kRecorded);
    add({.kind = OpKind::pread, .result = 9, .handle = in, .fd = 3, .offset = 1 << 20, .size = 9}, kRead + cached(9));
    add({.kind = OpKind::stat, .file = file}, 44);
    check();
}

TEST_CASE_FIXTURE(Calls, "attributes that change") {
    const Op chmod{.kind = OpKind::chmod, .file = file}, by_handle{.kind = OpKind::utimens, .handle = in, .fd = 3};
    SUBCASE("in a model that knows them") {
        storage.change_ns = 55;
        storage.open_cold_ns = kOpen + 77;
        add(chmod, 55 + 77);
        add(chmod, 55);
        add(by_handle, 55);
        add({.kind = OpKind::chown, .result = -ENOENT, .file = other}, kStat);
        CHECK(check().unmodelled[static_cast<size_t>(Unmodelled::attributes)] == 0);
    }
    SUBCASE("in one that does not") {
        add(chmod, kRecorded);
        add(by_handle, kRecorded);
        CHECK(check().unmodelled[static_cast<size_t>(Unmodelled::attributes)] == 2);
    }
}

TEST_CASE_FIXTURE(Calls, "directories that are listed") {
    const HandleId there = job.handle(job.file("/data"), O_DIRECTORY);
    const HandleId own = job.handle(job.file("/out", Origin::created), O_DIRECTORY);
    const auto list = [&](HandleId handle, int64_t result, int64_t takes) {
        add({.kind = OpKind::getdents, .result = result, .handle = handle, .fd = 6, .size = 32'768}, takes);
    };
    SUBCASE("in a model that knows them: cached from the first time on") {
        storage.list_ns = 40;
        storage.list_name_ns = 3;
        storage.list_cold_ns = 900;
        list(there, 320, 940 + 10 * 3);
        list(there, 0, 40);
        list(there, 320, 40 + 10 * 3);
        list(own, 320, 40 + 10 * 3);
        CHECK(check().unmodelled[static_cast<size_t>(Unmodelled::listings)] == 0);
    }
    SUBCASE("in memory") {
        storage.list_ns = 40;
        storage.list_cold_ns = 900;
        list(there, 320, 40);
        check(true);
    }
    SUBCASE("in one that does not") {
        list(there, 320, kRecorded);
        CHECK(check().unmodelled[static_cast<size_t>(Unmodelled::listings)] == 1);
    }
}

TEST_CASE_FIXTURE(Calls, "a clone shares the blocks: it takes its recorded time and moves nothing") {
    add({.kind = OpKind::copy_file_range,
         .result = 500,
         .handle = in,
         .fd = 3,
         .handle2 = out,
         .fd2 = 4,
         .size = 500,
         .flags = kCopyClones},
        kRecorded);
    add({.kind = OpKind::fsync, .handle = out, .fd = 4}, kSync);
    CHECK(check().bytes_read == 0);
}

TEST_CASE_FIXTURE(Calls, "a clone where the file system shares no blocks is a copy") {
    const auto copy = [&](int64_t flags, int64_t bytes, int64_t takes) {
        add({.kind = OpKind::copy_file_range,
             .result = bytes,
             .handle = in,
             .fd = 3,
             .handle2 = out,
             .fd2 = 4,
             .size = bytes,
             .flags = flags},
            takes);
    };
    SUBCASE("ext4 has none") {
        storage.file_system = "ext4";
        copy(kCopyClones, 500, kRead + cached(500));
        copy(0, 4'096, cached(4'096));
        CHECK(check().bytes_read == 500 + 4'096);
    }
    SUBCASE("XFS has, by copy_file_range, too, of whole blocks") {
        storage.file_system = "xfs";
        copy(kCopyClones, 500, kRecorded);
        copy(0, 4'096, kCall);
        copy(0, 500, kRead + cached(500));
        CHECK(check().bytes_read == 500);
    }
}

TEST_CASE_FIXTURE(Calls, "nothing is asked for holes") {
    Holes holes;
    holes[file].add(4'096, int64_t{64} << 20);
    job.writer().keep(encode_holes(holes));
    const auto read = [&](int64_t offset, int64_t takes) {
        add({.kind = OpKind::pread, .result = 4'096, .handle = in, .fd = 3, .offset = offset, .size = 4'096}, takes);
    };
    read(1 << 20, cached(4'096));
    read(32 << 20, cached(4'096));
    read(0, kRead + cached(4'096));
    add({.kind = OpKind::fcntl, .handle = in, .fd = 3, .flags = O_DIRECT, .arg = F_SETFL}, kRecorded);
    read(40 << 20, kCall);
    CHECK(check().storage().bytes_read == 4'096);
}

TEST_CASE_FIXTURE(Calls, "what is cached by one name is cached by the next") {
    const HandleId renamed = job.handle(made, O_RDONLY);
    const auto read = [&](HandleId handle, int64_t takes) {
        add({.kind = OpKind::pread, .result = 4'096, .handle = handle, .fd = 3, .size = 4'096}, takes);
    };
    add({.kind = OpKind::pwrite, .result = 4'096, .handle = out, .fd = 4, .size = 4'096}, cached(4'096));
    SUBCASE("after a rename") {
        add({.kind = OpKind::rename, .file = other, .file2 = made}, kMake);
        read(renamed, cached(4'096));
        read(out, cached(4'096));
    }
    SUBCASE("after a link") {
        add({.kind = OpKind::link, .file = other, .file2 = made}, kMake);
        read(renamed, cached(4'096));
    }
    SUBCASE("not after a rename that failed") {
        add({.kind = OpKind::rename, .result = -EACCES, .file = other, .file2 = made}, kStat);
        read(renamed, kRead + cached(4'096));
    }
    check();
}

TEST_CASE_FIXTURE(Calls, "names: what is made, removed, opened and looked at, and what fails is looked at") {
    const auto name = [&](OpKind kind, FileId of, int64_t result, int64_t takes) {
        add({.kind = kind, .result = result, .file = of}, takes);
    };
    for (const OpKind kind : {OpKind::mkdir, OpKind::symlink}) {
        name(kind, made, 0, kMake);
        name(kind, made, -EEXIST, kStat);
    }
    for (const OpKind kind : {OpKind::unlink, OpKind::rmdir}) {
        name(kind, file, 0, kRemove);
        name(kind, file, -ENOENT, kStat);
    }
    for (const OpKind kind : {OpKind::rename, OpKind::link}) {
        add({.kind = kind, .file = file, .file2 = made}, kMake);
        add({.kind = kind, .result = -EXDEV, .file = file, .file2 = made}, kStat);
    }
    for (const OpKind kind : {OpKind::stat, OpKind::statx, OpKind::access, OpKind::readlink, OpKind::statfs}) {
        name(kind, file, 0, kStat);
        name(kind, file, -ENOENT, kStat);
    }
    const auto open = [&](FileId of, int64_t flags, int64_t result, int64_t takes) {
        add({.kind = OpKind::open, .result = result, .handle = in, .fd = -1, .file = of, .flags = flags}, takes);
    };
    open(file, O_RDONLY, 3, kOpen);
    open(file, O_RDWR | O_CREAT, 3, kOpen);
    open(made, O_RDWR | O_CREAT, 3, kMake);
    open(made, O_RDWR | O_CREAT | O_EXCL, -EEXIST, kOpen);
    open(made, O_RDWR, 3, kOpen);
    check();
}

TEST_CASE_FIXTURE(Calls, "calls that are not about storage take their recorded time, within reason") {
    add({.kind = OpKind::lseek, .handle = in, .fd = 3}, kRecorded);
    add({.kind = OpKind::fstat, .handle = in, .fd = 3}, kRecorded);
    add({.kind = OpKind::statx, .handle = in, .fd = 3}, kRecorded);
    add({.kind = OpKind::close, .handle = in, .fd = 3}, kRecorded);
    add({.kind = OpKind::madvise, .size = 4'096, .map = 7}, kRecorded);
    add({.kind = OpKind::ftruncate, .duration = int64_t{1} << 60, .handle = in, .fd = 3}, int64_t{1} << 50);
    check();
}

TEST_CASE_FIXTURE(Calls, "asynchronous requests take their time where they are submitted") {
    uint32_t number = 0;
    const auto ask = [&](OpKind kind, int64_t code, int64_t offset, int64_t size, int64_t takes) {
        add({.kind = kind,
             .result = 1,
             .handle = in,
             .fd = 3,
             .offset = offset,
             .size = size,
             .arg = code,
             .request = ++number},
            takes);
    };
    ask(OpKind::uring_submit, IORING_OP_READ, 0, 4'096, kRead + cached(4'096));
    ask(OpKind::uring_submit, IORING_OP_READ, 0, 4'096, cached(4'096));
    ask(OpKind::uring_submit, IORING_OP_READ, 0, -9, cached(0));
    ask(OpKind::aio_submit, IOCB_CMD_PREAD, 1 << 20, 100, kRead + cached(100));
    ask(OpKind::uring_submit, IORING_OP_WRITE, 0, 200, cached(200));
    ask(OpKind::aio_submit, IOCB_CMD_PWRITE, 0, 200, cached(200));
    ask(OpKind::uring_submit, IORING_OP_FSYNC, 0, 0, 400 + kSync);
    ask(OpKind::uring_submit, IORING_OP_SYNC_FILE_RANGE, 0, 10, 0);
    ask(OpKind::aio_submit, IOCB_CMD_FDSYNC, 0, 0, kSync);
    for (const int64_t code :
         {IORING_OP_NOP, IORING_OP_FALLOCATE, IORING_OP_FADVISE, IORING_OP_SPLICE, IORING_OP_OPENAT, IORING_OP_CLOSE,
          IORING_OP_STATX, IORING_OP_MKDIRAT, IORING_OP_UNLINKAT, IORING_OP_TIMEOUT}) {
        ask(OpKind::uring_submit, code, 0, 4'096, kCall);
    }
    add({.kind = OpKind::uring_enter, .result = 2, .size = 2, .arg = 2}, kCall);
    add({.kind = OpKind::uring_complete, .result = 4'096, .size = 4'096, .request = 1}, 0);
    add({.kind = OpKind::aio_complete, .result = 100, .size = 100, .request = 4}, 0);
    const VirtualCalls& calls = check();
    CHECK(calls.bytes_read == 4'096 + 4'096 + 100);
    CHECK(calls.bytes_written == 400);
}

TEST_CASE_FIXTURE(Calls, "O_DIRECT goes to the storage every time, also where all is cached") {
    const HandleId direct = job.handle(file, O_RDWR | O_DIRECT);
    const auto call = [&](OpKind kind, HandleId handle, int64_t takes) {
        add({.kind = kind, .result = 4'096, .handle = handle, .fd = 3, .offset = 0, .size = 4'096}, takes);
    };
    const auto set = [&](int64_t flags) {
        add({.kind = OpKind::fcntl, .handle = in, .fd = 3, .flags = flags, .arg = F_SETFL}, kRecorded);
    };
    const auto test = [&](bool warm) {
        call(OpKind::pread, direct, kCall + kRead);
        call(OpKind::read, direct, kCall + kRead);
        call(OpKind::pwrite, direct, kCall + kRead);
        add({.kind = OpKind::pread, .result = 0, .handle = direct, .fd = 3, .size = 4'096}, kCall);
        call(OpKind::pread, in, warm ? cached(4'096) : kRead + cached(4'096));  // it left nothing in the cache
        set(O_DIRECT);
        call(OpKind::pread, in, kCall + kRead);
        set(0);
        call(OpKind::pread, in, cached(4'096));
        add({.kind = OpKind::uring_submit,
             .result = 1,
             .handle = direct,
             .fd = 3,
             .size = 4'096,
             .arg = IORING_OP_READ,
             .request = 1},
            kCall + kRead);
        const VirtualCalls& calls = check(warm);
        CHECK(calls.storage().reads == (warm ? 4 : 5));
        CHECK(calls.bytes_written == 4'096);
    };
    SUBCASE("cold") { test(false); }
    SUBCASE("warm") { test(true); }
}

TEST_CASE_FIXTURE(Calls, "writes past the page cache take what such calls took, those of a ring what one took there") {
    constexpr int64_t kByRing = 90'000, kByCall = 50'000;
    storage.write_depth = {{4096, 1, kByRing, kByRing, 1e9 / kByRing, false},
                           {4096, 4, kByRing, kByRing, 4e9 / kByRing, false}};
    const HandleId direct = job.handle(file, O_RDWR | O_DIRECT);
    const auto test = [&](int64_t takes) {
        add({.kind = OpKind::pwrite, .result = 4'096, .handle = direct, .fd = 3, .offset = 0, .size = 4'096},
            kCall + takes);
        add({.kind = OpKind::uring_submit,
             .result = 1,
             .handle = direct,
             .fd = 3,
             .size = 4'096,
             .arg = IORING_OP_WRITE,
             .request = 1},
            kCall + kByRing);
        check();
    };
    SUBCASE("measured") {
        storage.direct_write = {{4096, kByCall}, {1 << 20, 10 * kByCall}};
        test(kByCall);
    }
    SUBCASE("by an older model") { test(kByRing); }
}

TEST_CASE_FIXTURE(Calls, "synchronous writes are followed by a sync") {
    storage.write_bytes_per_s = 1e6;  // a microsecond a byte
    const auto write = [&](OpKind kind, HandleId handle, int64_t flags, int64_t takes) {
        add({.kind = kind, .result = 100, .handle = handle, .fd = 4, .size = 100, .flags = flags}, takes);
    };
    constexpr int64_t kOut = 100'000;  // ns, of 100 bytes
    const int64_t synced = cached(100) + kOut + kSync;
    write(OpKind::pwrite, job.handle(file, O_WRONLY | O_SYNC), 0, synced);
    write(OpKind::write, job.handle(file, O_WRONLY | O_DSYNC), 0, synced);
    write(OpKind::pwritev, out, 2, synced);  // RWF_DSYNC
    write(OpKind::pwritev, out, 4, synced);  // RWF_SYNC
    write(OpKind::pwritev, out, 1, cached(100));
    write(OpKind::pwrite, out, 0, cached(100));
    write(OpKind::pwrite, job.handle(file, O_WRONLY | O_DSYNC | O_DIRECT), 0, kCall + kRead + kSync);
    add({.kind = OpKind::pwrite, .result = -EIO, .handle = job.handle(file, O_WRONLY | O_SYNC), .fd = 4, .size = 100},
        kCall);
    check();
}

TEST_CASE_FIXTURE(Calls, "copies from and into pipes and sockets: only the file's part") {
    const HandleId pipe = job.handle(0, O_RDWR, HandleKind::pipe);
    const auto copy = [&](OpKind kind, HandleId from, HandleId to, int64_t takes) {
        add({.kind = kind, .result = 500, .handle = from, .fd = 3, .handle2 = to, .fd2 = 4, .size = 500}, takes);
    };
    copy(OpKind::sendfile, in, pipe, kRead + cached(500));
    copy(OpKind::sendfile, in, pipe, cached(500));
    copy(OpKind::splice, pipe, out, cached(500));
    copy(OpKind::splice, 0, out, cached(500));
    copy(OpKind::copy_file_range, in, job.handle(other, O_RDWR | O_DIRECT), cached(500) + kCall + kRead);
    const VirtualCalls& calls = check();
    CHECK(calls.bytes_read == 1'500);
    CHECK(calls.bytes_written == 1'500);
}

TEST_CASE_FIXTURE(Calls, "a lock takes a call: what it waited for is an edge") {
    add({.kind = OpKind::flock, .handle = in, .fd = 3, .arg = 2}, kCall);
    check();
}

TEST_CASE_FIXTURE(Calls, "pages that the job drops are read again, unless they are dirty or mapped") {
    sized(file, 64 << 20);
    SUBCASE("with room for all") {}
    SUBCASE("under a limit") { policy = PageCachePolicy::two_lists; }
    const auto read = [&](int64_t takes, int64_t offset = 0) {
        add({.kind = OpKind::pread, .result = 4'096, .handle = in, .fd = 3, .offset = offset, .size = 4'096}, takes);
    };
    const auto drop = [&](int64_t offset, int64_t size) {
        add({.kind = OpKind::fadvise,
             .handle = in,
             .fd = 3,
             .offset = offset,
             .size = size,
             .arg = POSIX_FADV_DONTNEED},
            kRecorded);
    };
    constexpr int64_t kCold = kRead + cached(4'096), kWarm = cached(4'096);
    read(kCold);
    read(kCold, 8 << 20);
    drop(0, 100);  // no whole page
    read(kWarm);
    drop(0, 4'096);
    read(kWarm, 8 << 20);
    read(kCold);
    drop(0, 0);  // all
    read(kCold);
    read(kCold, 8 << 20);
    add({.kind = OpKind::pwrite, .result = 4'096, .handle = in, .fd = 3, .size = 4'096}, cached(4'096));
    drop(0, 0);
    read(kWarm);
    drop(0, 0);  // written by now
    read(kCold);
    map(1, in, 0);
    drop(0, 0);
    read(kWarm);
    const VirtualCalls& calls = check();
    CHECK(calls.unmodelled[static_cast<size_t>(Unmodelled::drops)] == 0);
}

TEST_CASE_FIXTURE(Calls, "what is not modelled is counted") {
    const auto op = [&](Op op, int64_t takes = kRecorded) { add(op, takes); };
    op({.kind = OpKind::readahead, .handle = in, .fd = 3, .size = 4'096});
    op({.kind = OpKind::fadvise, .handle = in, .fd = 3, .arg = POSIX_FADV_WILLNEED});
    op({.kind = OpKind::fadvise, .handle = in, .fd = 3, .arg = POSIX_FADV_NORMAL});
    op({.kind = OpKind::fadvise, .handle = in, .fd = 3, .arg = POSIX_FADV_DONTNEED});
    op({.kind = OpKind::fadvise, .result = -EINVAL, .handle = in, .fd = 3, .arg = POSIX_FADV_DONTNEED});
    op({.kind = OpKind::ftruncate, .handle = in, .fd = 3});
    op({.kind = OpKind::fallocate, .handle = in, .fd = 3});
    op({.kind = OpKind::getdents, .result = 100, .handle = in, .fd = 3});
    op({.kind = OpKind::chmod, .handle = in, .fd = 3});
    op({.kind = OpKind::mmap,
        .handle = in,
        .fd = 3,
        .size = 4'096,
        .flags = MAP_SHARED,
        .mode = PROT_READ | PROT_WRITE,
        .map = 1});
    op({.kind = OpKind::madvise, .size = 4'096, .arg = MADV_WILLNEED, .map = 1});
    op({.kind = OpKind::madvise, .size = 4'096, .arg = MADV_WILLNEED, .map = 2});  // memory
    op({.kind = OpKind::touch, .size = 4'096, .map = 1}, kFault);
    op({.kind = OpKind::touch, .size = 4'096, .flags = 1, .map = 1}, kFault);
    op({.kind = OpKind::uring_submit, .result = 1, .handle = in, .fd = 3, .arg = IORING_OP_SPLICE, .request = 1},
       kCall);
    op({.kind = OpKind::uring_submit, .result = 1, .handle = in, .fd = 3, .arg = IORING_OP_TIMEOUT, .request = 2},
       kCall);
    const VirtualCalls& calls = check();
    const auto count = [&](Unmodelled what) { return calls.unmodelled[static_cast<size_t>(what)]; };
    CHECK(count(Unmodelled::drops) == 0);
    CHECK(count(Unmodelled::sizes) == 2);
    CHECK(count(Unmodelled::listings) == 1);
    CHECK(count(Unmodelled::attributes) == 1);
    CHECK(count(Unmodelled::requests) == 1);
}

TEST_CASE_FIXTURE(Calls, "what is not performed: on sockets and pipes, and on files that are memory") {
    const FileId shared = job.file("/dev/shm/x", Origin::created, Role::ipc);
    const HandleId memory = job.handle(shared, O_RDWR), pipe = job.handle(0, O_RDWR, HandleKind::pipe);
    std::vector<bool> performed;
    const auto op = [&](Op op, bool performs) {
        job.add(t, op);
        performed.push_back(performs);
    };
    op({.kind = OpKind::pread, .result = 1, .handle = in, .fd = 3, .size = 1}, true);
    op({.kind = OpKind::pread, .result = 1, .handle = memory, .fd = 3, .size = 1}, false);
    op({.kind = OpKind::pread, .result = 1, .handle = pipe, .fd = 3, .size = 1}, false);
    op({.kind = OpKind::stat, .file = file}, true);
    op({.kind = OpKind::stat, .file = shared}, false);
    op({.kind = OpKind::sendfile, .result = 1, .handle = in, .fd = 3, .handle2 = out, .fd2 = 4, .size = 1}, true);
    op({.kind = OpKind::sendfile, .result = 1, .handle = in, .fd = 3, .handle2 = pipe, .fd2 = 4, .size = 1}, true);
    op({.kind = OpKind::splice, .result = 1, .handle = pipe, .fd = 3, .handle2 = out, .fd2 = 4, .size = 1}, true);
    op({.kind = OpKind::splice, .result = 1, .handle = pipe, .fd = 3, .handle2 = memory, .fd2 = 4, .size = 1}, false);
    op({.kind = OpKind::splice, .result = 1, .handle = pipe, .fd = 3, .handle2 = pipe, .fd2 = 4, .size = 1}, false);
    op({.kind = OpKind::mmap, .size = 4'096, .flags = MAP_ANONYMOUS, .map = 1}, true);
    log = std::make_unique<LogReader>(job.finish());
    plan = std::make_unique<Plan>(make_plan(*log, OpFilter::all(), PathMap{}));
    const VirtualCalls calls(*plan, storage, false);
    OpBlock block;
    log->decode(plan->tasks[t].blocks[0], block);
    REQUIRE(block.count() == performed.size());
    for (size_t i = 0; i < performed.size(); ++i) {
        CAPTURE(i);
        CHECK(calls.performs(block, i) == performed[i]);
    }
}
