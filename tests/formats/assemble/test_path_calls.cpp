// SPDX-License-Identifier: MIT
// Calls by path: the whole line each makes in the log, and what its result says of the file.
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {
namespace {

constexpr int64_t kMissing = -2, kNoDirectory = -20, kRefused = -13, kExists = -17;
constexpr int64_t kNoFollow = 0x100, kDirectoryOnly = 0200000;
constexpr uint32_t kRegular = 0100644, kDirectory = 0040755, kLink = 0120777;

struct PathFeeder : Feeder {
    void path(OpKind kind, std::string_view path, int64_t result, int64_t flags = 0, int64_t mode = 0,
              int64_t size = 0) {
        RawCall call = raw(kind, result);
        call.path = path;
        call.flags = flags;
        call.mode = mode;
        call.size = size;
        assembler.call(call);
    }
    void read_link(std::string_view path, int64_t size, std::string_view target) {
        RawCall call = raw(OpKind::readlink, static_cast<int64_t>(target.size()));
        call.path = path;
        call.size = size;
        call.link_target = target;
        assembler.call(call);
    }
    void look(std::string_view path, int64_t flags, uint32_t mode, uint64_t size = 0) {
        RawCall call = raw(OpKind::stat, 0);
        call.path = path;
        call.flags = flags;
        call.stat_mode = mode;
        call.stat_size = size;
        assembler.call(call);
    }
};

}  // namespace

TEST_CASE("directories: made, found, refused and removed") {
    PathFeeder f;
    f.path(OpKind::mkdir, "/d/made", 0, 0, 041751);
    f.path(OpKind::mkdir, "/d/there", kExists, 0, 0700);
    f.path(OpKind::mkdir, "/d/missing/x", kMissing, 0, 0700);
    f.path(OpKind::mkdir, "/d/refused", kRefused, 0, 0700);
    f.path(OpKind::rmdir, "/d/was", 0);
    f.path(OpKind::rmdir, "/d/file", kNoDirectory);
    f.path(OpKind::rmdir, "/d/full", -39);
    f.path(OpKind::rmdir, "/d/gone", kMissing);
    const auto log = f.finish();
    CHECK(log.text() ==
          "mkdir /d/made mode=17385 = 0\n"
          "mkdir /d/there mode=448 = -17\n"
          "mkdir /d/missing/x mode=448 = -2\n"
          "mkdir /d/refused mode=448 = -13\n"
          "rmdir /d/was = 0\n"
          "rmdir /d/file = -20\n"
          "rmdir /d/full = -39\n"
          "rmdir /d/gone = -2\n");
    CHECK(log.files_text() ==
          "/d/file unknown\n"
          "/d/full unknown\n"
          "/d/gone absent\n"
          "/d/made directory created 01751\n"
          "/d/missing/x absent\n"
          "/d/refused unknown\n"
          "/d/there directory existed\n"
          "/d/was directory existed\n");
}

TEST_CASE("what a failure says of a file depends on the call and its error") {
    PathFeeder f;
    f.path(OpKind::stat, "/d/f/x", kNoDirectory);
    f.path(OpKind::open, "/d/file", kNoDirectory, kDirectoryOnly);
    f.path(OpKind::open, "/d/f/y", kNoDirectory);
    f.path(OpKind::open, "/d/secret", kRefused);
    f.path(OpKind::open, "/d/link", -40, 0400000);  // O_NOFOLLOW
    f.path(OpKind::open, "/d/loop", -40);
    f.path(OpKind::access, "/d/none", kMissing, 0, 4);
    f.path(OpKind::access, "/d/readable", 0, 0x200, 4);
    f.path(OpKind::unlink, "/d/kept", -1);
    f.path(OpKind::stat, "", kMissing);
    const auto log = f.finish();
    CHECK(log.text() ==
          "stat /d/f/x = -20\n"
          "open /d/file flags=65536 = -20\n"
          "open /d/f/y = -20\n"
          "open /d/secret = -13\n"
          "open /d/link flags=131072 = -40\n"
          "open /d/loop = -40\n"
          "access /d/none mode=4 = -2\n"
          "access /d/readable flags=512 mode=4 = 0\n"
          "unlink /d/kept = -1\n"
          "stat = -2\n");
    CHECK(log.files_text() ==
          "/d/f/x absent\n"
          "/d/f/y absent\n"
          "/d/file unknown\n"
          "/d/kept unknown\n"
          "/d/link symlink existed\n"
          "/d/loop unknown\n"
          "/d/none absent\n"
          "/d/readable existed\n"
          "/d/secret unknown\n");
    CHECK(log.counters_text().find("directories_unknown") == std::string::npos);
}

TEST_CASE("an empty name names nothing, not the current directory") {
    PathFeeder f;
    f.assembler.set_directory(100, "/here");
    for (const OpKind kind : {OpKind::open, OpKind::stat, OpKind::unlink, OpKind::mkdir, OpKind::rename}) {
        RawCall call = f.raw(kind, kMissing);
        call.path2 = kind == OpKind::rename ? "new" : "";
        f.assembler.call(call);
    }
    RawCall call = f.raw(OpKind::stat, kMissing);
    call.fd = 5;  // without AT_EMPTY_PATH
    f.assembler.call(call);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open = -2\n"
          "stat = -2\n"
          "unlink = -2\n"
          "mkdir = -2\n"
          "rename to /here/new = -2\n"
          "stat = -2\n");
    CHECK(log.files_text() == "/here/new unknown\n");
}

