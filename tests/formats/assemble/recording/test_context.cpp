// SPDX-License-Identifier: MIT
// What the machine did meanwhile: pressure, page cache and block devices, in steps of time.
#include <doctest/doctest.h>

#include "formats/assemble/recording/context.h"
#include "tests/units.h"

using reprise::kMs;
using reprise::RawContext;

namespace {

constexpr uint64_t kStart = 5'000 * kMs;

raw_pressure pressure(uint64_t time, uint64_t base) {
    raw_pressure record{};
    record.head.time = time;
    record.cpu_some = base + 1;
    record.cpu_full = 2 * base + 1;
    record.memory_some = 3 * base + 1;
    record.memory_full = 4 * base + 1;
    record.io_some = 5 * base + 1;
    record.io_full = 6 * base + 1;
    return record;
}

raw_page_cache pages(uint64_t time, uint64_t bytes, bool evicted) {
    raw_page_cache record{};
    record.head.time = time;
    record.bytes = bytes;
    record.evicted = evicted;
    return record;
}

raw_block block(uint64_t issued, uint64_t time, uint64_t bytes, bool write, uint32_t disk = 0) {
    raw_block record{};
    record.device = disk;
    record.head.time = time;
    record.issued = issued;
    record.bytes = bytes;
    record.write = write;
    return record;
}

}  // namespace

TEST_CASE("pressure counts from its first record on, each kind for itself") {
    RawContext context(kStart);
    CHECK(context.json().empty());
    context.see(pressure(kStart, 1000));
    CHECK(context.json().empty());
    context.see(pressure(kStart + 250 * kMs, 1010));
    context.see(pressure(kStart + 260 * kMs, 1005));  // backwards: nothing
    context.see(pressure(kStart + 310 * kMs, 1007));
    CHECK(
        context.json() ==
        R"({"interval_ms":100,"series":{"cpu_some_us":[0,0,10,2],"cpu_full_us":[0,0,20,4],)"
        R"("memory_some_us":[0,0,30,6],"memory_full_us":[0,0,40,8],"io_some_us":[0,0,50,10],"io_full_us":[0,0,60,12]}})");
}

TEST_CASE("page cache: whole KiB, what is left counts with the next record of its kind") {
    RawContext context(kStart);
    context.see(pages(kStart - kMs, 3000, false));  // before the start counts as the first step
    context.see(pages(kStart + 100 * kMs, 1500, false));
    context.see(pages(kStart + 100 * kMs, 1023, true));
    context.see(pages(kStart + 199 * kMs, 1, true));
    CHECK(context.json() == R"({"interval_ms":100,"series":{"cache_added_kib":[2,2],"cache_evicted_kib":[0,1]}})");
}

TEST_CASE("block devices: requests, KiB and time by direction, where they end") {
    RawContext context(kStart);
    context.see(block(kStart, kStart + 2 * kMs, 4096, false));
    context.see(block(kStart + 50 * kMs, kStart + 101 * kMs, 1536, false));
    context.see(block(kStart + 50 * kMs, kStart + 102 * kMs, 512, false));
    context.see(block(kStart + 90 * kMs, kStart + 93 * kMs, 8192, true));
    context.see(block(kStart + 95 * kMs, kStart + 94 * kMs, 1024, true));  // no time
    CHECK(context.json() ==
          R"({"interval_ms":100,"series":{"block_reads":[1,2],"block_read_kib":[4,2],"block_read_us":[2000,103000],)"
          R"("block_writes":[2],"block_write_kib":[9],"block_write_us":[3000]}})");
}

namespace {

constexpr uint32_t kDisk = 254U << 20, kOther = 8U << 20, kLoop = 7U << 20, kLoop1 = kLoop + 1, kDm = 253U << 20,
                   kDm1 = kDm + 1;

/// A read of 1 ms in the i-th interval.
raw_block read(uint32_t disk, uint64_t i, uint64_t bytes) {
    return block(kStart + i * 100 * kMs, kStart + i * 100 * kMs + kMs, bytes, false, disk);
}

}  // namespace

