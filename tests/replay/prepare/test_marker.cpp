// SPDX-License-Identifier: MIT
// The marker of a root, and the fingerprint that tells logs apart.
#include <fcntl.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "formats/support/unique_fd.h"
#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

Header some_header() {
    Header header;
    header.origin_unix_ns = 5;
    header.clock = "monotonic";
    header.source = "test";
    header.host = "h";
    header.kernel = "k";
    header.command = "c";
    return header;
}

/// What a log is made of, so that each thing can be another.
struct Parts {
    Header header = some_header();
    std::string path = "/a", target = "/t";
    FileRow file{.generation = 1,
                 .size = 10,
                 .type = FileType::symlink,
                 .role = Role::dataset,
                 .origin = Origin::existed,
                 .mode = 0644};
    FileId opened = 1;
    int64_t flags = 2;
    int32_t pid = 100, tid = 101;
    ProcessId parent = 1, process = 2;
    int ops = 2;
    int64_t begin = 1'000;
};

std::string fingerprint_of(const Parts& parts) {
    const TempDir dir;
    LogWriter writer(dir / "log", parts.header);
    FileRow file = parts.file;
    file.path = writer.intern(parts.path);
    file.target = writer.intern(parts.target);
    writer.add_file(file);
    writer.add_file({.path = writer.intern("/other")});
    const HandleId handle = writer.add_handle({.file = parts.opened, .flags = parts.flags});
    writer.add_process({.pid = 1});
    writer.add_process({.pid = 2});
    writer.add_process({.pid = parts.pid, .parent = parts.parent});
    const TaskId task = writer.add_task({.process = parts.process, .tid = parts.tid});
    for (int i = 0; i < parts.ops; ++i) {
        writer.append(task, {.kind = OpKind::fsync, .begin = parts.begin, .handle = handle, .fd = 3});
    }
    writer.finish();
    return log_fingerprint(LogReader(dir / "log"));
}

Marker marker() {
    Marker m;
    m.state = MarkerState::complete;
    m.tool = "tool \n 1";
    m.log = "/x/\xff.oplog";
    m.fingerprint = "0123";
    m.filter = "roles=dataset";
    m.content = Content::zero;
    m.copies = 8;
    m.time_unix_ns = 1'700'000'000'000'000'001;
    return m;
}

struct Root {
    TempDir dir;
    UniqueFd fd{::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    fs::path file = dir / kMarkerName;

    RootLock lock() const { return RootLock::take(fd.get(), "root", RootLock::Kind::exclusive); }
    void write(const Marker& marker) const {
        RootLock held = lock();
        write_marker(fd.get(), "root", marker, held);
    }
    void change() const {
        RootLock held = lock();
        mark_changed(fd.get(), "root", held);
    }
    std::string refused(const std::string& text) {
        write_file(file, text);
        try {
            static_cast<void>(read_marker(fd.get(), "root"));
        } catch (const Error& error) {
            return std::to_string(static_cast<int>(error.code())) + " " + error.what();
        }
        return {};
    }
    /// The text of a good marker with one piece of it changed.
    std::string with(const std::string& from, const std::string& to) {
        write(marker());
        std::string text = read_file(file);
        const size_t at = text.find(from);
        REQUIRE(at != std::string::npos);
        return text.replace(at, from.size(), to);
    }
};

}  // namespace

