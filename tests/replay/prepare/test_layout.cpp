// SPDX-License-Identifier: MIT
// The layout of a log: which names were there at first, of what kind and size, and what is left out.
#include "replay/prepare/layout.h"

#include <algorithm>
#include <set>

#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

struct Laid {
    TempDir dir;
    LogBuilder log{dir / "log"};
    Layout layout;

    /// What is there at first, by path: "d directory, d/a 5, l -> a".
    std::string initial(const OpFilter& filter = OpFilter::all()) {
        layout = make_layout(log.finish(), filter, PathMap{});
        std::set<std::string> lines;
        for (const LayoutEntry& entry : layout.entries) {
            if (entry.initial) {
                const bool sized = entry.type == FileType::regular;
                lines.insert(entry.path + " " +
                             (sized                             ? std::to_string(entry.size)
                              : entry.type == FileType::symlink ? "-> " + entry.target
                                                                : std::string(file_type_name(entry.type))));
            }
        }
        std::string out;
        for (const std::string& line : lines) {
            out += (out.empty() ? "" : ", ") + line;
        }
        return out;
    }
    uint64_t counted(std::string_view name) const {
        for (const Counter& counter : layout.counters) {
            if (counter.name == name) {
                return counter.value;
            }
        }
        return 0;
    }
    const LayoutEntry& entry(std::string_view path) const {
        return *std::find_if(layout.entries.begin(), layout.entries.end(),
                             [&](const LayoutEntry& each) { return each.path == path; });
    }
};

}  // namespace

TEST_CASE_FIXTURE(Laid, "what lies below a file is left out, however deep") {
    log.file("/file", 5);
    log.file("/file/below", 5);
    log.file("/file/below/deeper/deepest", 5);
    log.file("/file/made", 5, Origin::created);
    log.file("/good/one", 7);
    CHECK(initial() == "file 5, good directory, good/one 7");
    CHECK(counted("path_conflicts") == 4);  // the three below it, and the directory that the deepest needs
    CHECK_FALSE(entry("file/made").made);
}

TEST_CASE_FIXTURE(Laid, "a file is there where a path below it failed with ENOTDIR") {
    const auto blocked = [&](const char* path, OpKind kind = OpKind::stat) {
        log.named(kind, log.file(path, 0, Origin::absent, FileType::unknown), 0, 0, 0, -ENOTDIR);
    };
    blocked("/d/zip/inside");
    blocked("/d/zip/inside/deeper");
    blocked("/d/zip/other/deep");
    log.file("/known/file", 5);
    blocked("/known/file/below/deep");
    log.file("/full/of/files", 5);
    blocked("/full/of");  // /full is a directory: nothing that a layout could do
    blocked("/full/of/x");
    blocked("/m/x");  // with a slash at its end, maybe
    log.named(OpKind::stat, log.file("/m/y", 0, Origin::absent, FileType::unknown), 0, 0, 0, -ENOENT);
    log.named(OpKind::link, log.file("/l/a/b", 0, Origin::absent, FileType::unknown),
              log.file("/l/c/d", 0, Origin::absent, FileType::unknown), 0, 0, -ENOTDIR);
    log.open(log.file("/asked", 0, Origin::unknown, FileType::unknown), O_RDONLY | O_DIRECTORY, -ENOTDIR);
    CHECK(initial() ==
          "asked 0, d directory, d/zip 0, full directory, full/of directory, full/of/files 5, known directory, "
          "known/file 5");
    CHECK(counted("path_conflicts") == 0);
}

