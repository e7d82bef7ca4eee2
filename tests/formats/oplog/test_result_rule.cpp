// SPDX-License-Identifier: MIT
// Whether two results are the same, for every op of the table.
#include "formats/oplog/result_rule.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <set>

using namespace reprise;

TEST_CASE("results of every op: errors must be equal, numbers where they are the program's own") {
    // What two machines may number differently.
    const std::set<OpKind> machine_numbers{
        OpKind::open,        OpKind::dup,      OpKind::mmap,        OpKind::mremap, OpKind::getdents,
        OpKind::readlink,    OpKind::getxattr, OpKind::listxattr,   OpKind::touch,  OpKind::aio_submit,
        OpKind::uring_enter, OpKind::aio_reap, OpKind::uring_submit};
    for (const OpInfo& op : all_ops()) {
        INFO(op.name);
        constexpr int64_t kArg = 6;  // of fcntl: F_SETLK
        const auto match = [&](int64_t recorded, int64_t run) { return match_results(op.kind, kArg, recorded, run); };
        for (const int64_t result : {int64_t{0}, int64_t{7}, int64_t{-ENOENT}, INT64_MIN, INT64_MAX}) {
            CHECK(match(result, result) == ResultMatch::same);
        }
        if (!op.is(Trait::io)) {
            CHECK(match(0, -EAGAIN) == ResultMatch::same);
            CHECK(match(-ENOENT, 12) == ResultMatch::same);
            CHECK(match(-ENOENT, -EAGAIN) == ResultMatch::same);
            continue;
        }
        CHECK(match(0, -ENOENT) == ResultMatch::differs);
        CHECK(match(-ENOENT, 0) == ResultMatch::differs);
        CHECK(match(-ENOENT, -EACCES) == ResultMatch::differs);
        CHECK(match(5, -4095) == ResultMatch::differs);
        const bool known = machine_numbers.count(op.kind) != 0;
        CHECK(match(7, 8) == (known ? ResultMatch::known : ResultMatch::differs));
        CHECK(match(0, 8) == (known ? ResultMatch::known : ResultMatch::differs));
        if (op.is(Trait::reads) || op.is(Trait::writes)) {
            CHECK(match(100, 99) == ResultMatch::differs);
        }
    }
}

TEST_CASE("results of fcntl: descriptors and flags depend on the machine, locks and sizes do not") {
    for (const int64_t command : {0, 1, 3, 1030}) {  // F_DUPFD, F_GETFD, F_GETFL, F_DUPFD_CLOEXEC
        CHECK(match_results(OpKind::fcntl, command, 3, 4) == ResultMatch::known);
        CHECK(match_results(OpKind::fcntl, command, 3, -EBADF) == ResultMatch::differs);
    }
    for (const int64_t command : {2, 4, 5, 6, 1031, 1032}) {
        CHECK(match_results(OpKind::fcntl, command, 3, 4) == ResultMatch::differs);
    }
}

TEST_CASE("results of calls that may not wait: how far they come is a matter of timing") {
    constexpr int64_t kNoWait = 8, kAppend = 16;  // RWF_*
    for (const OpKind kind : {OpKind::readv, OpKind::preadv, OpKind::writev, OpKind::pwritev}) {
        CHECK(result_detail(kind, 1, kNoWait) == kNoWait);
        CHECK(match_results(kind, kNoWait, -EAGAIN, 100) == ResultMatch::known);
        CHECK(match_results(kind, kNoWait, 100, -EAGAIN) == ResultMatch::known);
        CHECK(match_results(kind, kNoWait, 40, 100) == ResultMatch::known);
        CHECK(match_results(kind, kNoWait, 100, -EIO) == ResultMatch::differs);
        CHECK(match_results(kind, kAppend, -EAGAIN, 100) == ResultMatch::differs);
    }
    CHECK(result_detail(OpKind::fcntl, 6, kNoWait) == 6);
    CHECK(match_results(OpKind::pread, kNoWait, -EAGAIN, 100) == ResultMatch::differs);
}

