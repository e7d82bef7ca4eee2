// SPDX-License-Identifier: MIT
// The iologs are what fio 3.33 accepts (tests/cli/export.sh runs it), and what they cannot hold is counted.
#include <cerrno>
#include <string>
#include <vector>

#include "formats/export/exporter.h"
#include "formats/support/error.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

uint64_t counter(const ExportReport& report, std::string_view name) {
    for (const Counter& row : report.counters) {
        if (row.name == name) {
            return row.value;
        }
    }
    return 0;
}

}  // namespace

TEST_CASE("one iolog per task with data, times in microseconds from 1, and a job file") {
    const test::TempDir dir;
    test::write_fio_sample(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    const ExportReport report = find_exporter("fio").write(log, (dir / "out").string() + "/", {});
    CHECK(test::read_file(dir / "out/task-1.iolog") ==
          "fio version 3 iolog\n1 data/one add\n1 data/one open\n1001 data/one read 0 4096\n2001 data/one read 4096 "
          "4096\n"
          "3001 data/one read 8192 4096\n4001 data/one read 12288 4096\n10001 data/one write 0 4096\n11001 data/one "
          "write 4096 4096\n"
          "13001 data/one sync 0 0\n15001 data/one close\n");
    CHECK(test::read_file(dir / "out/task-2.iolog") ==
          "fio version 3 iolog\n1 data/two add\n2001 data/two open\n3001 data/two read 0 8192\n4001 data/two read 8192 "
          "16384\n6001 data/two close\n");
    CHECK_FALSE(std::filesystem::exists(dir / "out/task-3.iolog"));
    CHECK_FALSE(std::filesystem::exists(dir / "out/task-3.iolog.partial"));
    const std::string job = test::read_file(dir / "out/replay.fio");
    CHECK(job.find("[task-1]\nread_iolog=${IOLOGS}/task-1.iolog\n") != std::string::npos);
    CHECK(job.find("task-3") == std::string::npos);
    CHECK(report.ops == 13);
    CHECK(counter(report, "no_fio_action.fstat") == 1);
    CHECK(counter(report, "no_bytes") == 1);
    CHECK(counter(report, "tasks_without_data") == 1);
}

TEST_CASE("names fio cannot read are replaced and said, opens of other tasks are added") {
    const test::TempDir dir;
    {
        LogWriter log(dir / "a.oplog", Header());
        log.add_process({1, 0, 0, 0});
        log.add_task({1, 1, 0});
        log.add_task({1, 2, 0});
        FileRow row;
        row.type = FileType::regular;
        for (const std::string& path :
             {std::string("/a b\n\xff"), "/" + std::string(300, 'x'), std::string("/plain")}) {
            row.path = log.intern(path);
            log.add_handle({log.add_file(row), 0, HandleKind::file, true, 1, 3});
        }
        row.path = log.intern("/dir");
        row.type = FileType::directory;
        log.add_handle({log.add_file(row), 0, HandleKind::directory, true, 1, 3});
        for (HandleId handle = 1; handle <= 4; ++handle) {
            for (int64_t n = 0; n < 2; ++n) {
                Op op;
                op.kind = n ? OpKind::pwrite : OpKind::pread;
                op.begin = handle * 1000;
                op.handle = handle;
                op.size = op.result = 10;
                log.append(1, op);
            }
        }
        Op op;
        op.kind = OpKind::pread;
        op.handle = 3;
        op.size = 10;
        op.result = -5;
        log.append(2, op);
        log.finish();
    }
    const LogReader log(dir / "a.oplog");
    const ExportReport report = find_exporter("fio").write(log, dir / "out", {});
    const std::string text = test::read_file(dir / "out.1"), job = test::read_file(dir / "out.fio");
    CHECK(text.find("reprise-file-1 add\n") != std::string::npos);
    CHECK(text.find(" reprise-file-2 read 0 10\n") != std::string::npos);
    CHECK(text.find(" plain write 0 10\n") != std::string::npos);
    CHECK(text.find("dir") == std::string::npos);
    CHECK(job.find("; reprise-file-1 stands for \"/a b\\n\\xff\"") != std::string::npos);
    CHECK(counter(report, "names_replaced") == 2);
    CHECK(counter(report, "opens_synthesised") == 3);
    CHECK(counter(report, "not_a_regular_file") == 2);
    CHECK(counter(report, "failed_calls") == 1);
    CHECK(report.ops == 6);
}

namespace {

/// Two files of each of two tasks: all of the first task's with O_DIRECT, the first of the second's.
void write_direct(const std::filesystem::path& path) {
    LogWriter log(path, Header());
    log.add_process({1, 0, 0, 0});
    log.add_task({1, 1, 0});
    log.add_task({1, 2, 0});
    for (HandleId handle = 1; handle <= 4; ++handle) {
        FileRow row;
        row.type = FileType::regular;
        row.path = log.intern("/f" + std::to_string(handle));
        const FileId file = log.add_file(row);
        log.add_handle({file, handle <= 3 ? 040002 : 2, HandleKind::file, false, 0, -1});
        Op op;
        op.kind = OpKind::open;
        op.begin = handle * 1000;
        op.file = file;
        op.handle = handle;
        op.result = 3;
        log.append(handle <= 2 ? 1 : 2, op);
        op = {};
        op.kind = OpKind::pread;
        op.begin = handle * 1000;
        op.handle = handle;
        op.size = op.result = 4096;
        log.append(handle <= 2 ? 1 : 2, op);
    }
    log.finish();
}

}  // namespace

TEST_CASE("what was opened with O_DIRECT is read with direct=1, in a section of its own where the rest was not") {
    const test::TempDir dir;
    write_direct(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    const ExportReport report = find_exporter("fio").write(log, (dir / "out").string() + "/", {});
    const std::string job = test::read_file(dir / "out/replay.fio");
    CHECK(job.find("[task-1]\nread_iolog=${IOLOGS}/task-1.direct.iolog\ndirect=1\n") != std::string::npos);
    CHECK(job.find("[task-2]\nread_iolog=${IOLOGS}/task-2.iolog\n\n") != std::string::npos);
    CHECK(job.find(": its files with O_DIRECT, at the same time as the others and not in turn with them\n"
                   "[task-2-direct]\nread_iolog=${IOLOGS}/task-2.direct.iolog\ndirect=1\n") != std::string::npos);
    CHECK(test::read_file(dir / "out/task-1.direct.iolog").find("f2 read 0 4096\n") != std::string::npos);
    CHECK(test::read_file(dir / "out/task-2.direct.iolog").find("f3 read 0 4096\n") != std::string::npos);
    CHECK(test::read_file(dir / "out/task-2.iolog").find("f4 read 0 4096\n") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(dir / "out/task-1.iolog"));
    CHECK(report.ops == 8);
    CHECK(report.files.size() == 4);
}

TEST_CASE("files keep the names that they had first, whatever is renamed") {
    const test::TempDir dir;
    LogWriter log(dir / "a.oplog", {}, {.sync = false});
    const TaskId task = log.add_task({.process = log.add_process({.pid = 1}), .tid = 1});
    int64_t now = 0;
    const auto file = [&](std::string_view path) {
        FileRow row;
        row.path = log.intern(path);
        row.type = FileType::regular;
        return log.add_file(row);
    };
    const auto names = [&](OpKind kind, std::string_view from, std::string_view to = {}, int64_t flags = 0,
                           int64_t result = 0) {
        Op op;
        op.kind = kind;
        op.begin = now += 1'000'000;
        op.file = file(from);
        op.file2 = to.empty() ? 0 : file(to);
        op.flags = flags;
        op.result = result;
        log.append(task, op);
    };
    const auto opened = [&](std::string_view path) {
        Op op;
        op.kind = OpKind::open;
        op.begin = now += 1'000'000;
        op.file = file(path);
        op.handle = log.add_handle({.file = op.file});
        op.result = 3;
        log.append(task, op);
        return op.handle;
    };
    const auto read = [&](HandleId handle, int64_t bytes) {
        Op op;
        op.kind = OpKind::pread;
        op.begin = now += 1'000'000;
        op.handle = handle;
        op.size = op.result = bytes;
        log.append(task, op);
    };
    const HandleId before = opened("/d/f");
    names(OpKind::rename, "/d", "/failed", 0, -ENOENT);
    names(OpKind::rename, "/d", "/e");
    names(OpKind::mkdir, "/e/made");
    read(before, 1);
    read(opened("/e/f"), 2);
    read(opened("/e/made/x"), 3);
    names(OpKind::rename, "/e/f", "/e/g");
    names(OpKind::rename, "/e", "/h");
    read(opened("/h/g"), 4);
    names(OpKind::rename, "/p", "/q", 2);  // RENAME_EXCHANGE
    read(opened("/p/a"), 5);
    read(opened("/q/a"), 6);
    names(OpKind::link, "/p/a", "/l");
    read(opened("/l"), 7);
    names(OpKind::rename, "/else", "/l");
    read(opened("/l"), 8);
    read(opened("/dd/f"), 9);  // begins like one
    log.finish();
    find_exporter("fio").write(LogReader(dir / "a.oplog"), (dir / "out").string() + "/", {});
    const std::string lines = test::read_file(dir / "out/task-1.iolog");
    const std::vector<std::string> want = {"d/f", "d/f", "d/made/x", "d/f", "q/a", "p/a", "q/a", "else", "dd/f"};
    for (size_t i = 0; i < want.size(); ++i) {
        CHECK_MESSAGE(lines.find(" " + want[i] + " read 0 " + std::to_string(i + 1) + "\n") != std::string::npos,
                      lines);
    }
    const std::string job = test::read_file(dir / "out/replay.fio");
    CHECK(job.find(";   mkdir -p -- d/made\n") != std::string::npos);
    CHECK(job.find(";   mkdir -p -- e/made\n") == std::string::npos);
}

TEST_CASE("what a task reads after another wrote it is said: fio's jobs keep no order") {
    // Ops of task 1 or 2 on one file, or on another one: begin, task, whether it writes, file.
    struct Use {
        int64_t begin;
        TaskId task;
        bool writes, other;
    };
    const auto note = [](std::vector<Use> uses) {
        const test::TempDir dir;
        {
            LogWriter log(dir / "a.oplog", Header());
            log.add_process({1, 0, 0, 0});
            log.add_task({1, 1, 0});
            log.add_task({1, 2, 0});
            FileRow row;
            row.type = FileType::regular;
            for (const char* path : {"/d/one", "/d/other"}) {
                row.path = log.intern(path);
                log.add_handle({.file = log.add_file(row), .flags = 2});
            }
            for (const Use& use : uses) {
                log.append(use.task, {.kind = use.writes ? OpKind::pwrite : OpKind::pread,
                                      .begin = use.begin,
                                      .duration = 10,
                                      .result = 100,
                                      .handle = use.other ? HandleId{2} : HandleId{1},
                                      .fd = 3,
                                      .size = 100});
            }
            log.finish();
        }
        const LogReader log(dir / "a.oplog");
        const ExportReport report = find_exporter("fio").write(log, (dir / "out").string() + "/", {});
        const bool in_job = test::read_file(dir / "out/replay.fio").find("do not wait") != std::string::npos;
        CHECK(in_job == !report.notes.empty());
        return report.notes.empty() ? std::string() : report.notes[0];
    };
    const std::string one =
        "1 file is read by a task after another wrote it (d/one): fio's jobs do not wait for each other, so on slower "
        "storage a read may come before the write";
    CHECK(note({{100, 1, true, false}, {200, 2, false, false}}) == one);
    CHECK(note({{100, 2, true, false}, {200, 1, false, false}}) == one);
    // Both write it first; the one that reads later finds what the other wrote.
    CHECK(note({{100, 1, true, false}, {150, 1, false, false}, {120, 2, true, false}, {130, 2, false, false}}) == one);
    CHECK(note({{100, 1, true, false}, {200, 2, false, false}, {300, 2, true, true}, {400, 1, false, true}})
              .starts_with("2 files are read by a task after another wrote them (d/one, ...): "));
    CHECK(note({{100, 1, true, false}, {200, 1, false, false}}).empty());   // its own
    CHECK(note({{100, 1, false, false}, {200, 2, true, false}}).empty());   // before
    CHECK(note({{100, 1, false, false}, {200, 2, false, false}}).empty());  // nobody writes
    CHECK(note({{100, 1, true, false}, {200, 2, false, true}}).empty());    // another file
}

TEST_CASE("a log of which fio can do nothing is refused, and no job file is left") {
    const test::TempDir dir;
    {
        LogWriter log(dir / "a.oplog", Header());
        log.add_process({1, 0, 0, 0});
        log.add_task({1, 1, 0});
        FileRow row;
        row.type = FileType::regular;
        row.path = log.intern("/f");
        const HandleId handle = log.add_handle({log.add_file(row), 0, HandleKind::file, true, 1, 3});
        for (const OpKind kind : {OpKind::mmap, OpKind::touch, OpKind::touch}) {
            Op op;
            op.kind = kind;
            op.handle = handle;
            op.size = 4096;
            log.append(1, op);
        }
        log.finish();
    }
    const LogReader log(dir / "a.oplog");
    std::string what;
    try {
        find_exporter("fio").write(log, dir / "out", {});
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        what = error.what();
    }
    CHECK(what.find("nothing that fio can do") != std::string::npos);
    CHECK(what.find("touch (2)") != std::string::npos);
    for (const char* name : {"out", "out.fio", "out.direct"}) {
        CHECK_FALSE(std::filesystem::exists(dir / name));
    }
}

TEST_CASE("exporters have names; outputs that cannot be are refused") {
    CHECK_THROWS_AS(find_exporter("mp3"), Error);
    const test::TempDir dir;
    test::write_fio_sample(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    CHECK_THROWS_AS(find_exporter("fio").write(log, "-", {}), Error);
    for (const Exporter* exporter : all_exporters()) {
        CHECK_THROWS_AS(exporter->write(log, dir / "no/such/folder/x", {}), Error);
    }
}