TEST_CASE("a fingerprint tells apart what differs in a log, and stays the same for what is the same") {
    std::map<std::string, std::string> seen;
    const auto another = [&](const char* what, const std::function<void(Parts&)>& change) {
        CAPTURE(what);
        Parts parts;
        change(parts);
        const std::string print = fingerprint_of(parts);
        CHECK(print.size() == 16);
        CHECK(print.find_first_not_of("0123456789abcdef") == std::string::npos);
        CHECK(print == fingerprint_of(parts));
        const auto [at, fresh] = seen.emplace(print, what);
        const auto& this_at = at;  // clang 14 has no capture of bindings
        INFO("the same as of: " << this_at->second);
        CHECK(fresh);
    };
    another("nothing", [](Parts&) {});
    another("unit", [](Parts& p) { p.header.time_unit_ns = 1'000; });
    another("origin of time", [](Parts& p) { p.header.origin_unix_ns = 6; });
    another("clock", [](Parts& p) { p.header.clock = "realtime"; });
    another("source", [](Parts& p) { p.header.source = "other"; });
    another("host", [](Parts& p) { p.header.host = "i"; });
    another("kernel", [](Parts& p) { p.header.kernel = "l"; });
    another("command", [](Parts& p) { p.header.command = "d"; });
    another("path", [](Parts& p) { p.path = "/b"; });
    another("target", [](Parts& p) { p.target = "/u"; });
    another("size", [](Parts& p) { p.file.size = 11; });
    another("generation", [](Parts& p) { p.file.generation = 2; });
    another("type", [](Parts& p) { p.file.type = FileType::regular; });
    another("role", [](Parts& p) { p.file.role = Role::checkpoint; });
    another("origin", [](Parts& p) { p.file.origin = Origin::created; });
    another("mode", [](Parts& p) { p.file.mode = 0600; });
    another("opened", [](Parts& p) { p.opened = 2; });
    another("flags", [](Parts& p) { p.flags = 1; });
    another("pid", [](Parts& p) { p.pid = 102; });
    another("parent", [](Parts& p) { p.parent = 2; });
    another("tid", [](Parts& p) { p.tid = 102; });
    another("process", [](Parts& p) { p.process = 1; });
    another("ops", [](Parts& p) { p.ops = 3; });
    another("end", [](Parts& p) { p.begin = 2'000; });
}

TEST_CASE_FIXTURE(Root, "a marker written is a marker read") {
    CHECK_FALSE(read_marker(fd.get(), "root"));
    for (const MarkerState state :
         {MarkerState::incomplete, MarkerState::resetting, MarkerState::complete, MarkerState::changed}) {
        for (const Content content : {Content::random, Content::zero, Content::sparse}) {
            Marker before = marker();
            before.state = state;
            before.content = content;
            write(before);
            const auto after = read_marker(fd.get(), "root");
            REQUIRE(after);
            CHECK(after->state == state);
            CHECK(after->content == content);
            CHECK(after->tool == before.tool);
            CHECK(after->log == before.log);
            CHECK(after->fingerprint == before.fingerprint);
            CHECK(after->filter == before.filter);
            CHECK(after->copies == 8);
            CHECK(after->time_unix_ns == before.time_unix_ns);
        }
    }
    CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE_FIXTURE(Root, "only a complete root becomes a changed one") {
    change();
    CHECK_FALSE(fs::exists(file));
    for (const MarkerState state :
         {MarkerState::incomplete, MarkerState::resetting, MarkerState::complete, MarkerState::changed}) {
        Marker before = marker();
        before.state = state;
        write(before);
        change();
        const auto after = read_marker(fd.get(), "root");
        const bool changes = state == MarkerState::complete;
        CHECK(after->state == (changes ? MarkerState::changed : state));
        CHECK((after->time_unix_ns > before.time_unix_ns) == changes);
        CHECK(after->fingerprint == before.fingerprint);
    }
}

TEST_CASE_FIXTURE(Root, "the marker knows the most copies that ran, and what is older knows of one") {
    Marker before = marker();
    before.copies = 2;
    write(before);
    for (const auto& [ran, known] : {std::pair(1u, 2u), std::pair(8u, 8u), std::pair(4u, 8u)}) {
        {
            RootLock held = lock();
            mark_changed(fd.get(), "root", held, ran);
        }
        CHECK(copies_below(dir.path(), before.fingerprint) == known);
    }
    CHECK(copies_below(dir.path(), "4567") == 1);
    CHECK(copies_below(dir / "none", before.fingerprint) == 1);
    CHECK(refused(with("\"copies\": 8,", "")).empty());
    CHECK(read_marker(fd.get(), "root")->copies == 1);
    CHECK(contains(refused(with("\"copies\": 8", "\"copies\": 0")), "copies 0"));
}

TEST_CASE_FIXTURE(Root, "what is no marker is refused with the reason") {
    CHECK(refused(with("\n", " ")).empty());
    CHECK(contains(refused(""), "3 "));
    CHECK(contains(refused(""), "not a JSON object"));
    CHECK(contains(refused("[]"), "not a JSON object"));
    CHECK(contains(refused(with("\"version\": 1", "\"version\": 2")), "version 2, expected 1"));
    CHECK(contains(refused(with("\"complete\"", "\"complet\"")), "state 'complet'"));
    CHECK(contains(refused(with("\"complete\"", "7")), "no text 'state'"));
    CHECK(contains(refused(with("\"zero\"", "\"none\"")), "content 'none'"));
    CHECK(contains(refused(with("\"fingerprint\"", "\"print\"")), "no text 'fingerprint'"));
    CHECK(contains(refused(with("\"time_unix_ns\"", "\"time\"")), "time_unix_ns"));
    fs::remove(file);
    SUBCASE("a directory") {
        fs::create_directory(file);
        CHECK_THROWS_WITH_AS(static_cast<void>(read_marker(fd.get(), "root")), doctest::Contains("not a regular file"),
                             Error);
    }
    SUBCASE("a link") {
        write_file(dir / "elsewhere", with("\n", " "));
        fs::remove(file);
        fs::create_symlink("elsewhere", file);
        CHECK_THROWS_WITH_AS(static_cast<void>(read_marker(fd.get(), "root")), doctest::Contains("cannot read"), Error);
    }
    SUBCASE("too large") {
        write_file(file, "{}");
        fs::resize_file(file, (uint64_t{16} << 20) + 1);
        CHECK_THROWS_WITH_AS(static_cast<void>(read_marker(fd.get(), "root")), doctest::Contains("too large"), Error);
    }
}

}  // namespace reprise::test
