// SPDX-License-Identifier: MIT
// Raw recordings to op logs: what paths start from after chroot, pivot_root, setns.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/formats/assemble/recording/raw_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint64_t kNewMounts = 0x20000;

// Names of the files that were opened, in turn.
std::vector<std::string> opened(const AssembledLog& log) {
    std::vector<Op> opens = log.of_kind(OpKind::open);
    std::sort(opens.begin(), opens.end(), [](const Op& a, const Op& b) { return a.begin < b.begin; });
    std::vector<std::string> out;
    for (const Op& op : opens) {
        out.push_back(log.path_of(op));
    }
    return out;
}

struct Names {
    RawJob job;
    uint64_t file = 0x100;
    /// At 5 s of the wall clock.
    void start() {
        raw_clock clock{};
        clock.head.time = RawJob::kStart;
        clock.head.pid = clock.head.tid = 1;
        clock.realtime = 5'000'000'000;
        job.add(RawBytes(RAW_CLOCK, clock));
    }
    void open(const char* path) {
        ++file;
        job.open(path, 5, file, file);
        job.call(SYS_close, {5}, 0).fd(0, RawJob::fd_of(5, file, file));
    }
    void chdir(const char* path) { job.call(SYS_chdir, {0x1000}, 0).path(0, path); }
    void pivot(const char* root, const char* old) {
        job.call(SYS_pivot_root, {0x1000, 0x2000}, 0).path(0, root).path(1, old);
    }
    void unshare() { job.call(SYS_unshare, {kNewMounts}, 0); }
    void setns(int fd, uint64_t inode, uint64_t type) {
        job.call(SYS_setns, {uint64_t(fd), type}, 0).fd(0, RawJob::fd_of(fd, 0xe0 + inode, inode, 0, 0100444));
    }
};

}  // namespace

TEST_CASE("pivot_root moves all of its mount namespace and nobody else") {
    Names n;
    n.chdir("/c/new/sub");
    n.job.spawn(200, 200, 17);  // stays in the first namespace
    n.unshare();
    n.job.spawn(300, 300, 17);  // another directory, the same namespace
    n.job.as(300, 300);
    n.chdir("/home");
    n.job.as(100, 100);
    n.pivot("..", "/c/new/put");
    n.open("x");
    n.open("/data");
    n.open("../y");
    n.job.as(300, 300);
    n.open("z");
    n.chdir("/");
    n.open("z");
    n.job.as(200, 200);
    n.open("x");
    n.open("/data");
    CHECK(opened(n.job.assemble()) ==
          std::vector<std::string>{"/sub/x", "/data", "/y", "/put/home/z", "/z", "/c/new/sub/x", "/data"});
}

TEST_CASE("pivot_root of the directory itself upon itself, as container runtimes do") {
    Names n;
    n.job.spawn(300, 300, 17 | kNewMounts);
    n.job.as(300, 300);
    n.chdir("/c/rootfs");
    n.pivot(".", ".");
    n.open("a");
    n.chdir("/");
    n.open("etc/b");
    n.open("/c");
    n.job.as(100, 100);
    n.open("a");
    CHECK(opened(n.job.assemble()) == std::vector<std::string>{"/a", "/etc/b", "/c", "/home/me/a"});
}

TEST_CASE("setns to a mount namespace begins at its root, other namespaces change nothing") {
    Names n;
    n.job.call(SYS_chroot, {0x1000}, 0).path(0, "/jail");
    n.chdir("/dir");
    n.open("a");
    n.job.open("/proc/7/ns/net", 8, 0xe0 + 50, 50);
    n.setns(8, 50, 0);
    n.setns(8, 50, 0x40000000);  // CLONE_NEWNET
    n.open("b");
    n.job.open("/proc/7/ns/mnt", 9, 0xe0 + 60, 60);
    n.setns(9, 60, 0);
    n.open("c");
    n.open("/d");
    n.chdir("/e");
    n.setns(12, 70, kNewMounts);  // by its type
    n.open("f");
    const auto names = opened(n.job.assemble());
    CHECK(names == std::vector<std::string>{"/jail/dir/a", "/jail/proc/7/ns/net", "/jail/dir/b", "/jail/proc/7/ns/mnt",
                                            "/c", "/d", "/f"});
}

