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