TEST_CASE("symbolic links: whole targets, cut ones, and those of /proc") {
    PathFeeder f;
    f.read_link("/d/whole", 100, "there");
    f.read_link("/d/cut", 5, "there");
    f.read_link("/d/any", 0, "else");
    f.read_link("/proc/self/exe", 100, "/bin/x");
    f.path(OpKind::readlink, "/d/no_link", -22, 0, 0, 100);
    f.look("/d/only_looked_at", kNoFollow, kLink, 7);
    f.look("/d/regular", kNoFollow, kRegular, 9);
    f.look("/d/followed", kNoFollow, kLink, 7);
    f.look("/d/followed", 0, kRegular, 70);
    f.path(OpKind::access, "/d/used", 0, 0, 4);
    f.look("/d/used", kNoFollow, kLink, 7);
    f.look("/d/statx_only", kNoFollow, kLink, 3);
    const auto log = f.finish();
    CHECK(log.files_text() ==
          "/d/any symlink existed -> else\n"
          "/d/cut symlink existed\n"
          "/d/followed regular existed 70! 0644\n"
          "/d/no_link existed\n"
          "/d/only_looked_at symlink existed\n"
          "/d/regular regular existed 9! 0644\n"
          "/d/statx_only symlink existed\n"
          "/d/used existed\n"
          "/d/whole symlink existed -> there\n"
          "/proc/self/exe existed\n");
    CHECK(log.of_kind(OpKind::readlink)[1].size == 5);
}

