// SPDX-License-Identifier: MIT
// Asynchronous requests: what they tell of the files that they read.
#include <vector>

#include "formats/oplog/reap_arg.h"
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {

TEST_CASE("requests: a file that was open before is as long as their reads reach") {
    Feeder f;
    uint32_t number = 0;
    const auto read = [&](int32_t fd, int64_t offset, int64_t size, int64_t got) {
        RawCall call = f.raw(OpKind::uring_submit, 0);
        call.fd = fd;
        call.arg = 22;  // IORING_OP_READ
        call.offset = offset;
        call.size = size;
        call.request = ++number;
        f.assembler.call(call);
        RawCall done = f.raw(OpKind::uring_complete, got);
        done.size = size;
        done.request = number;
        f.assembler.call(done);
    };
    for (const int32_t fd : {3, 4, 5}) {
        f.open("/q/" + std::to_string(fd), fd);
    }
    read(3, 8'192, 4'096, 4'096);
    read(3, 0, 4'096, 4'096);
    read(4, 8'192, 4'096, 100);  // ended there
    read(5, 4'096, 4'096, -5);
    read(5, -1, 4'096, 4'096);  // at its position
    const auto log = f.finish();
    CHECK(log.file("/q/3").size == 12'288);
    CHECK_FALSE(log.file("/q/3").size_exact);
    CHECK(log.file("/q/4").size == 8'292);
    CHECK(log.file("/q/5").size == 0);
}

TEST_CASE("requests: calls that look for results one right after the other are one op") {
    Feeder f;
    f.open("/q/1", 3);
    const auto look = [&](OpKind kind, int64_t begin, int64_t took, int64_t result, int64_t least = 0) {
        RawCall call = f.raw(kind, result);
        call.begin = begin;
        call.duration = took;
        call.fd = kind == OpKind::uring_enter ? 3 : -1;
        call.arg = least;
        call.size = kind == OpKind::aio_reap ? 64 : 0;
        return f.assembler.call(call).ops;
    };
    const int64_t start = f.raw(OpKind::fsync, 0).begin + 1'000'000;
    // Three, then one after a pause, one that took something, one more.
    CHECK(look(OpKind::aio_reap, start, 300, 0) == 1);
    CHECK(look(OpKind::aio_reap, start + 1'000, 300, 0) == 0);
    CHECK(look(OpKind::aio_reap, start + 2'000, 400, 0) == 0);
    CHECK(look(OpKind::aio_reap, start + 30'000, 300, 0) == 1);
    CHECK(look(OpKind::aio_reap, start + 31'000, 300, 2) == 1);
    CHECK(look(OpKind::aio_reap, start + 32'000, 300, 0) == 1);
    // One whose time was over is long, and the next one no look.
    CHECK(look(OpKind::aio_reap, start + 33'000, 2'000'000, 0, 1) == 1);
    CHECK(look(OpKind::aio_reap, start + 2'034'000, 2'000'000, 0, 1) == 1);
    // Two that ask for another number are two.
    CHECK(look(OpKind::aio_reap, start + 4'100'000, 300, 0, 1) == 1);
    CHECK(look(OpKind::aio_reap, start + 4'101'000, 300, 0, 2) == 1);
    // Of io_uring, one that waits is none.
    CHECK(look(OpKind::uring_enter, start + 5'000'000, 300, 0) == 1);
    CHECK(look(OpKind::uring_enter, start + 5'001'000, 300, 0) == 0);
    CHECK(look(OpKind::uring_enter, start + 5'002'000, 300, 0, 1) == 1);
    CHECK(look(OpKind::uring_enter, start + 5'003'000, 300, 0) == 1);
    CHECK(look(OpKind::uring_enter, start + 5'004'000, 300, -11) == 1);
    const auto log = f.finish();
    struct Seen {
        int64_t looks, least, duration;
        bool operator==(const Seen&) const = default;
    };
    std::vector<Seen> seen;
    for (const Op& op : log.ops()) {
        if (takes_results(op.kind)) {
            seen.push_back({looks_more(op.arg) + 1, least_results(op.arg), op.duration});
        }
    }
    const std::vector<Seen> expected = {{3, 0, 2'400},     {1, 0, 300},       {1, 0, 300}, {1, 0, 300},
                                        {1, 1, 2'000'000}, {1, 1, 2'000'000}, {1, 1, 300}, {1, 2, 300},
                                        {2, 0, 1'300},     {1, 1, 300},       {1, 0, 300}, {1, 0, 300}};
    CHECK(seen == expected);
}

}  // namespace reprise::test