TEST_CASE_FIXTURE(Laid, "what a rename that failed found at both names is there") {
    const auto name = [&](const char* path) { return log.file(path, 0, Origin::unknown, FileType::unknown); };
    const auto failed = [&](const char* from, const char* to, int64_t error, int64_t flags = 0) {
        log.named(OpKind::rename, name(from), name(to), 0, 0, -error, flags);
    };
    failed("/a/dir", "/a/file", ENOTDIR);
    failed("/b/file", "/b/dir", EISDIR);
    failed("/c/dir", "/c/full", ENOTEMPTY);
    failed("/c/again", "/c/full", EEXIST);  // as XFS says it
    failed("/d/from", "/d/to", EEXIST, RENAME_NOREPLACE);
    log.named(OpKind::link, name("/e/from"), name("/e/to"), 0, 0, -EEXIST);
    log.file("/f/known/one", 5);
    failed("/f/dir", "/f/known", ENOTEMPTY);
    log.named(OpKind::rmdir, name("/g/full"), 0, 0, 0, -ENOTEMPTY);
    log.open(name("/h/dir"), O_WRONLY, -EISDIR);
    // What says nothing of them.
    log.file("/known/file", 5);
    failed("/known/file/below", "/x/y", ENOTDIR);
    failed("/known/file", "/x/slash", ENOTDIR);
    failed("/x/a", "/x/b", ENOENT);
    failed("/x/a", "/x/b", EXDEV);
    CHECK(initial() ==
          "a directory, a/dir directory, a/file 0, b directory, b/dir directory, b/file 0, c directory, "
          "c/again directory, c/dir directory, c/full directory, c/full/.reprise-something 0, d directory, d/from 0, "
          "d/to 0, e directory, e/from 0, e/to 0, f directory, f/dir directory, f/known directory, f/known/one 5, "
          "g directory, g/full directory, g/full/.reprise-something 0, h directory, h/dir directory, "
          "known directory, known/file 5");
    CHECK(counted("path_conflicts") == 0);
}

TEST_CASE_FIXTURE(Laid, "a link to itself is there where a path failed with ELOOP") {
    const auto looped = [&](const char* path, OpKind kind = OpKind::stat, int64_t flags = 0) {
        log.named(kind, log.file(path, 0, Origin::absent, FileType::unknown), 0, 0, 0, -ELOOP, flags);
    };
    looped("/d/loop");
    looped("/d/loop/below");
    looped("/e/above/x", OpKind::stat, AT_SYMLINK_NOFOLLOW);  // the link is not at its end
    looped("/e/above/y", OpKind::unlink);
    looped("/r/x", OpKind::rename);  // of two paths, nobody knows which
    log.open(log.file("/f/refused", 0, Origin::absent, FileType::unknown), O_RDONLY | O_NOFOLLOW, -ELOOP);
    looped("/known/file");  // by another name, or at another time
    log.file("/known/file", 5);
    const FileId seen = log.file("/l", 0, Origin::existed, FileType::symlink);
    log.named(OpKind::stat, seen, 0, 0, 0, -ELOOP);
    CHECK(initial() ==
          "d directory, d/loop -> loop, e directory, e/above -> above, f directory, f/refused -> refused, "
          "known directory, known/file 5, l -> l");
    CHECK(counted("link_loops_left_out") == 1);
    CHECK(counted("links_without_target") == 0);
}

TEST_CASE_FIXTURE(Laid, "attributes that were found before they were set were there at first") {
    const StringId x = log.text("user.x"), y = log.text("user.y"), z = log.text("user.z"),
                   system = log.text("security.selinux");
    const FileId a = log.file("/a", 5), made = log.file("/made", 5, Origin::created), d = log.directory("/d"),
                 link = log.file("/l", 0, Origin::existed, FileType::symlink, 0, "a");
    log.attribute(OpKind::getxattr, a, x, 64, 7);
    log.attribute(OpKind::setxattr, a, x, 9, 0);
    log.attribute(OpKind::getxattr, a, x, 64, 9);
    log.attribute(OpKind::getxattr, a, y, 64, -ENODATA);
    log.attribute(OpKind::setxattr, a, y, 3, 0);
    log.attribute(OpKind::getxattr, a, y, 64, 3);
    log.attribute(OpKind::getxattr, a, z, 10, -ERANGE);  // longer than that
    log.attribute(OpKind::removexattr, d, x, 0, 0);
    log.attribute(OpKind::getxattr, a, system, 64, 20);
    log.attribute(OpKind::getxattr, made, x, 64, 3);
    log.attribute(OpKind::getxattr, link, x, 64, 3);
    CHECK(initial() == "a 5, d directory, l -> a");
    std::map<std::string, Attributes> by_path;
    for (const auto& [entry, attributes] : layout.attributes) {
        by_path.emplace(layout.entries[entry].path, attributes);
    }
    CHECK(by_path == std::map<std::string, Attributes>{{"a", {{"user.x", 7}, {"user.z", 11}}}, {"d", {{"user.x", 0}}}});
    CHECK(counted("attributes_left_out") == 2);
}