TEST_CASE("a look below what was no directory may find nothing there, and only that") {
    for (const OpKind kind :
         {OpKind::open, OpKind::stat, OpKind::statx, OpKind::access, OpKind::readlink, OpKind::uring_complete}) {
        CHECK(match_results(kind, 0, -ENOTDIR, -ENOENT) == ResultMatch::same);
        CHECK(match_results(kind, 0, -ENOENT, -ENOTDIR) == ResultMatch::differs);
        CHECK(match_results(kind, 0, -ENOTDIR, -EACCES) == ResultMatch::differs);
        CHECK(match_results(kind, 0, -ENOTDIR, 0) == ResultMatch::differs);
    }
    CHECK(match_results(OpKind::mkdir, 0, -ENOTDIR, -ENOENT) == ResultMatch::differs);
}

TEST_CASE("a listing with less than half of its bytes differs, however they are spread over its calls") {
    ListingResults few;
    CHECK(few.match(1, 9'648, 112) == ResultMatch::differs);
    CHECK(few.match(1, 0, 0) == ResultMatch::same);
    CHECK(few.match(2, 9'648, 9'600) == ResultMatch::known);  // another one
    CHECK(few.match(2, 9'648, -20) == ResultMatch::differs);
    ListingResults spread;
    CHECK(spread.match(1, 32'752, 32'768) == ResultMatch::known);
    CHECK(spread.match(1, 400, 48) == ResultMatch::known);
    CHECK(spread.match(1, 0, 0) == ResultMatch::same);
    ListingResults more;
    CHECK(more.match(1, 112, 9'648) == ResultMatch::known);
}

TEST_CASE("a file that grows while it is looked at: its bytes may come in another look, but they must come") {
    struct Read {
        int64_t offset, recorded, run;
    };
    const auto differ = [](std::vector<Read> reads, OpKind kind = OpKind::read) {
        PolledReads<size_t> polled;
        size_t at_once = 0;
        for (size_t i = 0; i < reads.size(); ++i) {
            const auto& [offset, recorded, run] = reads[i];
            polled.see(7, kind, offset, recorded);
            if (recorded != run) {
                at_once += polled.keep(7, kind, offset, recorded, run, i) ? 0 : 1;
            }
        }
        return at_once + polled.left().size();
    };
    CHECK(differ({{0, 0, 0}, {0, 0, 29}, {0, 29, 0}, {29, 0, 0}}) == 0);   // earlier
    CHECK(differ({{0, 0, 0}, {0, 29, 0}, {29, 0, 29}, {29, 0, 0}}) == 0);  // later
    CHECK(differ({{0, 0, 10}, {0, 29, 30}, {29, 11, 0}}) == 0);
    CHECK(differ({{0, 0, 0}, {0, 29, 0}, {29, 0, 0}}) == 1);                 // never
    CHECK(differ({{0, 0, 0}, {0, 29, 0}, {29, 0, 28}}) == 2);                // not all
    CHECK(differ({{0, 29, 0}, {29, 0, 29}}) == 2);                           // no look at the end before: stale data
    CHECK(differ({{0, 29, 29}, {29, 0, 0}, {0, 29, 0}, {29, 0, 29}}) == 2);  // read again from its begin
    CHECK(differ({{0, 0, -5}, {0, 29, 0}, {29, 0, 29}}) == 1);               // an error is one
    CHECK(differ({{0, 0, 29}, {0, 29, 0}}, OpKind::pread) == 2);

    PolledReads<int> closed;
    closed.see(7, OpKind::read, 0, 0);
    closed.see(7, OpKind::close, 0, 0);
    CHECK_FALSE(closed.keep(7, OpKind::read, 0, 29, 0, 1));  // differs, and is said at once
    CHECK(closed.keep(7, OpKind::read, 29, 0, 29, 2));
    CHECK(closed.left() == std::vector<int>{2});
    CHECK(closed.left().empty());
    CHECK(closed.known() == 0);
}
