// SPDX-License-Identifier: MIT
// What a prediction does not read: holes that were there, and those that the job makes. What it reads before a write.
#include "replay/predict/virtual_holes.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <optional>
#include <tuple>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/touched.h"
#include "tests/replay/predict/virtual_calls_fixture.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int64_t kPage = 4'096;
constexpr bool kMissing = true, kThere = false;

struct HoleCalls : Calls {
    HandleId own = job.handle(made, O_RDWR);

    void exact(FileId of, int64_t bytes) {
        FileRow row = job.writer().tables().files[of];
        row.size = static_cast<uint64_t>(bytes);
        row.size_exact = true;
        job.writer().update_file(of, row);
    }
    void open(FileId of, HandleId handle, int64_t flags, int64_t takes) {
        add({.kind = OpKind::open, .result = 3, .handle = handle, .fd = 3, .file = of, .flags = flags}, takes);
    }
    void make() { open(made, own, O_RDWR | O_CREAT | O_EXCL, kMake); }
    /// A page that is not in memory.
    void read(HandleId of, int64_t offset, bool missing) {
        add({.kind = OpKind::pread, .result = kPage, .handle = of, .fd = 3, .offset = offset, .size = kPage},
            (missing ? kRead : 0) + cached(kPage));
    }
    void write(HandleId of, int64_t offset, int64_t bytes, int64_t pages_read) {
        add({.kind = OpKind::pwrite, .result = bytes, .handle = of, .fd = 3, .offset = offset, .size = bytes},
            pages_read * kRead + cached(bytes));
    }
    void truncate(HandleId of, int64_t size) {
        add({.kind = OpKind::ftruncate, .handle = of, .fd = 3, .size = size}, kRecorded);
    }
    void allocate(HandleId of, int64_t offset, int64_t size, int64_t mode) {
        add({.kind = OpKind::fallocate, .handle = of, .fd = 3, .offset = offset, .size = size, .flags = mode},
            kRecorded);
    }
};

using Stretch = std::tuple<int64_t, int64_t, bool>;

std::vector<Stretch> stretches(VirtualHoles& holes, int64_t from, int64_t to) {
    std::vector<Stretch> out;
    holes.each(1, from * kPage, to * kPage, [&](int64_t begin, int64_t end, bool is_hole) {
        out.emplace_back(begin / kPage, end / kPage, is_hole);
    });
    return out;
}

}  // namespace

TEST_CASE("holes of a file are whole pages, go where something is written, and are known or not") {
    VirtualHoles holes;
    CHECK_FALSE(holes.knows(1));
    holes.make(1, 0, 8 * kPage);  // of a part of a file of which the rest is not known
    CHECK_FALSE(holes.knows(1));
    CHECK(stretches(holes, 0, 8) == std::vector<Stretch>{{0, 8, false}});
    holes.make(1, 0, VirtualHoles::kEnd);
    CHECK(holes.knows(1));
    CHECK(stretches(holes, 0, 8) == std::vector<Stretch>{{0, 8, true}});
    holes.fill(1, 2 * kPage + 1, 3 * kPage + 1);
    holes.fill(1, 6 * kPage, 7 * kPage);
    CHECK(stretches(holes, 1, 8) ==
          std::vector<Stretch>{{1, 2, true}, {2, 4, false}, {4, 6, true}, {6, 7, false}, {7, 8, true}});
    CHECK(holes.is_hole(1, 2 * kPage - 1));
    CHECK_FALSE(holes.is_hole(1, 2 * kPage));
    holes.make(1, 2 * kPage + 1, 4 * kPage - 1);  // no whole page
    CHECK(stretches(holes, 2, 4) == std::vector<Stretch>{{2, 4, false}});
    holes.make(1, 3 * kPage, 4 * kPage);
    CHECK(stretches(holes, 2, 4) == std::vector<Stretch>{{2, 3, false}, {3, 4, true}});
    holes.forget(1);
    CHECK_FALSE(holes.knows(1));
    CHECK_FALSE(holes.knows(2));
    holes.begin_with([](FileId file) { return file == 3 ? std::optional(RangeSet()) : std::nullopt; });
    CHECK(holes.knows(3));
    CHECK_FALSE(holes.knows(4));
}