TEST_CASE_FIXTURE(Laid, "what was only looked at is a directory where something below it was not found") {
    for (const char* path : {"/looked", "/plain", "/looked/deep"}) {
        log.named(OpKind::access, log.file(path, 0, Origin::existed, FileType::unknown), 0, 0, 0, 0);
    }
    log.named(OpKind::access, log.file("/looked/deep/er", 0, Origin::absent, FileType::unknown), 0, 0, 0, -ENOENT);
    CHECK(initial() == "looked directory, looked/deep directory, plain 0");
}

TEST_CASE_FIXTURE(Laid, "directories are there where something in them is, unless the log makes both") {
    log.directory("/empty");
    log.file("/a/b/c", 1);
    log.file("/made/by/log", 1, Origin::created);
    log.directory("/new", Origin::created);
    log.file("/new/file", 1, Origin::created);
    log.directory("/newer", Origin::created);
    log.directory("/newer/deep", Origin::created);
    log.file("/newer/deep/was_there", 1);
    CHECK(initial() ==
          "a directory, a/b directory, a/b/c 1, empty directory, made directory, made/by directory, "
          "newer directory, newer/deep directory, newer/deep/was_there 1");
    CHECK(entry("new/file").made);
    CHECK(layout.directory_renames.empty());
}

TEST_CASE_FIXTURE(Laid,
                  "a file seen before a directory got its name lay there, one seen after it lay under the old name") {
    const FileId before = log.file("/new/before", 1), after = log.file("/new/after", 2);
    const FileId first = log.directory("/new"), old = log.directory("/old"), gone = log.directory("/gone");
    log.named(OpKind::stat, before);
    log.named(OpKind::rename, first, gone);
    log.named(OpKind::rename, old, first);
    log.named(OpKind::stat, after);
    CHECK(initial() == "gone directory, new directory, new/before 1, old directory, old/after 2");
    REQUIRE(layout.directory_renames.size() == 2);
    CHECK(layout.directory_renames[0].from == "new");
    CHECK(layout.directory_renames[0].to == "gone");
    CHECK(layout.directory_renames[1].from == "old");
    CHECK(layout.directory_renames[1].to == "new");
}

TEST_CASE_FIXTURE(Laid, "names that were exchanged: what is seen afterwards lay below the other one") {
    const FileId before = log.file("/p/f", 1), after = log.file("/p/f", 2), other = log.file("/q/f", 1),
                 only = log.file("/q/only", 3), p = log.directory("/p"), q = log.directory("/q");
    log.named(OpKind::stat, before);
    log.named(OpKind::rename, p, q, 0, 0, 0, RENAME_EXCHANGE);
    log.named(OpKind::stat, after);
    log.named(OpKind::stat, other);
    log.named(OpKind::stat, only);
    CHECK(initial() == "p directory, p/f 1, p/only 3, q directory, q/f 2");
    CHECK(entry("q/only").made);  // for a reset
    CHECK(!entry("q/f").made);
    CHECK(layout.directory_renames.empty());
}