TEST_CASE("attributes by path and by descriptor") {
    PathFeeder f;
    f.open("/d/open", 0);
    f.path(OpKind::chmod, "/d/a", 0, 0, 0104711);
    f.path(OpKind::chmod, "/d/b", -1, 0, 0600);
    f.path(OpKind::utimens, "/d/c", 0, kNoFollow);
    f.path(OpKind::truncate, "/d/t", 0, 0, 0, 77);
    f.path(OpKind::truncate, "/d/u", -13, 0, 0, 77);
    f.path(OpKind::statfs, "/d/s", 0);
    f.look("/d/s", kNoFollow, kDirectory);
    RawCall call = f.raw(OpKind::statx, 0);
    call.path = "/d/x";
    call.flags = kNoFollow;
    call.stat_mode = kLink;
    call.arg = 0xfff;
    f.assembler.call(call);
    call = f.raw(OpKind::statx, 0);
    call.fd = 0;
    call.stat_mode = kRegular;
    call.stat_size = 12;
    f.assembler.call(call);
    call = f.raw(OpKind::stat, 0);  // newfstatat with AT_EMPTY_PATH
    call.fd = 0;
    call.flags = 0x1000;
    f.assembler.call(call);
    call = f.raw(OpKind::getxattr, -61);
    call.path = "/d/a";
    call.text = "user.x";
    call.size = 64;
    f.assembler.call(call);
    call.fd = 0;  // the directory of a relative path is no descriptor that the call acts on
    call.path = "x";
    call.directory = "/d";
    f.assembler.call(call);
    call = f.raw(OpKind::removexattr, 0);
    call.fd = 0;
    call.text = "user.y";
    f.assembler.call(call);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/open handle=1 = 0\n"
          "chmod /d/a mode=35273 = 0\n"
          "chmod /d/b mode=384 = -1\n"
          "utimens /d/c flags=256 = 0\n"
          "truncate /d/t size=77 = 0\n"
          "truncate /d/u size=77 = -13\n"
          "statfs /d/s = 0\n"
          "stat /d/s flags=256 = 0\n"
          "statx /d/x flags=256 arg=4095 = 0\n"
          "statx handle=1 fd=0 = 0\n"
          "fstat handle=1 fd=0 = 0\n"
          "getxattr /d/a size=64 \"user.x\" = -61\n"
          "getxattr /d/x size=64 \"user.x\" = -61\n"
          "removexattr handle=1 fd=0 \"user.y\" = 0\n");
    CHECK(log.files_text() ==
          "/d/a existed 04711\n"
          "/d/b unknown\n"
          "/d/c existed\n"
          "/d/open regular existed 12! 0644\n"
          "/d/s directory existed 0755\n"
          "/d/t existed\n"
          "/d/u unknown\n"
          "/d/x symlink existed\n");
    CHECK(log.file("/d/t").role == Role::log);  // written
    CHECK(log.file("/d/u").role != Role::log);
}

TEST_CASE("two paths: relative ones, refused ones, an exchange, and links of what is open") {
    PathFeeder f;
    f.assembler.set_directory(100, "/w");
    f.open("/dir", 5, kDirectoryOnly);
    f.open("/o/zero", 0);
    RawCall call = f.raw(OpKind::rename, 0);
    call.path = "a";
    call.fd = 5;
    call.path2 = "b";
    call.fd2_path = "/other";
    f.assembler.call(call);
    call = f.raw(OpKind::rename, 0);
    call.path = "a";
    call.directory = "/given";
    call.path2 = "b";
    call.fd2 = 5;
    f.assembler.call(call);
    f.two(OpKind::rename, "c", "d", kExists, 1);
    f.two(OpKind::rename, "/e/one", "/e/two", 0, 2);  // RENAME_EXCHANGE
    f.path(OpKind::stat, "/e/one", 0);
    f.two(OpKind::link, "/l/from", "/l/to", kRefused);
    call = f.raw(OpKind::link, 0);  // AT_EMPTY_PATH
    call.fd = 0;
    call.path2 = "/l/zero";
    call.flags = 0x1000;
    f.assembler.call(call);
    f.assembler.adopt(100, 0, HandleKind::socket);
    f.assembler.call(call);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /dir handle=1 flags=65536 = 5\n"
          "open /o/zero handle=2 = 0\n"
          "rename /dir/a to /other/b = 0\n"
          "rename /given/a to /dir/b = 0\n"
          "rename /w/c to /w/d flags=1 = -17\n"
          "rename /e/one to /e/two flags=2 = 0\n"
          "stat /e/one#1 = 0\n"
          "link /l/from to /l/to = -13\n"
          "link /o/zero to /l/zero flags=4096 = 0\n");
    CHECK(log.counter("links_of_unknown_files") == 1);
    CHECK(log.files_text() ==
          "/dir directory existed\n"
          "/dir/a existed\n"
          "/dir/b created\n"
          "/e/one existed\n"
          "/e/one#1 created\n"
          "/e/two existed\n"
          "/given/a existed\n"
          "/l/from unknown\n"
          "/l/to unknown\n"
          "/l/zero created\n"
          "/o/zero existed\n"
          "/other/b created\n"
          "/w/c unknown\n"
          "/w/d unknown\n");
}