TEST_CASE("a file with too many holes counts as one of which nothing is known") {
    VirtualHoles holes;
    holes.make(1, 0, VirtualHoles::kEnd);
    for (int64_t i = 0; i < static_cast<int64_t>(RangeSet::kMost) + 1; ++i) {
        holes.fill(1, 2 * i * kPage, (2 * i + 1) * kPage);
    }
    CHECK_FALSE(holes.knows(1));
}

TEST_CASE_FIXTURE(HoleCalls, "what the job did not write of a file that it made is not read") {
    SUBCASE("opened") {
        make();
        truncate(own, 40 * kMiB);
        read(own, 8 * kMiB, kThere);
        allocate(own, 0, 40 * kMiB, 0);
        read(own, 16 * kMiB, kThere);
        open(made, own, O_RDWR | O_CREAT, kMake);  // again
        read(own, 20 * kMiB, kThere);
    }
    SUBCASE("without a name") {
        add({.kind = OpKind::open, .result = 3, .handle = own, .fd = 3, .file = other, .flags = O_RDWR | O_TMPFILE},
            kOpen);
        read(own, 8 * kMiB, kThere);
    }
    SUBCASE("with O_DIRECT") {
        make();
        add({.kind = OpKind::fcntl, .handle = own, .fd = 3, .flags = O_DIRECT, .arg = F_SETFL}, kRecorded);
        add({.kind = OpKind::pread, .result = kPage, .handle = own, .fd = 3, .size = kPage}, kCall);
    }
    SUBCASE("but of one that nothing in the log makes") { read(own, 8 * kMiB, kMissing); }
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "what was written to a hole is read once it has left memory") {
    policy = PageCachePolicy::lru;
    room = 2 * kMiB;
    storage.write_bytes_per_s = 1e18;
    make();
    write(own, 0, 1 << 16, 0);
    read(own, 8 * kMiB, kThere);
    for (int64_t at = 16 * kMiB; at < 20 * kMiB; at += kMiB) {
        add({.kind = OpKind::pread, .result = kMiB, .handle = own, .fd = 3, .offset = at, .size = kMiB},
            cached(kMiB));  // takes the place of what is there
    }
    read(own, 0, kMissing);
    read(own, 8 * kMiB, kThere);
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "sizes: what lies beyond the end, was cut off, or punched is not read") {
    exact(file, 20 * kMiB - 100);
    SUBCASE("beyond the end") {
        truncate(in, 60 * kMiB);
        read(in, 20 * kMiB, kThere);
        read(in, 20 * kMiB - kPage, kMissing);  // the last page
    }
    SUBCASE("cut off") {
        truncate(in, 10 * kMiB + 1);
        truncate(in, 20 * kMiB);
        read(in, 15 * kMiB, kThere);
        read(in, 10 * kMiB, kMissing);
    }
    SUBCASE("cut off by name") {
        add({.kind = OpKind::truncate, .file = file, .size = 10 * kMiB}, kRecorded);
        read(in, 10 * kMiB, kThere);
        read(in, kMiB, kMissing);
    }
    SUBCASE("cut off where it is opened") {
        open(file, in, O_RDWR | O_TRUNC, kOpen);
        read(in, kMiB, kThere);
    }
    SUBCASE("punched, or zeroed") {
        allocate(in, kMiB, kMiB, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
        allocate(in, 4 * kMiB, kMiB, FALLOC_FL_ZERO_RANGE);
        read(in, kMiB, kThere);
        read(in, 3 * kMiB, kMissing);
        read(in, 4 * kMiB, kThere);
    }
    SUBCASE("moved: nobody knows where it has data") {
        truncate(in, 0);
        allocate(in, 0, kMiB, FALLOC_FL_INSERT_RANGE);
        read(in, 0, kMissing);
    }
    SUBCASE("not after a call that failed") {
        add({.kind = OpKind::ftruncate, .result = -EPERM, .handle = in, .fd = 3, .size = 0}, kRecorded);
        read(in, 0, kMissing);
    }
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "a clone gets data without writing any") {
    storage.file_system = "xfs";
    make();
    add({.kind = OpKind::copy_file_range,
         .result = kMiB,
         .handle = in,
         .fd = 3,
         .handle2 = own,
         .fd2 = 4,
         .size = kMiB},
        kCall);
    read(own, 0, kMissing);
    read(own, 2 * kMiB, kThere);
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "a mapping of holes reads nothing") {
    make();
    truncate(own, 60 * kMiB);
    add({.kind = OpKind::mmap,
         .handle = own,
         .fd = 3,
         .size = 60 * kMiB,
         .flags = MAP_SHARED,
         .mode = PROT_READ | PROT_WRITE,
         .map = 1},
        kRecorded);
    for (int64_t at = 0; at < 60 * kMiB; at += 6 * kMiB) {
        add({.kind = OpKind::touch, .offset = at, .size = kPage, .flags = kTouchWrites, .map = 1}, kAsk);
    }
    CHECK(check().storage().reads == 0);
}

TEST_CASE_FIXTURE(HoleCalls, "what is written through a mapping is data, with all of its folio") {
    policy = PageCachePolicy::lru;
    room = 2 * kMiB;
    storage.write_bytes_per_s = 1e18;
    bool large = false;
    SUBCASE("of one page") { storage.file_system = "btrfs"; }
    SUBCASE("of several") {
        storage.file_system = "ext4";
        large = true;
    }
    sized(made, 60 * kMiB);
    make();
    add({.kind = OpKind::mmap,
         .handle = own,
         .fd = 3,
         .size = 60 * kMiB,
         .flags = MAP_SHARED,
         .mode = PROT_READ | PROT_WRITE,
         .map = 1},
        kRecorded);
    add({.kind = OpKind::touch, .size = kPage, .flags = kTouchWrites, .map = 1}, kAsk);  // reads 32 pages around it
    add({.kind = OpKind::munmap, .size = 60 * kMiB, .map = 1}, kRecorded);
    for (int64_t at = 16 * kMiB; at < 20 * kMiB; at += kMiB) {
        add({.kind = OpKind::pread, .result = kMiB, .handle = own, .fd = 3, .offset = at, .size = kMiB}, cached(kMiB));
    }
    read(own, kPage, large);
    read(own, 0, kMissing);
    read(own, kMiB, kThere);
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "what is cut off takes no room") {
    policy = PageCachePolicy::lru;
    room = 2 * kMiB + kMiB / 2;
    exact(file, 20 * kMiB);
    const auto mib = [&](HandleId of, int64_t at) {
        add({.kind = OpKind::pread, .result = kMiB, .handle = of, .fd = 3, .offset = at, .size = kMiB},
            kMiB / kPage * kRead + cached(kMiB));
    };
    storage.read_ahead_bytes = 0;
    mib(out, 0);
    mib(in, 0);
    bool cut = false;
    SUBCASE("cut") { cut = true; }
    SUBCASE("not cut") {}
    truncate(in, cut ? kPage : 20 * kMiB);
    mib(out, 8 * kMiB);
    read(out, kPage, !cut);
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "a write of part of a page that is not in memory reads it before") {
    exact(file, 20 * kMiB - 100);
    SUBCASE("of one page, once") {
        write(in, 50, 100, 1);
        write(in, 250, 100, 0);
        read(in, 0, kThere);
    }
    SUBCASE("at both ends") { write(in, 50, 3 * kPage, 2); }
    SUBCASE("at its begin") { write(in, 50, 3 * kPage - 50, 1); }
    SUBCASE("at its end") { write(in, 0, 3 * kPage - 50, 1); }
    SUBCASE("not whole pages") { write(in, 0, 3 * kPage, 0); }
    SUBCASE("not what was read") {
        read(in, 0, kMissing);
        write(in, 50, 100, 0);
    }
    SUBCASE("not beyond the end, but the page that it is in") {
        write(in, 20 * kMiB + 50, 100, 0);
        write(in, 20 * kMiB - 50, 10, 1);
    }
    SUBCASE("not of a file that the job made") {
        make();
        write(own, 50, 100, 0);
    }
    SUBCASE("not where the size of the file is not known") { write(out, 50, 100, 0); }
    SUBCASE("not where parts of pages get to the storage") {
        storage.file_system = "nfs4";
        write(in, 50, 100, 0);
    }
    SUBCASE("not of recorded holes") {
        Holes holes;
        holes[file].add(kMiB, 2 * kMiB);
        job.writer().keep(encode_holes(holes));
        write(in, kMiB + 50, 100, 0);
        write(in, 50, 100, 1);
    }
    check();
}

TEST_CASE_FIXTURE(HoleCalls, "warm: no write reads anything") {
    exact(file, 20 * kMiB);
    write(in, 50, 100, 0);
    CHECK(check(true).storage().reads == 0);
}