TEST_CASE_FIXTURE(Laid, "what mv renames without a look is a directory where something lies below it") {
    const auto unknown = [&](const char* path, Origin origin = Origin::existed) {
        return log.file(path, 0, origin, FileType::unknown);
    };
    SUBCASE("a release takes the place of the one before") {
        const FileId before = log.file("/cur/data", 3), after = log.file("/cur/data", 1);
        log.named(OpKind::stat, before);
        log.named(OpKind::rename, unknown("/cur"), unknown("/old", Origin::created));
        log.named(OpKind::rename, unknown("/new"), unknown("/cur", Origin::created));
        log.named(OpKind::stat, after);
        CHECK(initial() == "cur directory, cur/data 3, new directory, new/data 1");
        CHECK(layout.directory_renames.size() == 2);
    }
    SUBCASE("nobody looks between two renames") {
        const FileId b = unknown("/b", Origin::created);
        log.named(OpKind::rename, unknown("/a"), b);
        log.named(OpKind::rename, b, unknown("/c", Origin::created));
        log.named(OpKind::stat, log.file("/c/data", 7));
        CHECK(initial() == "a directory, a/data 7");
    }
    SUBCASE("a directory and a file change names") {
        log.named(OpKind::rename, unknown("/d"), log.file("/f"), 0, 0, 0, RENAME_EXCHANGE);
        log.named(OpKind::stat, log.file("/f/data", 5));
        CHECK(initial() == "d directory, d/data 5, f 0");
    }
    SUBCASE("two change names by way of a third; what is below them has rows by the first names, too") {
        log.file("/new/top", 2);
        log.file("/other/o", 3);
        const FileId a = unknown("/a", Origin::created);
        log.named(OpKind::rename, unknown("/new"), a);
        log.named(OpKind::rename, unknown("/other"), unknown("/new", Origin::created));
        log.named(OpKind::rename, a, unknown("/other", Origin::created));
        log.named(OpKind::stat, log.file("/new/o", 3, Origin::created));
        log.named(OpKind::stat, log.file("/other/top", 2, Origin::created));
        CHECK(initial() == "new directory, new/top 2, other directory, other/o 3");
    }
    SUBCASE("what lies below a name later is another's") {
        const FileId x = unknown("/x", Origin::created);
        log.named(OpKind::rename, unknown("/tmp"), x);
        log.named(OpKind::unlink, x);
        log.named(OpKind::rename, unknown("/y"), unknown("/x", Origin::created));
        log.named(OpKind::stat, log.file("/x/data", 5));
        CHECK(initial() == "tmp 0, y directory, y/data 5");
    }
}

TEST_CASE_FIXTURE(Laid, "a file without a name lies in a directory that was there, or that the log makes") {
    const FileId made = log.directory("/made", Origin::created);
    log.named(OpKind::mkdir, made);
    log.open(made, O_TMPFILE | O_RDWR);
    log.open(log.directory("/there"), O_TMPFILE | O_RDWR);
    CHECK(initial() == "there directory");
    CHECK(entry("made").made);  // for a reset
}

TEST_CASE_FIXTURE(Laid, "renames of files are no renames of directories") {
    const FileId a = log.file("/d/a", 3), b = log.file("/d/b", 3, Origin::created);
    log.named(OpKind::rename, a, b);
    log.named(OpKind::rename, a, 0);
    CHECK(initial() == "d directory, d/a 3");
    CHECK(layout.directory_renames.empty());
}