TEST_CASE("absolute symbolic links of a chroot lead from its root") {
    Names n;
    const auto symlink = [&](const char* target, const char* path) {
        n.job.call(SYS_symlink, {0x1000, 0x2000}, 0).string(0, target).path(1, path);
    };
    symlink("/outside", "/old");
    n.job.call(SYS_chroot, {0x1000}, 0).path(0, "/jail");
    n.chdir("/");
    symlink("/data/set", "/made");
    symlink("set", "/data/near");
    symlink("/../../up", "/over");
    n.job.call(SYS_readlink, {0x1000, 0x2000, 100}, 5).path(0, "/there").string(1, "/else");
    n.open("/made/a");  // the kernel follows it
    n.open("/../b");
    const AssembledLog log = n.job.assemble();
    std::map<std::string, std::string> targets;
    for (FileId id = 1; id < log.tables().files.size(); ++id) {
        if (const FileRow& row = log.tables().files[id]; row.target != 0) {
            targets.emplace(log.tables().path(id), log.tables().strings[row.target]);
        }
    }
    CHECK(targets == std::map<std::string, std::string>{{"/jail/data/near", "set"},
                                                        {"/jail/made", "/jail/data/set"},
                                                        {"/jail/over", "/jail/up"},
                                                        {"/jail/there", "/jail/else"},
                                                        {"/old", "/outside"}});
    CHECK(opened(log) == std::vector<std::string>{"/jail/data/set/a", "/jail/b"});
    std::vector<std::string> texts;
    for (const Op& op : log.of_kind(OpKind::symlink)) {
        texts.emplace_back(log.tables().strings[op.text]);
    }
    CHECK(texts == std::vector<std::string>{"/outside", "/jail/data/set", "set", "/jail/up"});
}

TEST_CASE("fchdir to a directory that was renamed since it was opened") {
    Names n;
    const raw_fd directory = RawJob::fd_of(5, 0x77, 77, 4096, 0040755);
    n.job.call(SYS_openat, {uint64_t(-100), 0x1000, 0200000, 0}, 5).path(1, "stage").fd(RAW_WHICH_RESULT, directory);
    n.job.call(SYS_rename, {0x1000, 0x2000}, 0).path(0, "stage").path(1, "rel/v1");
    n.job.call(SYS_fchdir, {5}, 0).fd(0, directory);
    n.open("in");
    n.open("../beside");
    CHECK(opened(n.job.assemble()) ==
          std::vector<std::string>{"/home/me/stage", "/home/me/rel/v1/in", "/home/me/rel/beside"});
}

TEST_CASE("an open that finds what a rename has just put there, before the rename returns") {
    Names n;
    raw_fd made = RawJob::fd_of(5, 0x77, 77, 4096);
    made.info |= RAW_FD_CREATED;
    n.job.call(SYS_openat, {uint64_t(-100), 0x1000, 0102, 0644}, 5).path(1, "new").fd(RAW_WHICH_RESULT, made);
    n.job.call(SYS_close, {5}, 0).fd(0, made);
    const uint64_t begin = n.job.now + 10'000;
    bool same = true;
    SUBCASE("of that file") {}
    SUBCASE("of another one") { same = false; }
    n.job.spawn(200, 200, 17);
    n.job.as(200, 200);
    n.job.call_at(begin + 40'000, begin + 50'000, SYS_openat, {uint64_t(-100), 0x1000, 0, 0}, 6)
        .path(1, "cur")
        .fd(RAW_WHICH_RESULT, RawJob::fd_of(6, 0x88, same ? 77 : 78, 4096));
    n.job.as(100, 100);
    n.job.call_at(begin + 30'000, begin + 90'000, SYS_rename, {0x1000, 0x2000}, 0).path(0, "new").path(1, "cur");
    const AssembledLog log = n.job.assemble();
    const Op rename = log.of_kind(OpKind::rename).front();
    const std::vector<Op> opens = log.of_kind(OpKind::open);
    const Op found = opens[log.path_of(opens[0]).ends_with("cur") ? 0 : 1];
    CHECK(std::string(log.tables().path(rename.file)) == "/home/me/new");
    CHECK((log.tables().file_of(found) == rename.file2) == same);
    CHECK((log.tables().files[log.tables().file_of(found)].origin == Origin::created) == same);
}

TEST_CASE("files are looked up as the recording ends, but where a process has mounts of its own") {
    Names n;
    n.start();
    bool looked = true;
    SUBCASE("all have the same") {}
    SUBCASE("one has its own") {
        looked = false;
        n.unshare();
    }
    n.job.call(SYS_rename, {0x1000, 0x2000}, 0).path(0, "big").path(1, "old");
    RawAssembleOptions how;
    how.find_at_end = [](const std::string& path) {
        return path == "/home/me/old" ? std::optional(FoundAtEnd{0100644, 1000, {}}) : std::nullopt;
    };
    const AssembledLog log = n.job.assemble(how);
    CHECK(log.file("/home/me/big").size_exact == looked);
    CHECK(log.file("/home/me/big").size == (looked ? 1000 : 0));
}