TEST_CASE("a disk and those on it: in each interval whichever moved more, with its count and time") {
    RawContext context(kStart, {{kLoop, {kDisk}}, {kLoop1, {kDisk}}});
    // Through the loop device to the disk, in other requests.
    context.see(read(kLoop, 0, 8192));
    context.see(read(kLoop, 0, 8192));
    context.see(read(kDisk, 0, 16384));
    // From the page cache of the loop's file.
    context.see(read(kLoop, 1, 4096));
    context.see(read(kLoop1, 1, 4096));
    context.see(read(kLoop1, 1, 4096));
    context.see(read(kDisk, 1, 4096));
    // Of the disk itself.
    context.see(read(kDisk, 2, 65536));
    // Another one counts beside.
    context.see(read(kOther, 2, 1024));
    CHECK(context.json() == R"({"interval_ms":100,"series":{"block_reads":[1,3,2],"block_read_kib":[16,12,65],)"
                            R"("block_read_us":[1000,3000,2000]}})");
}

TEST_CASE("disks on disks on disks, over several disks, and in a circle") {
    // A loop device's file on dm, which says nothing of its own, on a disk.
    RawContext three(kStart, {{kLoop, {kDm}}, {kDm, {kDisk}}});
    three.see(read(kLoop, 0, 4096));
    three.see(read(kDisk, 0, 4096));
    three.see(read(kLoop, 1, 4096));
    CHECK(three.json() == R"({"interval_ms":100,"series":{"block_reads":[1,1],"block_read_kib":[4,4],)"
                          R"("block_read_us":[1000,1000]}})");
    RawContext striped(kStart, {{kDm, {kDisk, kOther}}, {kLoop, {kDm}}});
    striped.see(read(kLoop, 0, 8192));
    striped.see(read(kDm, 0, 8192));
    striped.see(read(kDisk, 0, 4096));
    striped.see(read(kOther, 0, 4096));
    CHECK(striped.json() == R"({"interval_ms":100,"series":{"block_reads":[2],"block_read_kib":[8],)"
                            R"("block_read_us":[2000]}})");
    RawContext circle(kStart, {{kDm, {kDm1}}, {kDm1, {kDm}}});
    circle.see(read(kDm, 0, 1024));
    circle.see(read(kDm1, 0, 1024));
    CHECK(circle.json() == R"({"interval_ms":100,"series":{"block_reads":[2],"block_read_kib":[2],)"
                           R"("block_read_us":[2000]}})");
}

TEST_CASE("without known stacks disks add up, however many a damaged file has") {
    RawContext context(kStart);
    for (uint32_t disk = 0; disk < 5000; ++disk) {
        context.see(read(disk, 0, 1024));
    }
    CHECK(context.json() == R"({"interval_ms":100,"series":{"block_reads":[5000],"block_read_kib":[5000],)"
                            R"("block_read_us":[5000000]}})");
}

TEST_CASE("a long recording has coarser steps, and nothing is lost") {
    RawContext context(kStart);
    for (uint64_t i = 0; i < 600; ++i) {
        context.see(block(kStart, kStart + i * 100 * kMs, (i + 1) * 1024, true));
    }
    CHECK(context.json().starts_with(R"({"interval_ms":100,"series":{"block_writes":[1,1,1,)"));
    context.see(pages(kStart + 60'000 * kMs, 5 * 1024, true));
    const std::string text = context.json();
    CHECK(text.starts_with(R"({"interval_ms":200,"series":{"cache_evicted_kib":[0,)"));
    CHECK(text.find(R"(0,5],"block_writes":[2,2,2,)") != std::string::npos);
    CHECK(text.find(R"("block_write_kib":[3,7,11,15,)") != std::string::npos);
    CHECK(text.find(R"(1199],"block_write_us":[100000,)") != std::string::npos);
    context.see(pages(UINT64_MAX, 1024, true));  // a damaged time
    CHECK(context.json().find("cache_evicted_kib") != std::string::npos);
}
