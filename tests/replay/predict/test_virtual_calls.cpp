// SPDX-License-Identifier: MIT
// How long each call takes in a prediction, by a model whose numbers cannot be taken for each other.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/mman.h>

#include <cerrno>
#include <memory>

#include "replay/predict/virtual_calls.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kCall = 1, kOpen = 10, kStat = 100, kMake = 1'000, kRemove = 10'000, kSync = 100'000;
constexpr int64_t kRead = 1'000'000, kRecorded = 7'000'000;

/// A copy takes a nanosecond a byte, and so does writing to the storage.
StorageModel model() {
    StorageModel m;
    m.call_ns = kCall;
    m.open_ns = kOpen;
    m.stat_ns = kStat;
    m.make_ns = kMake;
    m.remove_ns = kRemove;
    m.fsync_ns = kSync;
    m.read = {{4096, kRead}};
    m.read_bytes_per_s = 1e18;
    m.cached_bytes_per_s = m.write_bytes_per_s = 1e9;
    return m;
}

struct Calls {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    TaskId t = job.lone_task();
    FileId file = job.file("/data/in"), other = job.file("/data/other"), made = job.file("/data/made", Origin::created);
    HandleId in = job.handle(file, O_RDWR), out = job.handle(other, O_RDWR);
    std::vector<int64_t> expected;

    void add(Op op, int64_t takes) {
        if (op.duration == 0) {
            op.duration = kRecorded;
        }
        job.add(t, op);
        expected.push_back(takes);
    }
    /// Each begins a second after the one before it. Compares what they take.
    VirtualCalls check(bool warm = false) {
        log = std::make_unique<LogReader>(job.finish());
        plan = std::make_unique<Plan>(make_plan(*log, OpFilter::all(), PathMap{}));
        VirtualCalls calls(*plan, storage, warm);
        OpBlock block;
        size_t at = 0;
        for (const BlockInfo& where : plan->tasks[t].blocks) {
            log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i, ++at) {
                CAPTURE(at);
                CAPTURE(info(static_cast<OpKind>(block.kind[i])).name);
                const int64_t now = static_cast<int64_t>(at + 1) * 1'000'000'000;
                CHECK(calls.perform(block, i, now) - now == expected[at]);
            }
        }
        CHECK(at == expected.size());
        return calls;
    }
    StorageModel storage = model();
    std::unique_ptr<LogReader> log;
    std::unique_ptr<Plan> plan;
};

constexpr int64_t cached(int64_t bytes) { return kCall + bytes; }

}  // namespace

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
    const VirtualCalls calls = check();
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
    write(OpKind::pwritev, 4'000);                     // at 6 s, out at 10 s
    sync(OpKind::fsync, 0, 3 * kSecond + kSync);       // at 7 s
    copy(OpKind::sendfile, 500, kRead + cached(500));  // out at 10.5 s
    copy(OpKind::copy_file_range, -EXDEV, kCall);
    sync(OpKind::syncfs, 0, kSecond / 2 + kSync);  // at 10 s
    copy(OpKind::splice, 200, cached(200));
    const VirtualCalls calls = check();
    CHECK(calls.bytes_written == 300 + 4'000 + 500 + 200);
    CHECK(calls.bytes_read == 500 + 200);
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

TEST_CASE_FIXTURE(Calls, "touches of a mapped file fetch what is not cached, else take their recorded time") {
    const auto map = [&](uint32_t id, HandleId of, int64_t offset) {
        add({.kind = OpKind::mmap,
             .handle = of,
             .fd = 3,
             .offset = offset,
             .size = 1 << 20,
             .flags = MAP_SHARED,
             .mode = PROT_READ,
             .map = id},
            kRecorded);
    };
    const auto touch = [&](uint32_t id, int64_t offset, int64_t size, int64_t takes) {
        add({.kind = OpKind::touch, .offset = offset, .size = size, .map = id}, takes);
    };
    constexpr int64_t kPiece = 128 << 10;
    map(1, in, 0);
    map(2, in, 4 * kPiece);
    map(3, 0, 0);
    SUBCASE("cold") {
        touch(1, 0, 4'096, kRead + cached(4'096));
        touch(1, 4'096, 4'096, kRecorded);  // of the same piece
        touch(1, kPiece, 4'096, kRead + cached(4'096));
        touch(1, 0, 4'096, kRecorded);
        touch(2, 0, 4'096, kRead + cached(4'096));
        touch(1, 4 * kPiece, 4'096, kRecorded);  // the same place
        touch(2, -5, 100, kRecorded);
        touch(2, kPiece, 0, kRecorded);
        touch(2, kPiece, -7, kRecorded);
        touch(3, 0, 4'096, kRecorded);
        touch(9, 0, 4'096, kRecorded);
        check();
    }
    SUBCASE("warm") {
        touch(1, 0, 4'096, kRecorded);
        touch(2, 0, 4'096, kRecorded);
        CHECK(check(true).storage().reads == 0);
    }
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
    ask(OpKind::uring_submit, IORING_OP_FSYNC, 0, 0, kSync);
    ask(OpKind::uring_submit, IORING_OP_SYNC_FILE_RANGE, 0, 10, kSync);
    ask(OpKind::aio_submit, IOCB_CMD_FDSYNC, 0, 0, kSync);
    for (const int64_t code :
         {IORING_OP_NOP, IORING_OP_FALLOCATE, IORING_OP_FADVISE, IORING_OP_SPLICE, IORING_OP_OPENAT, IORING_OP_CLOSE,
          IORING_OP_STATX, IORING_OP_MKDIRAT, IORING_OP_UNLINKAT, IORING_OP_TIMEOUT}) {
        ask(OpKind::uring_submit, code, 0, 4'096, kCall);
    }
    add({.kind = OpKind::uring_enter, .result = 2, .size = 2, .arg = 2}, kCall);
    add({.kind = OpKind::uring_complete, .result = 4'096, .size = 4'096, .request = 1}, kCall);
    add({.kind = OpKind::aio_complete, .result = 100, .size = 100, .request = 4}, kCall);
    const VirtualCalls calls = check();
    CHECK(calls.bytes_read == 4'096 + 4'096 + 100);
    CHECK(calls.bytes_written == 400);
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
    op({.kind = OpKind::sendfile, .result = 1, .handle = in, .fd = 3, .handle2 = pipe, .fd2 = 4, .size = 1}, false);
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