TEST_CASE_FIXTURE(Laid, "links: the recorded target, or one as long, and what they lead to") {
    log.file("/a", 1);
    log.file("/to_a", 0, Origin::existed, FileType::symlink, 0, "a");
    log.file("/made", 0, Origin::created, FileType::symlink, 0, "a");
    log.file("/out", 0, Origin::existed, FileType::symlink, 0, "../../../etc");
    log.file("/unknown", 0, Origin::existed, FileType::symlink);
    log.file("/short", 5, Origin::existed, FileType::symlink);
    log.file("/long", 25, Origin::existed, FileType::symlink);
    log.file("/longest", 9'000, Origin::existed, FileType::symlink);
    const FileId to_new = log.file("/to_new", 0, Origin::existed, FileType::symlink, 0, "d/new");
    log.write(log.open(to_new, O_RDWR), 10, 20);
    const std::string found = initial();
    CHECK(found.starts_with("a 1, d directory, d/new 30, long -> target-not-recorded------, longest -> "));
    CHECK(entry("longest").target == "target-not-recorded" + std::string(4'095 - 19, '-'));
    CHECK(found.ends_with("-, short -> targe, to_a -> a, to_new -> d/new, unknown -> target-not-recorded"));
    CHECK(counted("links_without_target") == 4);
    CHECK(counted("links_unresolved") == 1);
    CHECK(entry("d/new").changed_from == 10);
    CHECK(entry("d/new").changed_to == 30);
    CHECK_FALSE(entry("to_new").data_changed());
    CHECK(entry("made").made);
}

TEST_CASE_FIXTURE(Laid, "two rows of a name: the larger size, each mode that is known, conflicts of kind") {
    log.file("/twice", 5, Origin::existed, FileType::regular, 0640);
    log.file("/twice", 9);
    log.file("/twice", 7);
    log.file("/kind", 5);
    log.directory("/kind");
    log.file("/bits", 1, Origin::existed, FileType::regular, 04755);
    CHECK(initial() == "bits 1, kind 5, twice 9");
    CHECK(counted("paths_shared") == 2);
    CHECK(counted("path_conflicts") == 1);
    CHECK(entry("twice").mode == 0640);
    CHECK(entry("bits").mode == 0755);
}

TEST_CASE_FIXTURE(Laid, "kinds that cannot be laid out, and what the filter leaves out") {
    log.file("/socket", 0, Origin::existed, FileType::socket);
    log.file("/block", 0, Origin::existed, FileType::block);
    log.file("/character", 0, Origin::existed, FileType::character);
    log.file("/anonymous", 0, Origin::existed, FileType::anonymous);
    log.file("/fifo", 0, Origin::existed, FileType::fifo);
    log.file("/untyped", 4, Origin::existed, FileType::unknown);
    log.file("/skipped/a", 4);
    CHECK(initial(OpFilter::from_words({}, {"/skipped/*", "/block"})) == "fifo fifo, untyped 4");
    CHECK(counted("special_files") == 2);
    CHECK(layout.files_left_out == 1);
}

TEST_CASE_FIXTURE(Laid, "sizes that were never seen are counted as guessed") {
    FileRow row;
    row.origin = Origin::existed;
    row.type = FileType::regular;
    row.role = Role::dataset;
    row.size = 10;
    log.row(row, "/guessed");
    row.origin = Origin::created;
    log.row(row, "/made");
    row.origin = Origin::existed;
    row.size_exact = true;
    log.row(row, "/exact");
    row.size_exact = false;
    row.type = FileType::directory;
    log.row(row, "/directory");
    CHECK(initial() == "directory directory, exact 10, guessed 10");
    CHECK(counted("sizes_guessed") == 1);
}

TEST_CASE_FIXTURE(Laid, "the children of each directory, and of the root") {
    log.file("/d/a", 1);
    log.file("/x", 1);
    log.file("/d/b", 1);
    log.file("/d/e/f", 1);
    initial();
    const auto children = [&](uint32_t directory) {
        std::set<std::string> out;
        const auto [begin, end] = layout.children_of(directory);
        for (const uint32_t* child = begin; child != end; ++child) {
            out.insert(layout.entries[*child].path);
            CHECK(layout.entries[*child].parent == directory);
        }
        return out;
    };
    CHECK(children(LayoutEntry::kRoot) == std::set<std::string>{"d", "x"});
    for (uint32_t i = 0; i < layout.entries.size(); ++i) {
        const std::string& path = layout.entries[i].path;
        CAPTURE(path);
        const std::set<std::string> expected = path == "d"     ? std::set<std::string>{"d/a", "d/b", "d/e"}
                                               : path == "d/e" ? std::set<std::string>{"d/e/f"}
                                                               : std::set<std::string>{};
        CHECK(children(i) == expected);
    }
}

}  // namespace reprise::test