TEST_CASE("a directory that moves takes along what is in it now, not what was there before") {
    PathFeeder f;
    f.path(OpKind::mkdir, "/d/old", 0, 0, 0755);
    f.open("/d/old/x", 3, 0101);
    f.on_path(OpKind::unlink, "/d/old/x", 0);
    f.open("/d/old/x", 4, 0101);
    f.path(OpKind::stat, "/d/older/x", 0);
    f.path(OpKind::stat, "/d/old/absent", kMissing);
    f.two(OpKind::rename, "/d/old", "/d/new");
    f.path(OpKind::stat, "/d/new/x", 0);
    f.path(OpKind::stat, "/d/new/absent", kMissing);
    f.path(OpKind::stat, "/d/older/x", 0);
    f.path(OpKind::stat, "/d/newer/x", 0);
    const auto log = f.finish();
    CHECK(log.text() ==
          "mkdir /d/old mode=493 = 0\n"
          "open /d/old/x handle=1 flags=65 = 3\n"
          "unlink /d/old/x = 0\n"
          "open /d/old/x#1 handle=2 flags=65 = 4\n"
          "stat /d/older/x = 0\n"
          "stat /d/old/absent = -2\n"
          "rename /d/old to /d/new = 0\n"
          "stat /d/new/x = 0\n"
          "stat /d/new/absent = -2\n"
          "stat /d/older/x = 0\n"
          "stat /d/newer/x = 0\n");
    CHECK(log.file("/d/newer/x").origin == Origin::existed);
    CHECK(log.file("/d/new/x").origin == Origin::created);
}

TEST_CASE("magic links lead to what is open, whatever it is called by now") {
    PathFeeder f;
    f.open("/d/dir", 4, kDirectoryOnly);
    f.path(OpKind::stat, "/proc/self/fd/4", 0);
    f.path(OpKind::stat, "/proc/self/fd/4/x/y", 0);
    f.path(OpKind::stat, "/proc/self/fd/4x", 0);
    f.path(OpKind::stat, "/proc/self/fd/7", kMissing);
    f.path(OpKind::stat, "/proc/self/fd/", 0);
    f.path(OpKind::stat, "/proc/self/fd/99999999999", kMissing);
    f.two(OpKind::rename, "/d/dir", "/d/moved");
    f.path(OpKind::stat, "/proc/self/fd/4/x", 0);
    CHECK(f.finish().text() ==
          "open /d/dir handle=1 flags=65536 = 4\n"
          "stat /d/dir = 0\n"
          "stat /d/dir/x/y = 0\n"
          "stat /proc/self/fd/4x = 0\n"
          "stat /proc/self/fd/7 = -2\n"
          "stat /proc/self/fd = 0\n"
          "stat /proc/self/fd/99999999999 = -2\n"
          "rename /d/dir to /d/moved = 0\n"
          "stat /d/moved/x = 0\n");
}

