// SPDX-License-Identifier: MIT
#include "tests/samples.h"

#include <fcntl.h>

#include <string>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "tests/units.h"

namespace reprise::test {
namespace {

struct Placed {
    TaskId task;
    Op op;
};

Header sample_header() {
    Header header;
    header.origin_unix_ns = 1'700'000'000'000'000'000;
    header.clock = "monotonic";
    header.source = "sample";
    header.tool = "reprise tests";
    header.host = "host a";
    header.kernel = "6.1";
    header.command = "train\n--epochs 2";
    return header;
}

// Tables of the sample; ids are those in the comments.
void add_tables(LogWriter& log) {
    const auto file = [&](std::string_view path, Role role, Origin origin, uint64_t size,
                          FileType type = FileType::regular) {
        FileRow row;
        row.path = log.intern(path);
        row.role = role;
        row.origin = origin;
        row.size = size;
        row.size_exact = size != 0;
        row.type = type;
        return log.add_file(row);
    };
    log.add_process({100, 0, log.intern("python train.py"), log.intern("host a")});
    log.add_process({101, 1, log.intern("python worker"), log.intern("host a")});
    log.add_task({1, 100, log.intern("main")});
    log.add_task({2, 101, log.intern("worker")});
    log.add_task({1, 102, log.intern("idle thread")});
    file("/data/a b\n\xff\"x", Role::dataset, Origin::existed, 65536);          // 1
    file("/data/plain.bin", Role::dataset, Origin::existed, 131072);            // 2
    file("/usr/lib/libc.so.6", Role::program, Origin::existed, 2000000);        // 3
    file("/ckpt/model.pt", Role::checkpoint, Origin::created, 8192);            // 4
    file("/nope", Role::unknown, Origin::absent, 0, FileType::unknown);         // 5
    log.add_handle({2, O_RDONLY, HandleKind::file, false, 0, -1});              // 1
    log.add_handle({3, O_RDONLY | O_CLOEXEC, HandleKind::file, false, 0, -1});  // 2
    log.add_handle({1, O_RDONLY, HandleKind::file, false, 0, -1});              // 3
    log.add_handle({4, O_WRONLY | O_CREAT, HandleKind::file, false, 0, -1});    // 4
    log.count(Counter{"rows_malformed", Severity::loss, 2, "lines that could not be read"});
    log.count(Counter{"offsets_followed", Severity::note, 9, "offsets reconstructed from the position"});
}

Op make(OpKind kind, int64_t begin, int64_t duration, int64_t result) {
    Op op;
    op.kind = kind;
    op.begin = begin;
    op.duration = duration;
    op.result = result;
    return op;
}

Op marker(int64_t at, StringId text, int64_t number, MarkerPhase phase) {
    Op op = make(OpKind::marker, at, 0, 0);
    op.text = text;
    op.arg = number;
    op.flags = static_cast<int64_t>(phase);
    return op;
}

Op open_op(int64_t at, FileId file, HandleId handle, int64_t flags, int64_t fd) {
    Op op = make(OpKind::open, at, 2000, fd);
    op.file = file;
    op.handle = handle;
    op.flags = flags;
    op.mode = flags & O_CREAT ? 0644 : 0;
    return op;
}

Op data_op(OpKind kind, int64_t at, HandleId handle, int32_t fd, int64_t offset, int64_t size, int64_t result,
           int64_t duration = 5000) {
    Op op = make(kind, at, duration, result);
    op.handle = handle;
    op.fd = fd;
    op.offset = offset;
    op.size = size;
    return op;
}

Op close_op(int64_t at, HandleId handle, int32_t fd) {
    Op op = make(OpKind::close, at, 500, 0);
    op.handle = handle;
    op.fd = fd;
    return op;
}

void epoch(std::vector<Placed>& ops, int64_t at, int64_t number, StringId epoch_name) {
    ops.push_back({1, marker(at, epoch_name, number, MarkerPhase::begin)});
    for (int64_t step = 0; step < 3; ++step) {
        const int64_t begin = at + (10 + 30 * step) * kMs;
        Op submit = make(OpKind::gpu_submit, begin, 0, 0);
        submit.size = 20 * kMs;
        Op wait = make(OpKind::gpu_wait, begin, 20 * kMs, 0);
        ops.push_back({1, submit});
        ops.push_back({1, wait});
        ops.push_back({1, data_op(OpKind::read, begin + 21 * kMs, 1, 3, (number * 3 + step) * 4096, 4096, 4096)});
    }
    ops.push_back({1, marker(at + 100 * kMs, epoch_name, number, MarkerPhase::end)});
}

std::vector<Placed> sample_ops(StringId epoch_name, StringId fetch_name) {
    std::vector<Placed> ops;
    ops.push_back({1, open_op(-2 * kMs, 2, 1, O_RDONLY, 3)});
    Op spawn = make(OpKind::spawn, -kMs, 1000, 101);
    spawn.peer = 2;
    ops.push_back({1, spawn});
    epoch(ops, 0, 0, epoch_name);
    epoch(ops, 200 * kMs, 1, epoch_name);
    ops.push_back({1, open_op(310 * kMs, 4, 4, O_WRONLY | O_CREAT, 4)});
    ops.push_back({1, data_op(OpKind::write, 311 * kMs, 4, 4, 0, 8192, 8192)});
    Op sync = make(OpKind::fsync, 312 * kMs, 3 * kMs, 0);
    sync.handle = 4;
    sync.fd = 4;
    ops.push_back({1, sync});
    ops.push_back({1, close_op(316 * kMs, 4, 4)});
    ops.push_back({1, close_op(317 * kMs, 1, 3)});

    ops.push_back({2, open_op(kMs, 3, 2, O_RDONLY | O_CLOEXEC, 5)});
    Op map = make(OpKind::mmap, 2 * kMs, 3000, 0x7f0000000000);
    map.handle = 2;
    map.fd = 5;
    map.size = 2000000;
    map.flags = 2;
    map.mode = 5;
    map.map = 1;
    ops.push_back({2, map});
    Op touch = make(OpKind::touch, 3 * kMs, 1000, 0);
    touch.map = 1;
    touch.size = 8192;
    ops.push_back({2, touch});
    ops.push_back({2, close_op(4 * kMs, 2, 5)});
    Op missing = open_op(5 * kMs, 5, 0, O_RDONLY, -2);
    ops.push_back({2, missing});
    ops.push_back({2, marker(6 * kMs, fetch_name, 7, MarkerPhase::begin)});
    ops.push_back({2, open_op(7 * kMs, 1, 3, O_RDONLY, 5)});
    for (int64_t i = 0; i < 4; ++i) {
        Op read = data_op(OpKind::pread, (8 + i) * kMs, 3, 5, i * 16384, 16384, 16384, (i + 1) * 10000);
        ops.push_back({2, read});
    }
    ops.push_back({2, close_op(13 * kMs, 3, 5)});
    ops.push_back({2, marker(14 * kMs, fetch_name, 7, MarkerPhase::end)});
    Op unmap = make(OpKind::munmap, 15 * kMs, 4000, 0);
    unmap.map = 1;
    unmap.size = 2000000;
    ops.push_back({2, unmap});
    Op end = make(OpKind::exit, 16 * kMs, 0, 0);
    ops.push_back({2, end});
    return ops;
}

}  // namespace

void write_sample(const std::filesystem::path& path) {
    LogWriter log(path, sample_header());
    add_tables(log);
    const StringId epoch_name = log.intern("epoch"), fetch_name = log.intern("fetch");
    for (Placed& placed : sample_ops(epoch_name, fetch_name)) {
        Edge edge;
        if (placed.op.kind == OpKind::gpu_wait && placed.op.begin == 10 * kMs) {
            edge = {2, EdgeKind::queue, 80, 3};
            placed.op.edges = {&edge, 1};
        }
        log.append(placed.task, placed.op);
    }
    log.finish();
}

void write_sample_run(const std::filesystem::path& path, const RunChanges& changes) {
    const OpFilter filter;
    Header header = sample_header();
    header.source = "replay";
    header.extra["filter"] = filter.to_string();
    header.extra["ended"] = "complete";
    header.extra["lateness_us.p99"] = "12";
    LogWriter log(path, header);
    add_tables(log);
    const StringId epoch_name = log.intern("epoch"), fetch_name = log.intern("fetch");
    std::vector<Placed> ops;
    for (Placed placed : sample_ops(epoch_name, fetch_name)) {
        Op& op = placed.op;
        if (!filter.keeps(log.tables(), op)) {
            continue;
        }
        if (op.map == 1) {
            continue;  // belongs to the library
        }
        if (op.kind == OpKind::open && op.result >= 0) {
            op.result += 10;
        }
        op.begin = static_cast<int64_t>(static_cast<double>(op.begin) * changes.slower);
        op.duration = static_cast<int64_t>(static_cast<double>(op.duration) * changes.slower);
        const bool second_pread = op.kind == OpKind::pread && op.offset == 16384;
        if (changes.short_read && second_pread) {
            op.result = 100;
        }
        if (changes.other_size && second_pread) {
            op.size = op.result = 8192;
        }
        if (changes.missing_op && second_pread) {
            continue;
        }
        ops.push_back(placed);
        if (changes.extra_op && second_pread) {
            ops.push_back(placed);
        }
        if (changes.swapped && op.kind == OpKind::pread && op.offset == 32768) {
            std::swap(ops[ops.size() - 1].op.offset, ops[ops.size() - 2].op.offset);
        }
    }
    for (const Placed& placed : ops) {
        log.append(placed.task, placed.op);
    }
    log.finish();
}

void write_all_ops(const std::filesystem::path& path) {
    LogWriter log(path, sample_header());
    add_tables(log);
    const StringId text = log.intern("a text\n\x01\"\\");
    const int64_t list[] = {11, 22, 33};
    const Edge edges[] = {{1, EdgeKind::message, 100, 4}, {2, EdgeKind::queue, 70, 5}};
    int64_t at = 1000;
    for (const OpInfo& row : all_ops()) {
        Op op;
        op.kind = row.kind;
        op.begin = at += 1000;
        op.duration = 500 + static_cast<int64_t>(row.kind);
        op.result = 7000 + static_cast<int64_t>(row.kind);
        op.handle = 1;
        op.fd = 103;
        op.handle2 = 3;
        op.fd2 = 105;
        op.file = 2;
        op.file2 = 4;
        op.offset = 10007;
        op.offset2 = 10008;
        op.size = 10009;
        op.flags = 10010;
        op.mode = 10011;
        op.arg = 10012;
        op.map = 10013;
        op.peer = 2;
        op.text = text;
        op.request = 10016;
        if (row.has(Field::list)) {
            op.list = list;
        }
        if (row.kind == OpKind::receive) {
            op.edges = edges;
        }
        log.append(1, op);
    }
    log.finish();
}

void write_fio_sample(const std::filesystem::path& path) {
    LogWriter log(path, sample_header());
    log.add_process({100, 0, log.intern("python"), log.intern("host a")});
    const FileId one = log.add_file({.path = log.intern("/data/one"),
                                     .size = 65536,
                                     .type = FileType::regular,
                                     .role = Role::dataset,
                                     .origin = Origin::existed});
    const FileId two = log.add_file({.path = log.intern("/data/two"),
                                     .size = 65536,
                                     .type = FileType::regular,
                                     .role = Role::dataset,
                                     .origin = Origin::existed});
    const HandleId of_one = log.add_handle({one, O_RDWR, HandleKind::file, false, 0, -1});
    const HandleId of_two = log.add_handle({two, O_RDONLY, HandleKind::file, false, 0, -1});
    for (int32_t tid = 100; tid < 103; ++tid) {
        log.add_task({1, tid, log.intern("task " + std::to_string(tid))});
    }
    log.append(1, open_op(0, one, of_one, O_RDWR, 3));
    for (int64_t i = 0; i < 4; ++i) {
        log.append(1, data_op(OpKind::pread, (1 + i) * kMs, of_one, 3, i * 4096, 4096, 4096));
    }
    for (int64_t i = 0; i < 2; ++i) {
        log.append(1, data_op(OpKind::pwrite, (10 + i) * kMs, of_one, 3, i * 4096, 4096, 4096));
    }
    Op sync = make(OpKind::fsync, 13 * kMs, 1000, 0);
    sync.handle = of_one;
    sync.fd = 3;
    log.append(1, sync);
    Op look = make(OpKind::fstat, 14 * kMs, 1000, 0);
    look.handle = of_one;
    look.fd = 3;
    log.append(1, look);
    log.append(1, close_op(15 * kMs, of_one, 3));
    log.append(2, open_op(2 * kMs, two, of_two, O_RDONLY, 4));
    log.append(2, data_op(OpKind::read, 3 * kMs, of_two, 4, 0, 8192, 8192));
    log.append(2, data_op(OpKind::read, 4 * kMs, of_two, 4, 8192, 65536, 16384));
    log.append(2, data_op(OpKind::read, 5 * kMs, of_two, 4, 65536, 8192, 0));
    log.append(2, close_op(6 * kMs, of_two, 4));
    log.append(3, make(OpKind::exit, 7 * kMs, 0, 0));
    log.finish();
}

void write_live_sample(const std::filesystem::path& path, int steps) {
    constexpr int64_t kStep = 10 * kMs, kRead = 65536, kRecords = 64;
    LogWriter log(path, sample_header());
    log.add_process({100, 0, log.intern("train"), log.intern("host a")});
    const auto file = [&](const char* name, Role role, Origin origin) {
        FileRow row;
        row.path = log.intern(name);
        row.size = origin == Origin::existed ? kRead * kRecords : 0;
        row.type = FileType::regular;
        row.role = role;
        row.origin = origin;
        return log.add_file(row);
    };
    const FileId data = file("/data/one", Role::dataset, Origin::existed);
    const FileId saved = file("/data/ckpt", Role::checkpoint, Origin::created);
    const HandleId reading = log.add_handle({data, O_RDONLY, HandleKind::file, false, 0, -1});
    const HandleId saving = log.add_handle({saved, O_WRONLY | O_CREAT, HandleKind::file, false, 0, -1});
    const TaskId trainer = log.add_task({1, 100, log.intern("trainer")});
    const TaskId loader = log.add_task({1, 101, log.intern("loader")});
    log.append(trainer, open_op(0, saved, saving, O_WRONLY | O_CREAT, 3));
    log.append(loader, open_op(0, data, reading, O_RDONLY, 4));
    for (int64_t step = 0; step < steps; ++step) {
        const int64_t at = kMs + step * kStep;
        const auto number =
            log.append(loader, data_op(OpKind::pread, at, reading, 4, step % kRecords * kRead, kRead, kRead));
        Op wait = make(OpKind::wait, at + 100'000, 2 * kMs, 0);
        const Edge edge{loader, EdgeKind::wake, 100, number};
        wait.edges = {&edge, 1};
        log.append(trainer, wait);
        Op submit = make(OpKind::gpu_submit, at + 3 * kMs, 1000, 0);
        submit.size = 6 * kMs;
        log.append(trainer, submit);
        if (step % 20 == 0) {
            log.append(trainer, data_op(OpKind::pwrite, at + 4 * kMs, saving, 3, step * 4096, 4096, 4096));
        }
        log.append(trainer, make(OpKind::gpu_wait, at + 5 * kMs, 4 * kMs, 0));
    }
    log.append(trainer, close_op(kMs + steps * kStep, saving, 3));
    log.append(loader, close_op(kMs + steps * kStep, reading, 4));
    log.finish();
}

}  // namespace reprise::test
