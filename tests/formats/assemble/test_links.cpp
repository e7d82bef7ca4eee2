// SPDX-License-Identifier: MIT
// What is learnt of a file through a symbolic link belongs to the link's target.
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {
namespace {

constexpr uint32_t kRegular = 0100000;
constexpr int64_t kCreate = 0100, kWriteOnly = 1;

struct LinkFeeder : Feeder {
    void link(std::string_view path, std::string_view target) {
        RawCall call = raw(OpKind::readlink, static_cast<int64_t>(target.size()));
        call.path = path;
        call.link_target = target;
        assembler.call(call);
    }
    void stat(std::string_view path, uint64_t size, uint32_t mode) { on_path(OpKind::stat, path, 0, size, mode); }
    /// Opens the file and reads: `got` of `asked` bytes.
    void read(std::string_view path, int64_t got, int64_t asked) {
        open(path, 3);
        on_fd(OpKind::read, 3, got, asked);
        on_fd(OpKind::close, 3, 0);
    }
};

std::string roles(const AssembledLog& log, const std::vector<const char*>& paths) {
    std::string out;
    for (const char* path : paths) {
        out += std::string(role_name(log.file(path).role)) + " ";
    }
    return out;
}

}  // namespace

TEST_CASE("links: the target gets type, mode and use, unless it has its own") {
    LinkFeeder f;
    f.link("/l/read", "../t/read");
    f.stat("/l/read", 100, kRegular | 0640);
    f.read("/l/read", 10, 10);
    f.link("/l/looked_at", "/t/looked_at");
    f.stat("/l/looked_at", 50, kRegular | 0600);
    f.stat("/t/looked_at", 70, kRegular | 0444);
    f.link("/l/written", "/t/written");
    f.open("/l/written", 3, kWriteOnly);
    f.on_fd(OpKind::write, 3, 5, 5);
    f.link("/l/both", "/t/both");
    f.read("/l/both", 8, 8);
    f.open("/t/both", 3, kWriteOnly);
    f.on_fd(OpKind::write, 3, 4, 4);
    const auto log = f.finish();
    CHECK(log.files_text() ==
          "/l/both symlink existed -> /t/both\n"
          "/l/looked_at symlink existed 0600 -> /t/looked_at\n"
          "/l/read symlink existed 0640 -> ../t/read\n"
          "/l/written symlink existed -> /t/written\n"
          "/t/both existed 8\n"
          "/t/looked_at regular existed 70! 0444\n"
          "/t/read regular existed 100! 0640\n"
          "/t/written existed\n");
    CHECK(roles(log, {"/t/read", "/t/looked_at", "/t/written", "/t/both"}) == "dataset dataset log cache ");
}

TEST_CASE("links: of two sizes the better known one counts, of equals the greater") {
    LinkFeeder f;
    const auto pair = [&](const std::string& name, auto through_link, auto itself) {
        f.link("/l/" + name, "/t/" + name);
        through_link("/l/" + name);
        itself("/t/" + name);
    };
    const auto part = [&](int64_t size) { return [&f, size](const std::string& path) { f.read(path, size, size); }; };
    const auto whole = [&](int64_t size) { return [&f, size](const std::string& path) { f.read(path, size, 4096); }; };
    const auto stat = [&](uint64_t size) {
        return [&f, size](const std::string& path) { f.stat(path, size, kRegular); };
    };
    pair("stat_over_end", stat(20), whole(30));
    pair("end_over_part", whole(20), part(30));
    pair("part_under_end", part(30), whole(20));
    pair("end_under_stat", whole(30), stat(20));
    pair("greater", part(30), part(20));
    pair("less", part(20), part(30));
    CHECK(f.finish().files_text() ==
          "/l/end_over_part symlink existed -> /t/end_over_part\n"
          "/l/end_under_stat symlink existed -> /t/end_under_stat\n"
          "/l/greater symlink existed -> /t/greater\n"
          "/l/less symlink existed -> /t/less\n"
          "/l/part_under_end symlink existed -> /t/part_under_end\n"
          "/l/stat_over_end symlink existed -> /t/stat_over_end\n"
          "/t/end_over_part existed 20!\n"
          "/t/end_under_stat regular existed 20!\n"
          "/t/greater existed 30\n"
          "/t/less existed 30\n"
          "/t/part_under_end existed 20!\n"
          "/t/stat_over_end regular existed 20!\n");
}

TEST_CASE("links: some have no target to tell of") {
    LinkFeeder f;
    f.link("/l/directory", "/t/directory");
    f.stat("/l/directory/inside", 5, kRegular);
    f.link("/l/dangling", "/t/missing");
    f.read("/l/dangling", 1, 1);
    f.on_path(OpKind::stat, "/t/missing", -2);
    f.link("/l/itself", "itself");
    f.read("/l/itself", 1, 1);
    f.link("/l/unused", "/t/unused");
    RawCall made = f.raw(OpKind::symlink, 0);
    made.path = "/l/made";
    made.text = "/t/made";
    f.assembler.call(made);
    f.read("/l/made", 1, 1);
    f.open("/l/new", 3, kCreate | kWriteOnly);  // a file of this name, no link
    CHECK(f.finish().files_text() ==
          "/l/dangling symlink existed -> /t/missing\n"
          "/l/directory symlink existed -> /t/directory\n"
          "/l/itself symlink existed -> itself\n"
          "/l/made symlink created -> /t/made\n"
          "/l/new regular created\n"
          "/l/unused symlink existed -> /t/unused\n"
          "/t/directory/inside regular existed 5!\n"
          "/t/made existed 1\n"
          "/t/missing absent\n");
}

TEST_CASE("links: those that the job made lead to their targets, whatever they are called by then") {
    LinkFeeder f;
    const auto two = [&](OpKind kind, std::string_view from, std::string_view to) {
        RawCall call = f.raw(kind, 0);
        call.path = from;
        call.path2 = to;
        f.assembler.call(call);
    };
    const auto symlink = [&](std::string_view path, std::string_view target) {
        RawCall call = f.raw(OpKind::symlink, 0);
        call.path = path;
        call.text = target;
        f.assembler.call(call);
    };
    f.on_path(OpKind::mkdir, "/d/one", 0);
    symlink("/d/new", "one");
    two(OpKind::rename, "/d/new", "/d/now");
    f.read("/d/now/a", 1, 1);
    symlink("/d/far", "/d/now/a");  // through two links
    f.read("/d/far", 1, 1);
    f.on_path(OpKind::stat, "/d/new/a", -2);  // not called so any more
    f.on_path(OpKind::unlink, "/d/now", 0);
    f.on_path(OpKind::mkdir, "/d/now", 0);
    f.read("/d/now/b", 1, 1);  // a directory now
    symlink("/d/circle", "circle");
    f.on_path(OpKind::stat, "/d/circle/x", -40);
    CHECK(f.finish().text() ==
          "mkdir /d/one = 0\n"
          "symlink /d/new \"one\" = 0\n"
          "rename /d/new to /d/now = 0\n"
          "open /d/one/a handle=1 = 3\n"
          "read handle=1 fd=3 size=1 = 1\n"
          "close handle=1 fd=3 = 0\n"
          "symlink /d/far \"/d/now/a\" = 0\n"
          "open /d/one/a handle=2 = 3\n"
          "read handle=2 fd=3 size=1 = 1\n"
          "close handle=2 fd=3 = 0\n"
          "stat /d/new/a = -2\n"
          "unlink /d/now = 0\n"
          "mkdir /d/now#1 = 0\n"
          "open /d/now/b handle=3 = 3\n"
          "read handle=3 fd=3 size=1 = 1\n"
          "close handle=3 fd=3 = 0\n"
          "symlink /d/circle \"circle\" = 0\n"
          "stat /d/circle/x = -40\n");
}

TEST_CASE("links: processes and descriptors stay in a directory that gets another name") {
    LinkFeeder f;
    f.assembler.set_directory(100, "/d/old/in");
    RawCall rename = f.raw(OpKind::rename, 0);
    rename.path = "/d/old";
    rename.path2 = "/d/new";
    f.assembler.call(rename);
    f.on_path(OpKind::stat, "file", 0);
    f.on_path(OpKind::stat, "../file", 0);
    CHECK(f.finish().text() ==
          "rename /d/old to /d/new = 0\n"
          "stat /d/new/in/file = 0\n"
          "stat /d/new/file = 0\n");
}

TEST_CASE("links: .. behind a link leads above what that leads to, where the link is known") {
    LinkFeeder f;
    const auto symlink = [&](std::string_view path, std::string_view target) {
        RawCall call = f.raw(OpKind::symlink, 0);
        call.path = path;
        call.text = target;
        f.assembler.call(call);
    };
    f.assembler.set_directory(100, "/d");
    f.link("/d/read", "far/v7");
    symlink("/d/made", "/e/v8/");
    symlink("/d/chain", "read/../v6");  // far/v6
    symlink("/d/circle", "circle/../circle");
    const auto stat = [&](std::string_view path) { f.on_path(OpKind::stat, path, -13); };
    stat("read/../a");
    stat("made/../b");
    stat("chain/../c");
    stat("read/../../d");
    stat("plain/../e");
    stat("read/./in/../../f");
    stat("circle/../g");
    f.assembler.set_directory(100, "read");
    stat("../h");
    f.assembler.set_directory(100, "..");
    stat("i");
    f.on_path(OpKind::unlink, "/d/made", 0);
    f.on_path(OpKind::mkdir, "/d/made", 0);
    stat("/d/made/../j");
    std::vector<std::string> names;
    const AssembledLog log = f.finish();
    for (const Op& op : log.of_kind(OpKind::stat)) {
        names.push_back(log.path_of(op));
    }
    CHECK(names == std::vector<std::string>{"/d/far/a", "/e/b", "/d/far/c", "/d/d", "/d/e", "/d/far/f", "/d/g",
                                            "/d/far/h", "/d/far/i", "/d/j"});
}

TEST_CASE("links: where the source says what an open with .. led to, that is it") {
    LinkFeeder f;
    f.assembler.set_directory(100, "/d");
    f.open("now/../a", 3, 0, "/d/far/a");
    f.open("now/../a", 4, 0, "/d/far/a(deleted)");
    f.open("now/b", 5, 0, "/d/far/v7/b");
    CHECK(f.finish().text() ==
          "open /d/far/a handle=1 = 3\n"
          "open /d/a handle=2 = 4\n"
          "open /d/far/v7/b handle=3 = 5\n");
}

TEST_CASE("links: a directory that an open shows to be a link is one from then on, until the job changes it") {
    LinkFeeder f;
    f.open("/d/now/x/a", 3, 0, "/d/v1/x/a");
    f.on_path(OpKind::stat, "/d/now/x/b", 0, 1, kRegular);
    f.on_path(OpKind::stat, "/d/now/c", 0, 1, kRegular);
    f.two(OpKind::rename, "/d/now.new", "/d/now");  // another link, of which nothing is known
    f.on_path(OpKind::stat, "/d/now/d", 0, 1, kRegular);
    f.open("/d/link", 4, 0, "/d/file");  // a link to a file is another name of it
    f.open("/d/self/a", 5, 0, "/d/self/self/a");
    std::vector<std::string> names;
    const auto log = f.finish();
    for (const Op& op : log.ops()) {
        names.push_back(log.path_of(op));
    }
    CHECK(names == std::vector<std::string>{"/d/v1/x/a", "/d/v1/x/b", "/d/v1/c", "/d/now.new", "/d/now/d", "/d/link",
                                            "/d/self/a"});
}

TEST_CASE("what no call told of is looked at as the recording ends") {
    Assembler::Options how;
    how.find_at_end = [](const std::string& path) -> std::optional<FoundAtEnd> {
        const std::map<std::string, FoundAtEnd> found = {{"/d/old", {kRegular | 0644, 1000, {}}},
                                                         {"/d/ck.old", {0040755, 4096, {}}},
                                                         {"/d/mnt", {0040755, 4096, {}}},
                                                         {"/d/l", {0120777, 3, "goal"}}};
        const auto at = found.find(path);
        return at == found.end() ? std::nullopt : std::optional(at->second);
    };
    Feeder f(how);
    f.two(OpKind::rename, "/d/big", "/d/mid");
    f.two(OpKind::rename, "/d/mid", "/d/old");
    f.two(OpKind::rename, "/d/ck", "/d/ck.old");
    f.on_path(OpKind::readlink, "/d/mnt", -22);
    f.on_path(OpKind::access, "/d/l", 0);
    f.on_path(OpKind::unlink, "/d/gone", 0);
    const auto log = f.finish();
    CHECK(log.file("/d/big").type == FileType::regular);
    CHECK(log.file("/d/big").size == 1000);
    CHECK(log.file("/d/big").size_exact);
    CHECK(log.file("/d/old").type == FileType::regular);
    CHECK(log.file("/d/ck").type == FileType::directory);
    CHECK(log.file("/d/mnt").type == FileType::directory);
    CHECK(log.file("/d/l").type == FileType::symlink);
    CHECK(log.file("/d/gone").type == FileType::unknown);
}

TEST_CASE("roles: a file has one under all its names") {
    LinkFeeder f;
    f.two(OpKind::rename, "/d/gen.py", "/d/gen.old");
    f.read("/d/gen.old", 5, 5);
    f.two(OpKind::link, "/d/data.jl", "/d/x.bin");
    f.read("/d/x.bin", 5, 5);
    f.two(OpKind::rename, "/d/a.py", "/d/b.py");
    f.read("/d/b.py", 5, 5);
    f.two(OpKind::rename, "/etc/a", "/etc/b");
    const auto log = f.finish();
    CHECK(roles(log, {"/d/gen.py", "/d/gen.old", "/d/data.jl", "/d/x.bin"}) == "dataset dataset dataset dataset ");
    CHECK(roles(log, {"/d/a.py", "/d/b.py", "/etc/a", "/etc/b"}) == "program program system system ");
}

TEST_CASE("roles: a repository that the job writes to is its own, one that it looks at a program's") {
    LinkFeeder f;
    f.read("/r/.git/HEAD", 5, 5);
    f.open("/r/.git/index.lock", 3, kWriteOnly | kCreate | 0200);
    f.on_fd(OpKind::write, 3, 5, 5);
    f.two(OpKind::rename, "/r/.git/index.lock", "/r/.git/index");
    f.read("/s/.git/HEAD", 5, 5);
    const auto log = f.finish();
    CHECK(roles(log, {"/r/.git/HEAD", "/r/.git/index", "/s/.git/HEAD"}) == "dataset log program ");
}

TEST_CASE("links: a renamed directory is called by its new name where a process goes back to it") {
    LinkFeeder f;
    f.open("/d/stage", 3, 0200000);
    f.two(OpKind::rename, "/d/stage", "/d/rel");
    CHECK(f.assembler.path_of(100, 3, nullptr) == "/d/rel");
}

}  // namespace reprise::test