TEST_CASE("names of descriptors, of the directory and of the root lead to the job's files") {
    PathFeeder f;
    f.assembler.set_directory(100, "/w");
    f.open("/d/in", 0);
    f.open("/d/log", 2, 1);
    f.open("/dev/stdin", 5);
    f.open("/dev/fd/0", 5);
    f.open("/proc/thread-self/fd/0", 5);
    f.open("/proc/100/task/100/fd/0", 5);
    f.open("/dev/stderr", 5, 01001);
    f.path(OpKind::stat, "/proc/self/cwd/x", 0);
    f.path(OpKind::stat, "/proc/self/cwd", 0);
    f.path(OpKind::stat, "/proc/thread-self/root/r/x", 0);
    f.path(OpKind::stat, "/proc/101/cwd/x", kMissing);
    f.path(OpKind::stat, "/dev/stdout", 0);    // not open
    f.path(OpKind::stat, "/dev/stdinx", 0);    // another name
    f.path(OpKind::unlink, "/dev/stdin", -1);  // the link itself
    f.path(OpKind::unlink, "/proc/self/cwd/x", 0);
    f.path(OpKind::readlink, "/proc/self/fd/0", 5);
    f.path(OpKind::readlink, "/proc/self/cwd", 2);
    f.assembler.set_directory(100, "/proc/self/cwd/sub");
    f.path(OpKind::stat, "y", 0);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/in handle=1 = 0\n"
          "open /d/log handle=2 flags=1 = 2\n"
          "open /d/in handle=3 = 5\n"
          "open /d/in handle=4 = 5\n"
          "open /d/in handle=5 = 5\n"
          "open /d/in handle=6 = 5\n"
          "open /d/log handle=7 flags=513 = 5\n"
          "stat /w/x = 0\n"
          "stat /w = 0\n"
          "stat /r/x = 0\n"
          "stat /proc/101/cwd/x = -2\n"
          "stat /dev/stdout = 0\n"
          "stat /dev/stdinx = 0\n"
          "unlink /dev/stdin = -1\n"
          "unlink /w/x = 0\n"
          "readlink /proc/self/fd/0 = 5\n"
          "readlink /proc/self/cwd = 2\n"
          "stat /w/sub/y = 0\n");
    CHECK(log.file("/d/in").type != FileType::symlink);
}

TEST_CASE("relative paths count as assumed until the directory is known") {
    Feeder f;
    f.on_path(OpKind::stat, "a", 0);
    f.on_path(OpKind::stat, "", kMissing);
    f.assembler.set_directory(100, "sub");
    f.on_path(OpKind::stat, "b", 0);
    f.assembler.set_directory(100, "/w");
    f.on_path(OpKind::stat, "c", 0);
    RawCall call = f.raw(OpKind::stat, 0);
    call.path = "d";
    call.fd = 0;
    f.assembler.call(call);
    f.spawn(200);
    f.as(200, 200);
    f.on_path(OpKind::stat, "e", 0);
    const auto log = f.finish();
    CHECK(log.text() ==
          "stat /a = 0\n"
          "stat = -2\n"
          "stat /sub/b = 0\n"
          "stat /w/c = 0\n"
          "stat /w/d = 0\n"
          "spawn flags=17 peer=2 = 200\n"
          "task 2: stat /w/e = 0\n");
    CHECK(log.counter("relative_paths_assumed") == 2);
    CHECK(log.counter("directories_unknown") == 1);

    Assembler::Options options;
    options.initial_directory = "/start";
    Feeder g(options);
    g.on_path(OpKind::stat, "a", 0);
    const auto other = g.finish();
    CHECK(other.text() == "stat /start/a = 0\n");
    CHECK(other.counter("relative_paths_assumed") == 0);
}

TEST_CASE("a file's first name gets the size it had then, seen by whatever name it has later") {
    Feeder f;
    const auto moves = [&](const std::string& from, const std::string& to) { f.two(OpKind::rename, from, to); };
    const auto stat = [&](const std::string& path, uint64_t size) { f.on_path(OpKind::stat, path, 0, size, 0100644); };
    moves("/d/once", "/d/once.new");
    stat("/d/once.new", 100);
    moves("/d/twice", "/d/twice.new");
    moves("/d/twice.new", "/d/twice.newer");
    stat("/d/twice.newer", 200);
    moves("/d/read", "/d/read.new");
    f.open("/d/read.new", 3);
    f.on_fd(OpKind::read, 3, 30, 4096);
    f.two(OpKind::link, "/d/linked", "/d/linked.new");
    stat("/d/linked.new", 40);
    moves("/d/changed", "/d/changed.new");
    f.open("/d/changed.new", 4, 02001);  // to append
    f.on_fd(OpKind::write, 4, 5, 5);
    stat("/d/changed.new", 50);
    f.open("/d/made", 5, 0301);
    moves("/d/made", "/d/made.new");
    stat("/d/made.new", 60);
    CHECK(f.finish().files_text() ==
          "/d/changed existed\n"
          "/d/changed.new regular created 50 0644\n"
          "/d/linked existed 40!\n"
          "/d/linked.new regular created 40 0644\n"
          "/d/made regular created\n"
          "/d/made.new regular created 60 0644\n"
          "/d/once existed 100!\n"
          "/d/once.new regular created 100 0644\n"
          "/d/read existed 30!\n"
          "/d/read.new created 30\n"
          "/d/twice existed 200!\n"
          "/d/twice.new created\n"
          "/d/twice.newer regular created 200 0644\n");
}

