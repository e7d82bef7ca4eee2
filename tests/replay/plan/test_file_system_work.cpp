// SPDX-License-Identifier: MIT
// What file systems of a recording did that a replay's does not.
#include "replay/plan/file_system_work.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "formats/oplog/header_facts.h"
#include "replay/plan/plan.h"
#include "replay/plan/recorded_doubts.h"
#include "tests/replay/job_builder.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kSize = 60 << 20;

struct Placed {
    TempDir dir;
    JobBuilder job{dir / "job.oplog"};
    const TaskId task = job.lone_task();

    Placed() {
        write_fact(job.writer().header(), fact::file_systems,
                   R"({"0:39":"overlay","0:40":"squashfs","0:41":"fuse.bindfs","8:1":"ext4"})");
    }
    FileId file(std::string_view path, uint64_t device, Origin origin = Origin::existed) {
        const FileId id = job.file(path, origin);
        FileRow row = job.writer().tables().files[id];
        row.size = kSize;
        row.size_exact = true;
        row.device = device;
        job.writer().update_file(id, row);
        return id;
    }
    void open_to_write(FileId id, int64_t ns, int64_t flags = O_RDWR) {
        job.add(task, {.kind = OpKind::open,
                       .duration = ns,
                       .result = 3,
                       .handle = job.handle(id, flags),
                       .fd = -1,
                       .file = id,
                       .flags = flags});
        job.skip(ns);
    }
    void read(FileId id, int64_t bytes) {
        const HandleId handle = job.open(task, id);
        job.pread(task, handle, 0, bytes);
        job.close(task, handle);
    }
    RecordedDoubts look() {
        const LogReader log = job.finish();
        return recorded_doubts(make_plan(log, OpFilter::all(), PathMap{}));
    }
};

constexpr uint64_t kOverlay = 39, kSquashfs = 40, kFuse = 41, kExt4 = 8 << 20 | 1;

}  // namespace

TEST_CASE_FIXTURE(Placed, "file system work: overlayfs copies a lower file before its first change") {
    const FileId big = file("/data/big", kOverlay);
    SUBCASE("opened to be written") { open_to_write(big, 70 * kMs); }
    SUBCASE("its mode is changed") {
        job.add(task, {.kind = OpKind::chmod, .duration = 70 * kMs, .fd = -1, .file = big, .mode = 0600});
    }
    open_to_write(big, 80 * kMs);  // once only
    read(big, 100);
    const RecordedDoubts doubts = look();
    CHECK(doubts.work.copied_up_bytes == kSize);
    CHECK(doubts.work.copied_up_ns == 70 * kMs);
    CHECK(
        work_of_file_systems(doubts, 0.3) ==
        "overlayfs copied 60.0 MiB of lower files (70.0 ms when recorded) before the job first changed them: a replay "
        "does not");
}

TEST_CASE_FIXTURE(Placed, "file system work: what overlayfs has in its upper layer already it does not copy") {
    SUBCASE("too fast for a copy") { open_to_write(file("/data/big", kOverlay), 30 * kUs); }
    SUBCASE("as fast as memory is not") { open_to_write(file("/data/big", kOverlay), 6 * kMs); }
    SUBCASE("another file system") { open_to_write(file("/data/big", kExt4), 70 * kMs); }
    SUBCASE("made by the job") { open_to_write(file("/data/big", kOverlay, Origin::created), 70 * kMs); }
    SUBCASE("only read") { open_to_write(file("/data/big", kOverlay), 70 * kMs, O_RDONLY); }
    read(file("/data/other", kOverlay), 100);
    CHECK(look().work.copied_up_bytes == 0);
}

TEST_CASE_FIXTURE(Placed, "file system work: a copy that is little of what the job read is none") {
    open_to_write(file("/data/big", kOverlay), 70 * kMs);
    for (int i = 0; i < 20; ++i) {
        read(file("/data/" + std::to_string(i), kExt4), static_cast<int64_t>(kSize));
    }
    const RecordedDoubts doubts = look();
    CHECK(doubts.work.copied_up_bytes == kSize);
    CHECK(work_of_file_systems(doubts, 0.1).empty());
}

TEST_CASE_FIXTURE(Placed, "file system work: squashfs compresses what it holds") {
    read(file("/data/packed", kSquashfs), 40 << 20);
    read(file("/data/plain", kExt4), 60 << 20);
    const RecordedDoubts doubts = look();
    CHECK(work_of_file_systems(doubts, 0.3) ==
          "40.0 MiB of the 100 MiB lay on squashfs, which compresses them: they are not compressed here");
    CHECK(work_of_file_systems(doubts, 0.5).empty());
}

TEST_CASE_FIXTURE(Placed, "file system work: a job that serves its files by FUSE reads them twice here") {
    constexpr uint64_t kUnseen = 77;  // mounted and unmounted by the job
    uint64_t device = kFuse;
    SUBCASE("its own, unmounted again") { device = kUnseen; }
    SUBCASE("its own") {}
    SUBCASE("another's") {
        read(file("/mnt/m/f", kFuse), 40 << 20);
        read(file("/src/f", kExt4), 40 << 20);
        CHECK(work_of_file_systems(look(), 0.3).empty());
        return;
    }
    read(file("/mnt/m/f", device), 40 << 20);
    read(file("/src/f", kExt4), 40 << 20);
    job.file("/dev/fuse", Origin::existed, Role::system, FileType::character);
    const std::string why = work_of_file_systems(look(), 0.3);
    CHECK(why.find("the job serves 40.0 MiB of its files itself, by FUSE") == 0);
}
