// SPDX-License-Identifier: MIT
// Descriptors, positions, file generations, sizes and origins as the assembler follows them.
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {
namespace {

constexpr int64_t kCreate = 0100, kExclusive = 0200, kTruncate = 01000, kAppend = 02000, kCloseOnExec = 02000000;
constexpr int64_t kWriteOnly = 1, kReadWrite = 2;
constexpr int64_t kMissing = -2, kBadDescriptor = -9;
constexpr uint32_t kRegular = 0100644, kDirectory = 0040755, kLink = 0120777;

std::vector<int64_t> offsets(const std::vector<Op>& ops) {
    std::vector<int64_t> out;
    for (const Op& op : ops) {
        out.push_back(op.offset);
    }
    return out;
}

}  // namespace

TEST_CASE("reads follow the position, preads do not move it") {
    Feeder f;
    f.open("/d/a", 3);
    f.on_fd(OpKind::read, 3, 10, 10);
    f.at(OpKind::pread, 3, 50, 50, 1000);
    f.on_fd(OpKind::read, 3, 5, 10);
    f.on_fd(OpKind::read, 3, -5, 10);
    f.on_fd(OpKind::read, 3, 7, 7);
    f.lseek(3, -2, 1, 20);
    f.on_fd(OpKind::read, 3, 1, 1);
    const auto log = f.finish();
    CHECK(offsets(log.of_kind(OpKind::read)) == std::vector<int64_t>{0, 10, 15, 15, 20});
    CHECK(log.of_kind(OpKind::read)[2].result == -5);
    CHECK(log.of_kind(OpKind::pread)[0].offset == 1000);
    CHECK(log.counter("offsets_reconstructed") == 5);
    CHECK(log.file("/d/a").size == 1050);
    CHECK_FALSE(log.file("/d/a").size_exact);
    CHECK(log.file("/d/a").origin == Origin::existed);
}

TEST_CASE("dup shares the position, a second open does not") {
    Feeder f;
    f.open("/d/a", 3);
    f.open("/d/a", 4);
    RawCall dup = f.raw(OpKind::dup, 5);
    dup.fd = 3;
    f.assembler.call(dup);
    f.on_fd(OpKind::read, 3, 10, 10);
    f.on_fd(OpKind::read, 5, 10, 10);
    f.on_fd(OpKind::read, 4, 10, 10);
    f.on_fd(OpKind::close, 3, 0);
    f.on_fd(OpKind::read, 5, 10, 10);
    const auto log = f.finish();
    const auto reads = log.of_kind(OpKind::read);
    CHECK(offsets(reads) == std::vector<int64_t>{0, 10, 0, 20});
    CHECK(reads[0].handle == reads[1].handle);
    CHECK(reads[0].handle != reads[2].handle);
    CHECK(reads[1].fd == 5);
    CHECK(log.of_kind(OpKind::dup)[0].handle == reads[0].handle);
}

TEST_CASE("dup2 and F_DUPFD replace and make descriptors") {
    Feeder f;
    f.open("/d/a", 3);
    f.open("/d/b", 4);
    RawCall dup2 = f.raw(OpKind::dup, 4);
    dup2.fd = 3;
    dup2.fd2 = 4;
    dup2.arg = 2;
    f.assembler.call(dup2);
    f.on_fd(OpKind::read, 4, 10, 10);
    RawCall fcntl = f.raw(OpKind::fcntl, 20);
    fcntl.fd = 4;
    fcntl.arg = 0;
    fcntl.flags = 20;
    f.assembler.call(fcntl);
    f.on_fd(OpKind::read, 20, 10, 10);
    const auto log = f.finish();
    const auto reads = log.of_kind(OpKind::read);
    CHECK(log.path_of(reads[0]) == "/d/a");
    CHECK(reads[1].offset == 10);
    const auto dups = log.of_kind(OpKind::dup);
    REQUIRE(dups.size() == 2);
    CHECK(dups[0].fd2 == 4);
    CHECK(dups[1].arg == 4);
    CHECK(dups[1].fd2 == 20);
}

TEST_CASE("fork copies the table and shares the instances") {
    Feeder f;
    f.open("/d/a", 3);
    f.on_fd(OpKind::read, 3, 10, 10);
    f.spawn(200);
    f.as(200, 200);
    f.on_fd(OpKind::read, 3, 10, 10);
    f.on_fd(OpKind::close, 3, 0);
    f.open("/d/b", 3);
    f.as(100, 100);
    f.on_fd(OpKind::read, 3, 10, 10);
    const auto log = f.finish();
    REQUIRE(log.tables().processes.size() == 3);
    CHECK(log.tables().processes[2].parent == 1);
    CHECK(log.of_kind(OpKind::spawn)[0].peer == 2);
    const auto mine = log.ops(1);
    CHECK(mine.back().offset == 20);
    CHECK(log.path_of(mine.back()) == "/d/a");
}

TEST_CASE("threads and CLONE_FILES share the table") {
    Feeder f;
    f.spawn(101, 0x10f00);  // CLONE_THREAD and company
    f.as(100, 101);
    f.open("/d/a", 3);
    f.as(100, 100);
    f.on_fd(OpKind::read, 3, 10, 10);
    f.spawn(300, 0x400 | 17);
    f.as(300, 300);
    f.on_fd(OpKind::close, 3, 0);
    f.as(100, 100);
    f.on_fd(OpKind::read, 3, kBadDescriptor, 10);
    const auto log = f.finish();
    CHECK(log.tables().tasks.size() == 4);
    CHECK(log.tables().processes.size() == 3);
    CHECK(log.tables().tasks[2].process == 1);
    CHECK(log.of_kind(OpKind::read).size() == 1);
    CHECK(log.counter("calls_on_bad_descriptors") == 1);
}

TEST_CASE("a thread takes its directory and its descriptors out of what its process shares") {
    constexpr int64_t kFs = 0x200, kFiles = 0x400;
    Feeder f;
    f.assembler.set_directory(100, "/d");
    f.spawn(101, 0x10f00);
    f.assembler.unshare(100, 101, kFs);
    f.assembler.set_directory(100, "sub", 101);
    f.as(100, 100);
    f.open("a", 3);
    f.as(100, 101);
    f.open("b", 4);
    f.on_fd(OpKind::read, 3, 10, 10);  // descriptors are still shared
    f.spawn(300);
    f.as(300, 300);
    f.open("c", 5);
    f.as(100, 101);
    f.assembler.unshare(100, 101, kFiles);
    f.open("d", 5);
    f.as(100, 100);
    f.open("e", 5);
    f.on_fd(OpKind::read, 5, 10, 10);
    f.as(100, 101);
    f.on_fd(OpKind::read, 5, 10, 10);
    // The first thread, of which is said what is said of the process.
    f.as(100, 100);
    f.assembler.unshare(100, 100, kFs);
    f.assembler.set_directory(100, "/g");
    f.open("f", 6);
    f.as(100, 101);
    f.open("g", 7);
    // A child that shares the directory moves its parent.
    f.as(100, 100);
    f.spawn(400, kFs | 17);
    f.assembler.set_directory(400, "/h");
    f.as(100, 100);
    f.open("h", 8);
    // A thread that never shared it.
    f.spawn(102, 0x10d00);
    f.assembler.set_directory(100, "/i", 102);
    f.as(100, 100);
    f.open("i", 9);
    const auto log = f.finish();
    std::vector<std::string> opened;
    for (const TaskId task : {1U, 2U, 3U}) {
        for (const Op& op : log.ops(task)) {
            if (op.kind == OpKind::open || op.kind == OpKind::read) {
                opened.push_back(log.path_of(op));
            }
        }
    }
    CHECK(opened == std::vector<std::string>{"/d/a", "/d/e", "/d/e", "/g/f", "/h/h", "/h/i", "/d/sub/b", "/d/a",
                                             "/d/sub/d", "/d/sub/d", "/d/sub/g", "/d/sub/c"});
}

TEST_CASE("exec ends what is marked close-on-exec, by flag and by F_SETFD") {
    Feeder f;
    f.open("/d/a", 3, kCloseOnExec);
    f.open("/d/b", 4);
    f.open("/d/c", 5);
    RawCall set = f.raw(OpKind::fcntl, 0);
    set.fd = 4;
    set.arg = 2;
    set.flags = 1;
    f.assembler.call(set);
    f.on_path(OpKind::exec, "/bin/x", 0);
    f.on_fd(OpKind::read, 5, 1, 1);
    f.on_fd(OpKind::read, 3, kBadDescriptor, 1);
    f.on_fd(OpKind::read, 4, kBadDescriptor, 1);
    const auto log = f.finish();
    CHECK(log.of_kind(OpKind::read).size() == 1);
    CHECK(log.of_kind(OpKind::exec).size() == 1);
}

TEST_CASE("close_range closes what is open, or marks it") {
    Feeder f;
    f.open("/d/a", 3);
    f.open("/d/b", 4);
    f.open("/d/c", 9);
    RawCall mark = f.raw(OpKind::close, 0);
    mark.fd = 9;
    mark.fd2 = 9;
    mark.flags = 4;
    f.assembler.call(mark);
    RawCall range = f.raw(OpKind::close, 0);
    range.fd = 3;
    range.fd2 = 8;
    f.assembler.call(range);
    f.on_fd(OpKind::read, 9, 1, 1);
    f.on_path(OpKind::exec, "/bin/x", 0);
    f.on_fd(OpKind::read, 9, kBadDescriptor, 1);
    const auto log = f.finish();
    const auto closes = log.of_kind(OpKind::close);
    REQUIRE(closes.size() == 2);
    CHECK(closes[0].fd == 3);
    CHECK(closes[1].fd == 4);
    CHECK(closes[0].duration + closes[1].duration == 100);
    CHECK(log.of_kind(OpKind::read).size() == 1);
}

TEST_CASE("a path removed and made anew is another generation") {
    Feeder f;
    f.open("/d/a", 3);
    f.on_path(OpKind::unlink, "/d/a", 0);
    f.on_path(OpKind::stat, "/d/a", kMissing);
    f.open("/d/a", 4, kCreate | kWriteOnly);
    f.on_fd(OpKind::write, 4, 10, 10);
    f.on_fd(OpKind::read, 3, 5, 5);
    const auto log = f.finish();
    const auto files = log.files("/d/a");
    REQUIRE(files.size() == 2);
    CHECK(files[0].generation == 0);
    CHECK(files[0].origin == Origin::existed);
    CHECK(files[1].generation == 1);
    CHECK(files[1].origin == Origin::created);
    CHECK(log.of_kind(OpKind::read)[0].handle != log.of_kind(OpKind::write)[0].handle);
}

TEST_CASE("rename gives the new name a row of its own and ends what was there") {
    Feeder f;
    f.on_path(OpKind::stat, "/d/ck.bin", 0, 77, kRegular);
    f.open("/d/ck.tmp", 3, kCreate | kExclusive | kWriteOnly);
    f.on_fd(OpKind::write, 3, 1000, 1000);
    f.on_fd(OpKind::fsync, 3, 0);
    f.two(OpKind::rename, "/d/ck.tmp", "/d/ck.bin");
    f.open("/d/ck.bin", 4);
    f.on_path(OpKind::stat, "/d/ck.tmp", kMissing);
    const auto log = f.finish();
    const auto target = log.files("/d/ck.bin");
    REQUIRE(target.size() == 2);
    CHECK(target[0].origin == Origin::existed);
    CHECK(target[0].size == 77);
    CHECK(target[1].origin == Origin::created);
    CHECK(target[1].role == Role::checkpoint);
    const auto source = log.files("/d/ck.tmp");
    REQUIRE(source.size() == 2);
    CHECK(source[0].role == Role::checkpoint);  // under the name it was written by, too
    CHECK(source[1].origin == Origin::absent);
    CHECK(log.of_kind(OpKind::open)[1].file == log.of_kind(OpKind::rename)[0].file2);
    CHECK(log.counter("files_vanished_unseen") == 0);
}

TEST_CASE("what a job writes and renames is its output, also where the name ends as that of a program") {
    Feeder f;
    for (const char* const path : {"/d/s.tmp", "/usr/lib/python3/x.tmp"}) {
        f.open(path, 3, kCreate | kExclusive | kWriteOnly);
        f.on_fd(OpKind::write, 3, 1000, 1000);
        f.on_fd(OpKind::close, 3, 0);
    }
    f.two(OpKind::rename, "/d/s.tmp", "/d/s.py");
    f.two(OpKind::rename, "/usr/lib/python3/x.tmp", "/usr/lib/python3/x.py");
    f.open("/d/other.py", 3);
    f.on_fd(OpKind::read, 3, 1000, 1000);
    const auto log = f.finish();
    CHECK(log.file("/d/s.py").role == Role::log);
    CHECK(log.file("/usr/lib/python3/x.py").role == Role::program);
    CHECK(log.file("/d/other.py").role == Role::program);
}

TEST_CASE("a directory that the job makes for more than programs is no program's") {
    Feeder f;
    for (const char* const path :
         {"/r/.git", "/r/.git/hooks", "/r/.git/objects", "/r/.git/objects/12", "/r/node_modules"}) {
        f.on_path(OpKind::mkdir, path, 0);
    }
    f.open("/r/.git/hooks/a.sample", 3, kCreate | kExclusive | kWriteOnly);
    f.open("/r/.git/objects/12/34", 4, kCreate | kExclusive | kWriteOnly);
    f.on_fd(OpKind::write, 4, 1000, 1000);
    f.on_path(OpKind::stat, "/r/old/.git/objects", 0, 0, kDirectory);
    f.open("/r/old/.git/objects/12/34", 5);
    f.on_fd(OpKind::read, 5, 1000, 1000);
    const auto log = f.finish();
    CHECK(log.file("/r/.git").role == Role::unknown);
    CHECK(log.file("/r/.git/objects").role == Role::unknown);
    CHECK(log.file("/r/.git/hooks").role == Role::unknown);  // a repository of its own
    CHECK(log.file("/r/node_modules").role == Role::program);
    CHECK(log.file("/r/old/.git/objects").role == Role::program);  // a replay finds it there
}

TEST_CASE("what is missing below a renamed directory was not there before, either") {
    Feeder f;
    f.on_path(OpKind::mkdir, "/d/a", 0);
    f.on_path(OpKind::mkdir, "/d/a/b", 0);
    f.two(OpKind::rename, "/d/a", "/d/made");
    f.on_path(OpKind::stat, "/d/made/b/t", kMissing);
    f.open("/d/made/b/t", 3, kCreate | kExclusive | kWriteOnly);
    f.open("/d/made/u", 4, kCreate | kExclusive | kWriteOnly);
    f.on_path(OpKind::stat, "/d/made/b/unseen", 0, 5, kRegular);  // in a directory that the job made
    f.on_path(OpKind::stat, "/d/old", 0, 0, kDirectory);
    f.two(OpKind::rename, "/d/old", "/d/new");
    f.on_path(OpKind::stat, "/d/new/t", kMissing);
    f.open("/d/new/t", 5, kCreate | kExclusive | kWriteOnly);
    f.open("/d/new/never", kMissing);
    f.open("/d/new/there", 6);
    f.on_fd(OpKind::read, 6, 10, 10);
    const auto log = f.finish();
    for (const char* const none : {"/d/a/b/t", "/d/a/u", "/d/a/b/unseen", "/d/old/t", "/d/old/never", "/d/a/b/never"}) {
        INFO(none);
        CHECK(log.files(none).empty());
    }
    CHECK(log.file("/d/made/b/unseen").origin == Origin::created);
    CHECK(log.file("/d/new/never").origin == Origin::absent);
    CHECK(log.file("/d/old/there").origin == Origin::existed);
    CHECK(log.file("/d/new/there").origin == Origin::created);
}

TEST_CASE("renaming a directory moves what is below it, known or not") {
    Feeder f;
    f.on_path(OpKind::mkdir, "/d/new", 0);
    f.open("/d/new/a", 3, kCreate | kWriteOnly);
    f.on_path(OpKind::stat, "/d/old", 0, {}, kDirectory);
    f.on_path(OpKind::stat, "/d/old/x", 0, 5, kRegular);
    f.two(OpKind::rename, "/d/old", "/d/gone");
    f.two(OpKind::rename, "/d/new", "/d/old");
    f.open("/d/old/a", 4);
    f.on_path(OpKind::stat, "/d/old/x", kMissing);
    f.open("/d/gone/unseen", 5);
    const auto log = f.finish();
    CHECK(log.file("/d/old/a").origin == Origin::created);
    CHECK(log.file("/d/old/x").origin == Origin::absent);
    CHECK(log.file("/d/gone/unseen").origin == Origin::created);
    CHECK(log.file("/d/old/unseen").origin == Origin::existed);
    CHECK(log.file("/d/new/a").origin == Origin::created);
    CHECK(log.file("/d/old").type == FileType::directory);
}

TEST_CASE("what lies below a directory that was renamed twice was below its first name") {
    Feeder f;
    f.two(OpKind::rename, "/d/new", "/d/a");
    f.two(OpKind::rename, "/d/other", "/d/new");
    f.two(OpKind::rename, "/d/a", "/d/other");
    f.open("/d/other/top", 3);
    f.open("/d/new/o", 4);
    const auto log = f.finish();
    CHECK(log.file("/d/new/top").origin == Origin::existed);
    CHECK(log.file("/d/other/o").origin == Origin::existed);
    CHECK(log.file("/d/other/top").origin == Origin::created);
    const Tables& tables = log.reader.tables();
    for (FileId id = 1; id < tables.files.size(); ++id) {
        CHECK(tables.path(id) != "/d/a/top");
    }
}

TEST_CASE("a hard link is a new name") {
    Feeder f;
    f.open("/d/a", 3, kCreate | kExclusive | kWriteOnly);
    f.two(OpKind::link, "/d/a", "/d/b");
    f.on_path(OpKind::unlink, "/d/a", 0);
    f.open("/d/b", 4);
    const auto log = f.finish();
    CHECK(log.file("/d/b").origin == Origin::created);
    CHECK(log.of_kind(OpKind::open)[1].file == log.of_kind(OpKind::link)[0].file2);
}

TEST_CASE("origins: existed, created, absent") {
    Feeder f;
    f.on_path(OpKind::stat, "/d/absent", kMissing);
    f.on_path(OpKind::stat, "/d/late", kMissing);
    f.open("/d/late", 3, kCreate | kWriteOnly);
    f.open("/d/exclusive", 4, kCreate | kExclusive | kWriteOnly);
    f.open("/d/maybe", 5, kCreate | kWriteOnly);
    f.open("/d/log", 6, kCreate | kWriteOnly | kAppend);
    RawCall fstat = f.raw(OpKind::fstat, 0);
    fstat.fd = 6;
    fstat.stat_size = 500;
    fstat.stat_mode = kRegular;
    f.assembler.call(fstat);
    f.on_fd(OpKind::write, 6, 10, 10);
    f.on_path(OpKind::access, "/d/refused", -13);
    f.on_path(OpKind::mkdir, "/d/there", -17);
    f.on_path(OpKind::unlink, "/d/was", 0);
    const auto log = f.finish();
    CHECK(log.file("/d/absent").origin == Origin::absent);
    CHECK(log.file("/d/late").origin == Origin::created);
    CHECK(log.files("/d/late").size() == 1);
    CHECK(log.file("/d/exclusive").origin == Origin::created);
    CHECK(log.file("/d/maybe").origin == Origin::created);
    CHECK(log.counter("creations_guessed") == 1);
    CHECK(log.file("/d/log").origin == Origin::existed);
    CHECK(log.file("/d/log").size == 500);
    CHECK(log.of_kind(OpKind::write)[0].offset == 500);
    CHECK(log.file("/d/refused").origin == Origin::unknown);
    CHECK(log.file("/d/there").origin == Origin::existed);
    CHECK(log.file("/d/there").type == FileType::directory);
    CHECK(log.file("/d/was").origin == Origin::existed);
}

TEST_CASE("size at first sight leaves out what the recording wrote") {
    Feeder f;
    f.open("/d/grown", 3, kReadWrite);
    f.at(OpKind::pwrite, 3, 100, 100, 1000);
    f.on_path(OpKind::stat, "/d/grown", 0, 1100, kRegular);
    f.open("/d/appended", 4, kWriteOnly | kAppend);
    f.on_fd(OpKind::write, 4, 30, 30);
    f.on_path(OpKind::stat, "/d/appended", 0, 130, kRegular);
    f.open("/d/emptied", 5, kWriteOnly | kTruncate);
    f.on_fd(OpKind::write, 5, 40, 40);
    f.on_path(OpKind::stat, "/d/emptied", 0, 40, kRegular);
    f.open("/d/ended", 6);
    f.on_fd(OpKind::read, 6, 321, 4096);
    f.on_path(OpKind::stat, "/d/plain", 0, 9, kRegular);
    f.open("/d/sought", 7);
    f.lseek(7, 0, 2, 4444);
    const auto log = f.finish();
    CHECK(log.file("/d/grown").size == 0);
    CHECK(log.file("/d/appended").size == 100);
    CHECK(log.file("/d/emptied").size == 0);
    CHECK(log.file("/d/ended").size == 321);
    CHECK(log.file("/d/ended").size_exact);
    CHECK(log.file("/d/plain").size == 9);
    CHECK(log.file("/d/plain").size_exact);
    CHECK(log.file("/d/sought").size == 4444);
    CHECK(log.file("/d/sought").size_exact);
}

TEST_CASE("an offset does not change where an append goes") {
    Feeder f;
    f.open("/d/new", 3, kWriteOnly | kAppend | kTruncate);
    f.on_fd(OpKind::write, 3, 10, 10);
    f.at(OpKind::pwrite, 3, 10, 10, 0);
    f.at(OpKind::pwrite, 3, 10, 10, 5000);
    f.on_path(OpKind::stat, "/d/new", 0, 30, kRegular);
    f.open("/d/old", 4, kWriteOnly | kAppend);
    f.at(OpKind::pwrite, 4, 10, 10, 5000);
    f.on_path(OpKind::stat, "/d/old", 0, 110, kRegular);
    const auto log = f.finish();
    CHECK(offsets(log.of_kind(OpKind::pwrite)) == std::vector<int64_t>{0, 5000, 5000});  // as the calls were made
    CHECK(log.file("/d/new").size == 0);
    CHECK(log.file("/d/old").size == 100);
    CHECK(log.counter("append_offsets_unknown") == 1);
}

TEST_CASE("an unknown end: appends count from 0 and say so") {
    Feeder f;
    f.open("/d/a", 3, kWriteOnly | kAppend);
    f.on_fd(OpKind::write, 3, 10, 10);
    f.on_fd(OpKind::write, 3, 10, 10);
    const auto log = f.finish();
    CHECK(offsets(log.of_kind(OpKind::write)) == std::vector<int64_t>{0, 10});
    CHECK(log.counter("append_offsets_unknown") == 2);
}

TEST_CASE("paths are relative to the directory given, the dirfd, or the current one") {
    Feeder f;
    f.assembler.set_directory(100, "/w");
    f.open("a/../b//c/.", 3);
    RawCall at = f.raw(OpKind::stat, 0);
    at.path = "x";
    at.directory = "/given";
    f.assembler.call(at);
    f.open("/dir", 4, 0200000);
    at = f.raw(OpKind::stat, 0);
    at.path = "y";
    at.fd = 4;
    f.assembler.call(at);
    f.assembler.set_directory(100, "../v");
    f.spawn(200);
    f.as(200, 200);
    f.on_path(OpKind::stat, "z", 0);
    at = f.raw(OpKind::stat, 0);
    at.path = "lost";
    at.fd = 55;
    f.assembler.call(at);
    const auto log = f.finish();
    CHECK(log.path_of(log.of_kind(OpKind::open)[0]) == "/w/b/c");
    const auto stats = log.of_kind(OpKind::stat);
    CHECK(log.path_of(stats[0]) == "/given/x");
    CHECK(log.path_of(stats[1]) == "/dir/y");
    CHECK(log.path_of(stats[2]) == "/v/z");
    CHECK(log.path_of(stats[3]) == "/v/lost");
    CHECK(log.counter("directories_unknown") == 1);
    CHECK(log.tables().handles[2].kind == HandleKind::directory);
}

TEST_CASE("symbolic links: the row is the link, its target gets the size") {
    Feeder f;
    RawCall lstat = f.raw(OpKind::stat, 0);
    lstat.path = "/d/link";
    lstat.flags = 0x100;
    lstat.stat_mode = kLink;
    lstat.stat_size = 8;
    f.assembler.call(lstat);
    f.on_path(OpKind::stat, "/d/link", 0, 1234, kRegular);
    RawCall readlink = f.raw(OpKind::readlink, 8);
    readlink.path = "/d/link";
    readlink.link_target = "../e/real";
    f.assembler.call(readlink);
    RawCall symlink = f.raw(OpKind::symlink, 0);
    symlink.path = "/d/new";
    symlink.text = "link";
    f.assembler.call(symlink);
    const auto log = f.finish();
    CHECK(log.file("/d/link").type == FileType::symlink);
    CHECK(log.tables().strings[log.file("/d/link").target] == "../e/real");
    CHECK(log.file("/e/real").size == 1234);
    CHECK(log.file("/e/real").origin == Origin::existed);
    CHECK(log.file("/d/new").origin == Origin::created);
    CHECK(log.file("/d/new").type == FileType::symlink);
    CHECK(log.tables().strings[log.of_kind(OpKind::symlink)[0].text] == "link");
}

TEST_CASE("mappings are numbered, cut and moved") {
    Feeder f;
    f.open("/d/a", 3);
    RawCall mmap = f.raw(OpKind::mmap, 0);
    mmap.fd = 3;
    mmap.address = 0x10000;
    mmap.size = 0x5000;
    mmap.offset = 0x1000;
    mmap.mode = 1;
    mmap.flags = 2;
    f.assembler.call(mmap);
    mmap = f.raw(OpKind::mmap, 0);  // anonymous
    mmap.address = 0x90000;
    mmap.size = 0x1000;
    mmap.flags = 0x22;
    f.assembler.call(mmap);
    const auto memory = [&](OpKind kind, uint64_t address, int64_t size) {
        RawCall call = f.raw(kind, 0);
        call.address = address;
        call.size = size;
        f.assembler.call(call);
    };
    memory(OpKind::madvise, 0x12000, 0x1000);
    memory(OpKind::madvise, 0x90000, 0x1000);
    memory(OpKind::munmap, 0x11000, 0x1000);
    memory(OpKind::msync, 0xf000, 0x10000);  // what is left: two pieces
    RawCall mremap = f.raw(OpKind::mremap, 0x70000);
    mremap.address = 0x12000;
    mremap.arg = 0x3000;
    mremap.size = 0x8000;
    mremap.address2 = 0x70000;
    f.assembler.call(mremap);
    memory(OpKind::munmap, 0x73000, 0x100);
    f.on_fd(OpKind::close, 3, 0);
    f.spawn(200);
    f.as(200, 200);
    memory(OpKind::munmap, 0x10000, 0x1000);
    const auto log = f.finish();
    const auto maps = log.of_kind(OpKind::mmap);
    REQUIRE(maps.size() == 1);
    CHECK(maps[0].map == 1);
    CHECK(maps[0].result == 0);
    CHECK(maps[0].offset == 0x1000);
    const auto advice = log.of_kind(OpKind::madvise);
    REQUIRE(advice.size() == 1);
    CHECK(advice[0].offset == 0x2000);
    const auto syncs = log.of_kind(OpKind::msync);
    REQUIRE(syncs.size() == 2);
    CHECK(syncs[0].offset == 0);
    CHECK(syncs[0].size == 0x1000);
    CHECK(syncs[1].offset == 0x2000);
    CHECK(syncs[1].size == 0x3000);
    CHECK(log.of_kind(OpKind::mremap)[0].offset == 0x2000);
    CHECK(log.of_kind(OpKind::mremap)[0].result == 0);
    const auto unmaps = log.of_kind(OpKind::munmap);
    REQUIRE(unmaps.size() == 3);
    CHECK(unmaps[1].offset == 0x5000);
    CHECK(unmaps[1].size == 0x1000);
    CHECK(unmaps[2].offset == 0);  // the child has the parent's mappings
    CHECK(log.file("/d/a").size == 0x6000);
}

TEST_CASE("mremap of a part that stays where it was, too") {
    Feeder f;
    f.open("/d/a", 3);
    RawCall mmap = f.raw(OpKind::mmap, 0);
    mmap.fd = 3;
    mmap.address = 0x10000;
    mmap.size = 0x5000;
    f.assembler.call(mmap);
    RawCall mremap = f.raw(OpKind::mremap, 0x70000);
    mremap.address = 0x12000;
    mremap.arg = mremap.size = 0x2000;
    mremap.flags = 5;  // MREMAP_MAYMOVE | MREMAP_DONTUNMAP
    mremap.address2 = 0x70000;
    f.assembler.call(mremap);
    for (const uint64_t address : {0x12000, 0x71000}) {
        const auto at = f.assembler.mapped_at(100, address);
        CHECK(at.map == 1);
        CHECK(at.offset == (address == 0x12000 ? 0x2000 : 0x3000));
    }
    f.finish();
}

TEST_CASE("pipes and sockets carry messages with offsets") {
    Feeder f;
    RawCall pipe = f.raw(OpKind::pipe, 0);
    pipe.fd = 3;
    pipe.fd2 = 4;
    pipe.arg = 1;
    f.assembler.call(pipe);
    f.spawn(200);
    f.on_fd(OpKind::write, 4, 10, 10);
    f.on_fd(OpKind::write, 4, 20, 20);
    f.as(200, 200);
    f.on_fd(OpKind::read, 3, 25, 100);
    f.on_fd(OpKind::read, 3, 5, 100);
    f.assembler.adopt(200, 7, HandleKind::socket);
    f.on_fd(OpKind::receive, 7, 9, 9);
    const auto log = f.finish();
    CHECK(log.of_kind(OpKind::write).empty());
    CHECK(offsets(log.of_kind(OpKind::send)) == std::vector<int64_t>{0, 10});
    CHECK(offsets(log.of_kind(OpKind::receive)) == std::vector<int64_t>{0, 25, 0});
    const Op made = log.of_kind(OpKind::pipe).at(0);
    CHECK(log.of_kind(OpKind::send)[0].handle == made.handle2);
    CHECK(log.of_kind(OpKind::receive)[0].handle == made.handle);
    CHECK(log.tables().handles[made.handle].kind == HandleKind::pipe);
}

TEST_CASE("copies use positions unless offsets are given") {
    Feeder f;
    f.open("/d/a", 3);
    f.open("/d/b", 4, kCreate | kExclusive | kWriteOnly);
    for (const auto offset : {std::optional<int64_t>(), std::optional<int64_t>(500), std::optional<int64_t>()}) {
        RawCall call = f.raw(OpKind::copy_file_range, 100);
        call.fd = 3;
        call.fd2 = 4;
        call.size = 100;
        call.offset = offset;
        f.assembler.call(call);
    }
    const auto log = f.finish();
    const auto ops = log.of_kind(OpKind::copy_file_range);
    CHECK(offsets(ops) == std::vector<int64_t>{0, 500, 100});
    CHECK(ops[2].offset2 == 200);
    CHECK(ops[0].flags == 0);
    CHECK(ops[1].flags == kCopyFromOffset);
    CHECK(log.file("/d/b").size == 300);
    CHECK(log.file("/d/a").size == 600);
}

TEST_CASE("unknown descriptors are adopted once for the whole family, by name where there is one") {
    Feeder f;
    f.spawn(200);
    f.as(200, 200);
    f.on_fd(OpKind::read, 5, 10, 10, "/d/open");
    f.as(100, 100);
    f.on_fd(OpKind::read, 5, 10, 10, "/d/open");
    f.on_fd(OpKind::write, 1, 10, 10, "pipe:[77]");
    f.on_fd(OpKind::write, 2, 10, 10);
    f.lseek(9, 0, 1, 44);
    f.on_fd(OpKind::read, 9, 6, 6);
    f.on_fd(OpKind::read, 11, 6, 6, "/dev/null<char 1:3>");
    const auto log = f.finish();
    const auto reads = log.of_kind(OpKind::read);
    REQUIRE(reads.size() == 4);
    std::map<std::string, std::vector<Op>> by_path;
    for (const Op& op : reads) {
        by_path[log.path_of(op)].push_back(op);
    }
    REQUIRE(by_path["/d/open"].size() == 2);
    CHECK(by_path["/d/open"][0].handle == by_path["/d/open"][1].handle);
    const HandleRow& row = log.tables().handles[by_path["/d/open"][0].handle];
    CHECK(row.inherited);
    CHECK(row.process == 1);
    CHECK(row.fd == 5);
    CHECK(log.counter("offsets_assumed") == 3);
    CHECK(by_path["/unnamed/pid-100-fd-9-1"].at(0).offset == 44);
    CHECK(log.file("/dev/null").type == FileType::character);
    CHECK(log.of_kind(OpKind::send).size() == 2);
}

TEST_CASE("a descriptor that turns out to be another file is corrected") {
    Feeder f;
    f.open("/d/a", 3, 0, "/d/a");
    f.on_fd(OpKind::read, 3, 10, 10, "/d/a");
    f.on_fd(OpKind::read, 3, 10, 10, "/d/other");
    f.open("/d/link", 4, 0, "/real");
    f.on_fd(OpKind::read, 4, 10, 10, "/real");
    f.open("/d/t", 5, kCreate | kWriteOnly, "/d/t");
    f.two(OpKind::rename, "/d/t", "/d/u");
    f.on_fd(OpKind::write, 5, 10, 10, "/d/u");
    f.on_path(OpKind::unlink, "/d/u", 0);
    f.on_fd(OpKind::write, 5, 10, 10, "/d/u(deleted)");
    const auto log = f.finish();
    CHECK(log.counter("descriptors_corrected") == 1);
    const auto reads = log.of_kind(OpKind::read);
    CHECK(log.path_of(reads[1]) == "/d/other");
    CHECK(log.path_of(reads[2]) == "/d/link");
    CHECK(offsets(log.of_kind(OpKind::write)) == std::vector<int64_t>{0, 10});
}

TEST_CASE("without adoption calls on unknown descriptors are a loss") {
    Assembler::Options options;
    options.adopt_unknown_fds = false;
    Feeder f(options);
    f.on_fd(OpKind::read, 5, 10, 10);
    const auto log = f.finish();
    CHECK(log.op_count() == 0);
    CHECK(log.counter("calls_on_unknown_descriptors") == 1);
    CHECK(log.tables().losses() == 1);
}

TEST_CASE("ops are sorted by begin within a task") {
    Feeder f;
    Op span;
    span.kind = OpKind::compute;
    f.open("/d/a", 3);
    span.begin = 10;
    f.assembler.op(100, 100, span);
    f.on_fd(OpKind::read, 3, 1, 1);
    span.begin = 1500;
    f.assembler.op(100, 100, span);
    const auto log = f.finish();
    int64_t last = 0;
    for (const Op& op : log.ops()) {
        CHECK(op.begin >= last);
        last = op.begin;
    }
    CHECK(log.ops()[0].kind == OpKind::compute);
    CHECK(log.ops()[2].kind == OpKind::compute);
}

TEST_CASE("an op later than the window is moved and counted") {
    Feeder f;
    f.open("/d/a", 3);
    for (int i = 0; i < 20000; ++i) {
        f.on_fd(OpKind::read, 3, 1, 1);
    }
    Op span;
    span.kind = OpKind::compute;
    span.begin = 5;
    span.duration = 10;
    f.assembler.op(100, 100, span);
    const auto log = f.finish();
    CHECK(log.op_count() == 20002);
    CHECK(log.counter("ops_moved") == 1);
}

TEST_CASE("the latest 8192 ops of a task wait for one before them; of more, half is written") {
    const auto moved = [](int ops, int64_t begin) {
        Feeder f;
        Op op;
        op.kind = OpKind::compute;
        for (int i = 0; i < ops; ++i) {
            op.begin = 10 * i;
            f.assembler.op(100, 100, op);
        }
        op.begin = begin;
        f.assembler.op(100, 100, op);
        const AssembledLog log = f.finish();
        CHECK(log.op_count() == static_cast<size_t>(ops) + 1);
        return log.counter("ops_moved");
    };
    CHECK(moved(8192, -5) == 0);
    CHECK(moved(8193, 10 * 4095) == 0);  // when the last op that is written began
    CHECK(moved(8193, 10 * 4095 - 1) == 1);
}

TEST_CASE("a pid that comes again is another process") {
    Feeder f;
    f.spawn(200);
    f.as(200, 200);
    f.open("/d/a", 3);
    f.as(100, 100);
    RawCall join = f.raw(OpKind::join, 200);
    join.arg = 200;
    f.assembler.call(join);
    f.spawn(200);
    f.as(200, 200);
    f.on_fd(OpKind::read, 3, kBadDescriptor, 1);
    f.as(100, 100);
    join = f.raw(OpKind::join, 0);
    f.assembler.call(join);
    const auto log = f.finish();
    CHECK(log.tables().processes.size() == 4);
    CHECK(log.of_kind(OpKind::join)[0].peer == 2);
    CHECK(log.of_kind(OpKind::spawn)[1].peer == 3);
    CHECK(log.of_kind(OpKind::wait)[0].arg == 4);
}

TEST_CASE("a child seen before its spawn still gets its parent's descriptors") {
    Feeder f;
    f.open("/d/a", 3);
    f.on_fd(OpKind::read, 3, 4, 4);
    RawCall spawn = f.raw(OpKind::spawn, 200);
    spawn.arg = 200;
    f.as(200, 200);
    f.on_path(OpKind::stat, "/d/b", 0);
    f.assembler.call(spawn);
    f.on_fd(OpKind::read, 3, 4, 4);
    const auto log = f.finish();
    CHECK(log.tables().processes.size() == 3);
    CHECK(log.tables().processes[2].parent == 1);
    CHECK(offsets(log.of_kind(OpKind::read)) == std::vector<int64_t>{0, 4});
}

TEST_CASE("extreme numbers do not overflow") {
    Feeder f;
    f.open("/d/a", 3);
    f.at(OpKind::pread, 3, INT64_MAX, INT64_MAX, INT64_MAX);
    f.lseek(3, INT64_MIN, 2, INT64_MAX);
    f.on_fd(OpKind::read, 3, INT64_MAX, INT64_MAX);
    f.on_fd(OpKind::write, 3, INT64_MAX, INT64_MAX);
    f.at(OpKind::pwrite, 3, 5, INT64_MIN, -7);
    RawCall mmap = f.raw(OpKind::mmap, 0);
    mmap.fd = 3;
    mmap.address = UINT64_MAX - 5;
    mmap.size = INT64_MAX;
    mmap.offset = INT64_MAX;
    f.assembler.call(mmap);
    RawCall spawn = f.raw(OpKind::spawn, INT64_MAX);
    spawn.arg = INT64_MAX;
    f.assembler.call(spawn);
    f.on_fd(OpKind::fstat, INT32_MAX, 0);
    f.on_fd(OpKind::ftruncate, 3, 0, INT64_MIN);
    CHECK(f.finish().op_count() == 10);
}

TEST_CASE("a process that forks itself or its ancestor does not send the search for an owner round in circles") {
    Feeder f;
    RawCall self = f.raw(OpKind::spawn, 100);
    self.arg = 100;
    RawCall ancestor = f.raw(OpKind::spawn, 100);
    ancestor.pid = ancestor.tid = 200;
    ancestor.arg = 100;
    f.on_path(OpKind::stat, "/d/a", 0);
    f.assembler.call(self);
    f.spawn(200);
    f.assembler.call(ancestor);
    f.as(200, 200);
    f.on_fd(OpKind::read, 5, 10, 10, "/d/open");
    CHECK(f.finish().of_kind(OpKind::read).size() == 1);
}

TEST_CASE("a deleted file below a directory that is new to the table") {
    Feeder f;
    // Long names: each path of the chain is a new string, so that the table grows meanwhile.
    for (int i = 0; i < 200; ++i) {
        const std::string path = "/new" + std::to_string(i) + "/a/b/c/d/e/f";
        f.on_fd(OpKind::read, 10 + i, 1, 1, path + "(deleted)");
    }
    const auto log = f.finish();
    CHECK(log.of_kind(OpKind::read).size() == 200);
    CHECK(log.files("/new7/a/b/c/d/e/f").size() == 1);
}

TEST_CASE("directories: those above the data set belong to it, all others are what their path says") {
    const auto roles = [](const std::vector<std::string>& words) {
        const RoleOverrides overrides = RoleOverrides::parse(words);
        Assembler::Options options;
        options.roles = &overrides;
        Feeder f(options);
        const char* const directories[] = {"/d",       "/d/data",     "/d/data/a",     "/d/data/none",
                                           "/usr/lib", "/d/.cache/x", "/d/.cache/x/y", "/var/lib/x"};
        for (const char* path : directories) {
            f.on_path(OpKind::stat, path, 0, {}, kDirectory);
        }
        for (const char* path : {"/d/data/a/1.jpg", "/usr/lib/2.jpg", "/d/.cache/x/3.jpg", "/d/data/none/gone"}) {
            const bool gone = std::string_view(path).ends_with("gone");
            f.on_path(OpKind::stat, path, gone ? kMissing : 0, {}, gone ? std::nullopt : std::optional(kRegular));
        }
        const auto log = f.finish();
        std::string out;
        for (const char* path : directories) {
            out += std::string(path) + " " + std::string(role_name(log.file(path).role)) + "\n";
        }
        return out;
    };
    CHECK(roles({}) ==
          "/d dataset\n"
          "/d/data dataset\n"
          "/d/data/a dataset\n"
          "/d/data/none unknown\n"
          "/usr/lib program\n"
          "/d/.cache/x cache\n"
          "/d/.cache/x/y cache\n"
          "/var/lib/x system\n");
    // What was asked for counts, and what it makes data makes the directories above it data.
    CHECK(roles({"/d/data/a/1.jpg=log", "/d/data/none=dataset", "/usr/lib=checkpoint"}) ==
          "/d dataset\n"
          "/d/data dataset\n"
          "/d/data/a unknown\n"
          "/d/data/none dataset\n"
          "/usr/lib checkpoint\n"
          "/d/.cache/x cache\n"
          "/d/.cache/x/y cache\n"
          "/var/lib/x system\n");
}

}  // namespace reprise::test