TEST_CASE("a directory that was a link before the job is what it leads to") {
    Names n;
    n.start();
    n.open("now/a");
    n.job.call(SYS_mkdir, {0x1000, 0777}, 0).path(0, "made");
    n.open("made/a");      // what the disk has there by now was not there then
    n.open("switched/a");  // found in a directory that has changed since
    n.open("switched/sub/b");
    n.open("switched/c");
    n.job.call(SYS_rename, {0x1000, 0x2000}, 0).path(0, "other").path(1, "switched");
    n.open("switched/a");
    n.job.call(SYS_unlink, {0x1000}, 0).path(0, "now");
    n.job.call(SYS_mkdir, {0x1000, 0777}, 0).path(0, "now");
    n.open("now/a");
    RawAssembleOptions how;
    how.link_on_disk = [](const std::string& path) -> std::optional<LinkOnDisk> {
        const std::map<std::string, LinkOnDisk> links = {{"/home/me/now", {"/mnt/link/v7", 4'000'000'000}},
                                                         {"/mnt/link", {"big", 4'000'000'000}},
                                                         {"/home/me/made", {"elsewhere", 4'000'000'000}},
                                                         {"/home/me/switched", {"v2", 6'000'000'000}}};
        const auto found = links.find(path);
        return found == links.end() ? std::nullopt : std::optional(found->second);
    };
    how.directory_was = [](const std::string& link, std::string_view rest,
                           uint64_t inode) -> std::optional<LinkOnDisk> {
        if (link != "/home/me/switched" || inode == 0) {
            return std::nullopt;
        }
        if (rest == "a") {
            return LinkOnDisk{"/home/me/renamed", 6'000'000'000};  // was perhaps called "switched" itself
        }
        return rest == "sub/b" ? std::optional(LinkOnDisk{"/home/me/v1", 4'000'000'000}) : std::nullopt;
    };
    CHECK(opened(n.job.assemble(how)) ==
          std::vector<std::string>{"/mnt/big/v7/a", "/home/me/made/a", "/home/me/switched/a", "/home/me/v1/sub/b",
                                   "/home/me/v1/c", "/home/me/switched/a", "/home/me/now/a"});
}

TEST_CASE("links that were there before the job are asked for where .. stands behind them") {
    const auto names = [](bool unshare, int64_t changed, uint64_t mounts) {
        Names n;
        n.start();
        if (unshare) {
            n.unshare();
        }
        n.open("now/../a");
        n.chdir("now");
        n.open("../b");
        RawAssembleOptions how;
        how.mounts = mounts;
        how.link_on_disk = [changed](const std::string& path) -> std::optional<LinkOnDisk> {
            return path == "/home/me/now" ? std::optional<LinkOnDisk>({"far/v7", changed}) : std::nullopt;
        };
        return opened(n.job.assemble(how));
    };
    using Both = std::vector<std::string>;
    CHECK(names(false, 4'000'000'000, 0) == Both{"/home/me/far/a", "/home/me/far/b"});
    CHECK(names(false, 5'100'000'000, 0) == Both{"/home/me/a", "/home/me/b"});  // made since
    CHECK(names(true, 4'000'000'000, 0) == Both{"/home/me/a", "/home/me/b"});   // in another mount namespace
}

TEST_CASE("a process that is attached to has its root, and pivots in its own namespace") {
    Names n;
    raw_seed_task task{};
    const auto seed = [&](uint32_t pid, const char* directory, const char* root, const char* mounts) {
        task.head.pid = task.head.tid = pid;
        n.job.add(RawBytes(RAW_SEED_TASK, task)).string(1, directory).string(2, root).string(3, mounts);
    };
    seed(100, "/jail/dir", "/jail", "mnt:[4026531841]");
    seed(200, "/new", "/", "mnt:[4026532000]");
    seed(300, "/new", "/", "mnt:[4026532001]");
    n.open("a");
    n.open("/b");
    n.job.as(200, 200);
    n.pivot("/new", "/new/old");
    n.open("c");
    n.job.as(300, 300);
    n.open("c");
    CHECK(opened(n.job.assemble()) == std::vector<std::string>{"/jail/dir/a", "/jail/b", "/c", "/new/c"});
}
