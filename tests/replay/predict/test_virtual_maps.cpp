// SPDX-License-Identifier: MIT
// Mapped files in a prediction: faults, advice on mappings and on open files, populated mappings.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "formats/oplog/cached_pages.h"
#include "tests/replay/predict/virtual_calls_fixture.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE_FIXTURE(Calls, "touches of a mapped file fetch what is not cached, else take what a fault does") {
    const auto touch = [&](uint32_t id, int64_t offset, int64_t size, int64_t takes, int64_t lasted = 0) {
        add({.kind = OpKind::touch, .duration = lasted, .offset = offset, .size = size, .map = id}, takes);
    };
    constexpr int64_t kPiece = 128 << 10;
    sized(file, 8 << 20);
    map(1, in, 0);
    map(2, in, 4 * kPiece);
    map(3, 0, 0);
    SUBCASE("cold") {
        touch(1, 0, 4'096, kRead + kAsk);
        touch(1, 4'096, 4'096, kFault);  // around it
        touch(1, 8'192, 4'096, 700, 700);
        touch(1, 8'192, 8'192, 2 * kFault);
        touch(1, 2 * kPiece, 4'096, kRead + kAsk);
        touch(1, 2 * kPiece - kPiece / 2, 4'096, kFault);
        touch(1, 2 * kPiece + kPiece / 2, 4'096, kRead + kAsk);
        touch(2, kPiece, 4'096, kRead + kAsk);
        touch(1, 5 * kPiece, 4'096, kFault);  // the same place
        touch(2, -5, 100, kRecorded);
        touch(2, kPiece, 0, kRecorded);
        touch(2, kPiece, -7, kRecorded);
        touch(3, 0, 4'096, kRecorded);
        touch(9, 0, 4'096, kRecorded);
        CHECK(check().storage().reads == 4);
    }
    SUBCASE("cold, pages in any order") {
        const int64_t list[] = {0, 4'096, 2 * kPiece, 4'096, -3 * kPiece, 8'192, kPiece, 4'096};
        add({.kind = OpKind::touch, .offset = kPiece, .size = 2 * kPiece, .map = 1, .list = list},
            3 * kRead + 3 * kAsk + 2 * kFault);
        touch(1, 2 * kPiece, 4'096, kRead + kAsk);  // what lies between is not touched
        CHECK(check().storage().reads == 4);
    }
    SUBCASE("warm") {
        touch(1, 0, 4'096, kRecorded);
        touch(2, 0, 4'096, kRecorded);
        CHECK(check(true).storage().reads == 0);
    }
}

TEST_CASE_FIXTURE(Calls, "what came with one fault where it was recorded takes faults of its own") {
    constexpr int64_t kPiece = 2 << 20;
    sized(file, 4 * kPiece);
    map(1, in, 0);
    for (int64_t at = 0; at < 4 * kPiece; at += kPiece) {
        job.add(t, {.kind = OpKind::touch, .offset = at, .size = 4'096, .map = 1});
    }
    bool known = false;
    SUBCASE("fetched") { known = true; }
    SUBCASE("not known") {}
    if (known) {
        FetchedPages all;
        all[file].add(0, 4 * kPiece);
        job.writer().keep(encode_fetched(all));
    }
    const LogReader recorded = job.finish();
    const Plan of = make_plan(recorded, OpFilter::all(), PathMap{});
    VirtualCalls calls(of, storage, false);
    OpBlock block;
    recorded.decode(of.tasks[t].blocks.at(0), block);
    for (size_t i = 0; i < block.count(); ++i) {
        perform(calls, block, i, static_cast<int64_t>(i + 1) * 100'000'000'000);
    }
    if (known) {
        CHECK(calls.storage().bytes_read > 3 * kPiece);  // up to the last fault
    } else {
        CHECK(calls.storage().bytes_read < kPiece);
    }
}

TEST_CASE_FIXTURE(Calls, "advice on a mapping, or a part of it, says what a touch of it reads") {
    sized(file, 64 << 20);
    map(1, in, 0);
    map(2, in, 0);
    const auto advise = [&](int64_t advice, int64_t offset, int64_t size, uint32_t id = 1) {
        add({.kind = OpKind::madvise, .offset = offset, .size = size, .arg = advice, .map = id}, kRecorded);
    };
    // Pages that one touch fetches.
    const auto touched = [&](int64_t mib, uint64_t pages, uint32_t id = 1) {
        add({.kind = OpKind::touch, .offset = mib << 20, .size = 4'096, .map = id}, pages == 0 ? kFault : kRead + kAsk);
        fetched += pages;
    };
    touched(1, 32);
    advise(MADV_RANDOM, 0, 8 << 20);
    touched(2, 1);
    touched(9, 32);
    touched(3, 32, 2);  // the advice is another mapping's
    advise(MADV_NORMAL, 4 << 20, 2 << 20);
    touched(4, 32);
    touched(6, 1);
    advise(MADV_SEQUENTIAL, 5 << 20, 1 << 20);
    touched(5, 32);
    advise(MADV_DONTNEED, 0, 64 << 20);  // changes nothing of that
    touched(7, 1);
    advise(MADV_WILLNEED, 20 << 20, 2 << 20);  // no more than the device takes at once
    touched(20, 0);
    fetched += 32;
    advise(MADV_HUGEPAGE, 32 << 20, 32 << 20);
    touched(33, 1024);
    touched(35, 0);
    advise(MADV_NOHUGEPAGE, 32 << 20, 32 << 20);
    touched(40, 32);
    const VirtualCalls& calls = check();
    CHECK(calls.storage().bytes_read == fetched * 4'096);
    for (const uint64_t n : calls.unmodelled) {
        CHECK(n == 0);
    }
}

TEST_CASE_FIXTURE(Calls, "advice on a file is its open instance's") {
    sized(file, 64 << 20);
    const HandleId second = job.handle(file, O_RDONLY);
    const auto advise = [&](int64_t advice, HandleId handle, int64_t offset = 0, int64_t size = 0) {
        add({.kind = OpKind::fadvise, .handle = handle, .fd = 3, .offset = offset, .size = size, .arg = advice},
            kRecorded);
    };
    const auto reads = [&](HandleId handle, int64_t mib, int64_t bytes, uint64_t pages) {
        // From the begin of a file or where a read ended Linux reads ahead: here each is the second of two.
        const int64_t at = mib << 20;
        add({.kind = OpKind::pread, .result = 4'096, .handle = handle, .fd = 3, .offset = at, .size = 4'096},
            kRead + cached(4'096));
        add({.kind = OpKind::pread, .result = bytes, .handle = handle, .fd = 3, .offset = at + 4'096, .size = bytes},
            kRead + cached(bytes));
        fetched += 1 + pages;
    };
    reads(in, 1, 4'096, 4);
    advise(POSIX_FADV_RANDOM, in);
    reads(in, 2, 4'096, 1);
    reads(second, 3, 4'096, 4);
    advise(POSIX_FADV_NORMAL, in);
    reads(in, 4, 4'096, 4);
    advise(POSIX_FADV_SEQUENTIAL, in);
    reads(in, 5, 8 * 4'096, 16);  // of windows of 64
    advise(POSIX_FADV_WILLNEED, in, 8 << 20, 64 << 10);
    add({.kind = OpKind::pread, .result = 4'096, .handle = in, .fd = 3, .offset = 8 << 20, .size = 4'096},
        cached(4'096));
    fetched += 16;
    add({.kind = OpKind::readahead, .handle = in, .fd = 3, .offset = 9 << 20, .size = 4'096}, kRecorded);
    add({.kind = OpKind::pread, .result = 4'096, .handle = in, .fd = 3, .offset = 9 << 20, .size = 4'096},
        cached(4'096));
    ++fetched;
    CHECK(check().storage().bytes_read == fetched * 4'096);
}

TEST_CASE_FIXTURE(Calls, "a mapping that is populated reads its range") {
    sized(file, 1 << 20);
    const auto populate = [&](uint32_t id, int64_t flags, int64_t size, int64_t takes) {
        add({.kind = OpKind::mmap, .handle = in, .fd = 3, .size = size, .flags = flags, .mode = PROT_READ, .map = id},
            takes);
    };
    SUBCASE("cold") {
        populate(1, MAP_SHARED, 4'096, kRecorded);
        populate(2, MAP_SHARED | MAP_POPULATE, 4'096, kRead + kAsk);
        populate(3, MAP_SHARED | MAP_POPULATE, 4'096, kFault);
        // Windows of 128 KiB, one while the one before is mapped.
        populate(4, MAP_SHARED | MAP_POPULATE, 2 << 20, 7 * kRead + kAsk + 3 * kFault);
        CHECK(check().storage().bytes_read == 1 << 20);
    }
    SUBCASE("by advice") {
        map(1, in, 0);
        constexpr int64_t kPopulateRead = 22;
        add({.kind = OpKind::madvise, .size = 1 << 20, .arg = kPopulateRead, .map = 1},
            8 * kRead + 2 * (kAsk + kFault));
        CHECK(check().storage().bytes_read == 1 << 20);
    }
    SUBCASE("warm") {
        populate(1, MAP_PRIVATE | MAP_POPULATE, 4'096, kRecorded);
        check(true);
    }
}