TEST_CASE("a rename of one name of a file to another of its names takes away neither") {
    Feeder f;
    f.on_path(OpKind::stat, "/d/in", 0);
    f.two(OpKind::link, "/d/in", "/d/h1");
    f.two(OpKind::rename, "/d/h1", "/d/h2");
    f.two(OpKind::rename, "/d/h2", "/d/in");
    f.on_path(OpKind::stat, "/d/h2", 0);
    f.two(OpKind::rename, "/d/in", "/d/new");
    f.on_path(OpKind::unlink, "/d/h2", 0);
    const auto log = f.finish();
    CHECK(log.text() ==
          "stat /d/in = 0\n"
          "link /d/in to /d/h1 = 0\n"
          "rename /d/h1 to /d/h2 = 0\n"
          "rename /d/h2 to /d/h2 = 0\n"
          "stat /d/h2 = 0\n"
          "rename /d/in to /d/new = 0\n"
          "unlink /d/h2 = 0\n");
    CHECK(log.counter("files_appeared_unseen") == 0);
}

TEST_CASE("a name that was not there, and is removed without a call that made it, is a socket's") {
    Feeder f;
    f.on_path(OpKind::unlink, "/d/s", -2);
    f.on_path(OpKind::unlink, "/d/s", 0);
    const auto log = f.finish();
    const FileRow& row = log.file("/d/s");
    CHECK(row.origin == Origin::created);
    CHECK(row.type == FileType::socket);
    CHECK(row.role == Role::ipc);
    CHECK(log.counter("files_appeared_unseen") == 1);
}

TEST_CASE("a rename takes along all that is known of a file") {
    Feeder f;
    f.open("/d/a", 3, 0302);
    f.on_fd(OpKind::write, 3, 2 << 20, 2 << 20);
    f.on_fd(OpKind::read, 3, 0, 10);
    f.on_fd(OpKind::fsync, 3, 0);
    f.on_path(OpKind::chmod, "/d/a", 0);
    RawCall fstat = f.raw(OpKind::fstat, 0);
    fstat.fd = 3;
    fstat.stat_mode = 0100600;
    fstat.device = 8;
    fstat.inode = 77;
    f.assembler.call(fstat);
    f.two(OpKind::rename, "/d/a", "/d/b");
    f.open("/d/b", 4, 02001);
    f.on_fd(OpKind::write, 4, 5, 5);
    RawCall symlink = f.raw(OpKind::symlink, 0);
    symlink.path = "/d/link";
    symlink.text = "b";
    f.assembler.call(symlink);
    f.two(OpKind::rename, "/d/link", "/d/link2");
    const auto log = f.finish();
    CHECK(log.of_kind(OpKind::write)[1].offset == 2 << 20);
    CHECK(log.counter("append_offsets_unknown") == 0);
    CHECK(log.file("/d/b").inode == 77);
    CHECK(log.file("/d/b").device == 8);
    CHECK(role_name(log.file("/d/b").role) == role_name(Role::checkpoint));
    CHECK(log.files_text() ==
          "/d/a regular created 2097157 0600\n"
          "/d/b regular created 2097157 0600\n"
          "/d/link symlink created -> b\n"
          "/d/link2 symlink created -> b\n");
}

}  // namespace reprise::test
