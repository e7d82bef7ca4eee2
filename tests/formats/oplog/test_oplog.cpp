// SPDX-License-Identifier: MIT
// The op log: round trips of random logs made from the op table, damage, recovery, memory, order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "formats/oplog/layout.h"
#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using reprise::test::TempDir;

namespace {

struct OwnedOp {
    Op op;
    std::vector<int64_t> list;
    std::vector<Edge> edges;
};

bool same(const Op& a, const Op& b) {
    const OpInfo& row = info(a.kind);
    if (a.kind != b.kind || a.begin != b.begin || a.duration != b.duration || a.result != b.result) {
        return false;
    }
#define FIELD(name, type, meaning)                            \
    if (Field::name != Field::list && row.has(Field::name)) { \
        if (!same_field(a.name, b.name)) return false;        \
    }
    const auto same_field = [](const auto& x, const auto& y) {
        if constexpr (std::is_integral_v<std::decay_t<decltype(x)>>) {
            return x == y;
        } else {
            return true;
        }
    };
#include "formats/oplog/ops.def"
    if (row.has(Field::list) && !std::equal(a.list.begin(), a.list.end(), b.list.begin(), b.list.end())) {
        return false;
    }
    return std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end());
}

// Values that jobs have, and values that only hostile files have.
class RandomOps {
public:
    explicit RandomOps(uint64_t seed, uint32_t unit) : random_(seed), unit_(unit) {}

    OwnedOp next(int64_t& clock, OpKind kind, const Tables& tables) {
        OwnedOp made;
        Op& op = made.op;
        op.kind = kind;
        clock += static_cast<int64_t>(pick(5000) * unit_);
        op.begin = clock;
        op.duration = static_cast<int64_t>(pick(100) * unit_);
        op.result = value();
        const OpInfo& row = info(kind);
        const auto id = [&](size_t size) { return static_cast<uint32_t>(pick(size)); };
        if (row.has(Field::handle)) {
            op.handle = id(tables.handles.size());
        }
        if (row.has(Field::fd)) {
            op.fd = static_cast<int32_t>(value());
        }
        if (row.has(Field::handle2)) {
            op.handle2 = id(tables.handles.size());
        }
        if (row.has(Field::fd2)) {
            op.fd2 = static_cast<int32_t>(pick(1000)) - 1;
        }
        if (row.has(Field::file)) {
            op.file = id(tables.files.size());
        }
        if (row.has(Field::file2)) {
            op.file2 = id(tables.files.size());
        }
        if (row.has(Field::offset)) {
            op.offset = value();
        }
        if (row.has(Field::offset2)) {
            op.offset2 = value();
        }
        if (row.has(Field::size)) {
            op.size = value();
        }
        if (row.has(Field::flags)) {
            op.flags = value();
        }
        if (row.has(Field::mode)) {
            op.mode = static_cast<int64_t>(pick(4096));
        }
        if (row.has(Field::arg)) {
            op.arg = value();
        }
        if (row.has(Field::map)) {
            op.map = static_cast<uint32_t>(random_());
        }
        if (row.has(Field::peer)) {
            op.peer = id(tables.tasks.size());
        }
        if (row.has(Field::text)) {
            op.text = id(tables.strings.size());
        }
        if (row.has(Field::request)) {
            op.request = static_cast<uint32_t>(random_());
        }
        if (row.has(Field::list)) {
            for (size_t n = pick(5); n > 0; --n) {
                made.list.push_back(value());
            }
        }
        if (pick(20) == 0) {
            for (size_t n = 1 + pick(3); n > 0; --n) {
                made.edges.push_back({1 + static_cast<TaskId>(pick(tables.tasks.size() - 1)),
                                      static_cast<EdgeKind>(1 + pick(6)), static_cast<uint8_t>(pick(101)),
                                      random_() >> pick(64)});
            }
        }
        return made;
    }

    size_t pick(size_t limit) { return random_() % limit; }
    int64_t value() {
        switch (pick(8)) {
            case 0: return 0;
            case 1: return 4096;
            case 2: return -2;
            case 3: return INT64_MAX;
            case 4: return INT64_MIN;
            default: return static_cast<int64_t>(random_() >> (1 + pick(63)));
        }
    }

private:
    std::mt19937_64 random_;
    uint32_t unit_;
};

void fill_tables(LogWriter& writer, int tasks) {
    const ProcessId process =
        writer.add_process({.pid = 100, .command = writer.intern("python train.py"), .host = writer.intern("node1")});
    for (int i = 0; i < tasks; ++i) {
        writer.add_task({process, 100 + i, writer.intern("worker " + std::to_string(i))});
    }
    for (int i = 0; i < 50; ++i) {
        FileRow file;
        file.path =
            writer.intern("/data/train/" + std::string(static_cast<size_t>(i % 7), '\n') + "\xff" + std::to_string(i));
        file.device = 0xfd00000000000001ull;
        file.inode = UINT64_MAX - static_cast<uint64_t>(i);
        file.size = static_cast<uint64_t>(i) << 40;
        file.size_exact = i % 2;
        file.type = static_cast<FileType>(i % 9);
        file.role = static_cast<Role>(i % 8);
        file.origin = static_cast<Origin>(i % 4);
        const FileId id = writer.add_file(file);
        writer.add_handle({.file = id,
                           .flags = i * 1000,
                           .kind = static_cast<HandleKind>(i % 8),
                           .inherited = i % 3 == 0,
                           .process = process,
                           .fd = i - 1});
    }
}

struct Sample {
    std::filesystem::path path;
    std::vector<std::vector<OwnedOp>> ops;  // per task
};

// A log with every op of the table, spread over tasks.
Sample write_sample(const std::filesystem::path& path, uint64_t seed, size_t ops, int tasks, uint32_t unit,
                    WriterOptions options = {}, size_t kinds = all_ops().size()) {
    Sample sample{path, {}};
    sample.ops.resize(static_cast<size_t>(tasks) + 1);
    Header header;
    header.time_unit_ns = unit;
    header.origin_unix_ns = 1795197917034511000;
    header.source = "test";
    header.extra["key"] = std::string("va\0lue", 6);
    LogWriter writer(path, header, options);
    fill_tables(writer, tasks);
    RandomOps random(seed, unit);
    std::vector<int64_t> clocks(static_cast<size_t>(tasks) + 1, -1000000);
    for (size_t i = 0; i < ops; ++i) {
        const auto task = static_cast<TaskId>(1 + random.pick(static_cast<size_t>(tasks)));
        const OpKind kind = all_ops()[i < kinds ? i : random.pick(kinds)].kind;
        OwnedOp made = random.next(clocks[task], kind, writer.tables());
        made.op.list = made.list;
        made.op.edges = made.edges;
        CHECK(writer.append(task, made.op) == sample.ops[task].size());
        sample.ops[task].push_back(std::move(made));
    }
    FileRow changed = writer.tables().files[3];
    changed.size = 12345;
    writer.update_file(3, changed);
    writer.count(Counter{"dropped_rows", Severity::loss, 7, "rows that were dropped"});
    writer.finish();
    for (auto& task : sample.ops) {
        for (OwnedOp& owned : task) {
            owned.op.list = owned.list;
            owned.op.edges = owned.edges;
        }
    }
    return sample;
}

std::string read_all(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_all(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string error_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("op log: every op with every field survives a round trip") {
    const TempDir dir;
    for (const uint32_t unit : {1u, 1000u}) {
        for (const size_t ops : {size_t{1}, size_t{70}, size_t{1000}, size_t{200000}}) {
            const Sample sample = write_sample(dir / "a.oplog", ops + unit, ops, 3, unit);
            const LogReader log(sample.path);
            CHECK(log.op_count() == ops);
            CHECK(log.header().time_unit_ns == unit);
            CHECK(log.header().extra.at("key") == std::string("va\0lue", 6));
            CHECK(log.tables().files[3].size == 12345);
            CHECK(log.tables().files[5].inode == UINT64_MAX - 4);
            CHECK(log.tables().handles[50].fd == 48);
            CHECK(log.tables().handles[1].inherited);
            CHECK(
                log.tables().path(10).ends_with("\xff"
                                                "9"));
            CHECK(log.tables().losses() == 7);
            for (TaskId task = 1; task <= 3; ++task) {
                size_t wrong = 0, at = 0;
                log.for_each(task, [&](const Op& op, uint64_t number) {
                    if (number != at || !same(sample.ops[task][at].op, op)) {
                        ++wrong;
                    }
                    ++at;
                });
                CHECK(at == sample.ops[task].size());
                CHECK(wrong == 0);
            }
        }
    }
}

// tests/golden/vN.oplog was written by the first release of format version N and is never written again: whatever the
// writer does today, it must be read. The ops in it come from the generator above, seed 42.
TEST_CASE("op log: the golden log of each version is read as it was written") {
    const TempDir dir;
    WriterOptions options;
    options.derive = [](const LogReader& log) {
        return Derived{"ops", 7, {static_cast<uint8_t>(log.op_count() / 1000), 0, 255}};
    };
    constexpr size_t kKindsThen = 70;  // of the op table when the logs were written
    const Sample sample = write_sample(dir / "now.oplog", 42, 3000, 3, 1000, options, kKindsThen);
    int version = 0;
    SUBCASE("1") { version = 1; }
    SUBCASE("2") { version = 2; }
    const auto golden = test::source_dir() / ("tests/golden/v" + std::to_string(version) + ".oplog");
    if (!std::filesystem::exists(golden)) {
        std::filesystem::copy_file(sample.path, golden);
    }
    const LogReader log(golden);
    CHECK(log.format_version() == version);
    const std::optional<Derived> derived = log.derived("ops");
    CHECK(derived.has_value() == (version >= 2));
    if (derived) {
        CHECK(derived->version == 7);
        CHECK(derived->bytes == std::vector<uint8_t>{3, 0, 255});
    }
    const LogReader now(sample.path);
    CHECK(log.header() == now.header());
    CHECK(log.tables().files == now.tables().files);
    CHECK(log.tables().handles == now.tables().handles);
    CHECK(log.tables().processes == now.tables().processes);
    CHECK(log.tables().tasks == now.tables().tasks);
    CHECK(log.tables().counters == now.tables().counters);
    CHECK(log.tables().strings.size() == now.tables().strings.size());
    for (StringId id = 0; id < log.tables().strings.size(); ++id) {
        CHECK(log.tables().strings[id] == now.tables().strings[id]);
    }
    CHECK(log.op_count() == 3000);
    for (TaskId task = 1; task <= 3; ++task) {
        log.for_each(task, [&](const Op& op, uint64_t number) { CHECK(same(sample.ops[task].at(number).op, op)); });
    }
}

TEST_CASE("op log: fields outside an op's schema read back as none") {
    const TempDir dir;
    LogWriter writer(dir / "a.oplog", {});
    fill_tables(writer, 1);
    Op op;
    op.kind = OpKind::mkdir;
    op.file = 1;
    op.handle = 2;
    op.fd = 9;
    op.size = 55;
    writer.append(1, op);
    op.kind = OpKind::read;
    writer.append(1, op);
    writer.finish();
    const LogReader log(dir / "a.oplog");
    OpBlock block;
    log.decode(log.blocks()[0], block);
    CHECK(block.row(0).file == 1);
    CHECK(block.row(0).handle == 0);
    CHECK(block.row(0).fd == -1);
    CHECK(block.row(0).size == 0);
    CHECK(block.row(1).fd == 9);
    CHECK(block.row(1).file == 0);
}

TEST_CASE("op log: coarse times round down and never drift") {
    const TempDir dir;
    Header header;
    header.time_unit_ns = 1000;
    LogWriter writer(dir / "a.oplog", header);
    fill_tables(writer, 1);
    Op op;
    for (int i = 0; i < 100; ++i) {
        op.begin = i * 1999 - 5000;
        op.duration = 999;
        writer.append(1, op);
    }
    writer.finish();
    LogReader(dir / "a.oplog").for_each(1, [](const Op& read, uint64_t i) {
        const int64_t begin = static_cast<int64_t>(i) * 1999 - 5000;
        const auto down = [](int64_t ns) { return (ns - ((ns % 1000) + 1000) % 1000); };
        CHECK(read.begin == down(begin));
        CHECK(read.end() == down(begin + 999));
    });
}

TEST_CASE("op log: blocks are cut by count and by memory, and read in time order") {
    const TempDir dir;
    WriterOptions options;
    SUBCASE("by count") { options.block_ops = 100; }
    SUBCASE("by memory") { options.memory_bytes = 200000; }
    const Sample sample = write_sample(dir / "a.oplog", 5, 20000, 7, 1, options);
    const LogReader log(sample.path);
    CHECK(log.blocks().size() > 7);
    std::tuple<int64_t, TaskId, uint64_t> last{INT64_MIN, 0, 0};
    size_t n = 0, wrong = 0;
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t number) {
        const std::tuple<int64_t, TaskId, uint64_t> now{op.begin, task, number};
        if (!(last < now) || !same(op, sample.ops[task][number].op)) {
            ++wrong;
        }
        last = now;
        ++n;
    });
    CHECK(n == 20000);
    CHECK(wrong == 0);
    for (TaskId task = 1; task <= 7; ++task) {
        uint64_t next = 0;
        for (const BlockInfo& block : log.blocks_of(task)) {
            CHECK(block.first == next);
            CHECK(block.begin == sample.ops[task][next].op.begin);
            next += block.ops;
        }
        CHECK(next == log.op_count(task));
    }
}

TEST_CASE("op log: a misused writer says so") {
    const TempDir dir;
    LogWriter writer(dir / "a.oplog", {});
    CHECK_THROWS_AS(writer.append(1, {}), std::logic_error);
    fill_tables(writer, 1);
    Op op;
    op.begin = 10;
    writer.append(1, op);
    op.begin = 9;
    CHECK_THROWS_AS(writer.append(1, op), std::logic_error);
    const HandleId opened = writer.add_handle({.file = 1});
    const HandleId inherited = writer.add_handle({.inherited = true});
    CHECK_THROWS_AS(writer.update_handle(opened, {.file = 2}), std::logic_error);
    writer.update_handle(inherited, {.file = 2, .inherited = true});
    CHECK(std::filesystem::exists(dir / "a.oplog.partial"));
    writer.discard();
    CHECK(!std::filesystem::exists(dir / "a.oplog.partial"));
    CHECK(error_of([&] { LogWriter("/dev/null", {}); }).find("not a regular file") != std::string::npos);
    CHECK(error_of([&] { LogWriter(dir.path(), {}); }).find("not a regular file") != std::string::npos);
    CHECK(error_of([&] { LogWriter(dir / "missing" / "a.oplog", {}); }).find("cannot be created") != std::string::npos);
}

TEST_CASE("op log: not a log, empty, another version") {
    const TempDir dir;
    const auto path = dir / "a.oplog";
    CHECK(error_of([&] { LogReader log(path); }).find("cannot be opened") != std::string::npos);
    write_all(path, "");
    CHECK(error_of([&] { LogReader log(path); }).find("empty") != std::string::npos);
    write_all(path, "hello, this is text\n");
    CHECK(error_of([&] { LogReader log(path); }).find("not an op log") != std::string::npos);
    CHECK(error_of([&] { LogReader log(dir.path()); }).find("not a regular file") != std::string::npos);
    write_sample(path, 1, 100, 1, 1);
    std::string bytes = read_all(path);
    bytes[8] = 9;
    write_all(path, bytes);
    const std::string message = error_of([&] { LogReader log(path); });
    CHECK(message.find("version 9") != std::string::npos);
    CHECK(message.find("versions 1 to 2") != std::string::npos);
    CHECK(message.find("newer reprise") != std::string::npos);
}

TEST_CASE("op log: what is derived in finish() sees the whole log and is kept in it") {
    const TempDir dir;
    WriterOptions options;
    options.sync = false;
    std::vector<uint8_t> bytes(100'000);
    for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(i * i >> 5);
    }
    size_t calls = 0;
    options.derive = [&](const LogReader& log) -> std::optional<Derived> {
        ++calls;
        CHECK(log.op_count() == 3000);
        CHECK(log.tables().losses() == 7);
        CHECK(log.tables().files[3].size == 12345);
        CHECK_FALSE(log.derived("some"));
        uint64_t ops = 0;
        log.for_each(2, [&](const Op&, uint64_t) { ++ops; });
        CHECK(ops == log.op_count(2));
        return Derived{"some", 3, bytes};
    };
    const Sample sample = write_sample(dir / "a.oplog", 5, 3000, 3, 1, options);
    CHECK(calls == 1);
    const LogReader log(sample.path);
    REQUIRE(log.derived("some"));
    CHECK(log.derived("some")->version == 3);
    CHECK(log.derived("some")->bytes == bytes);
    CHECK_FALSE(log.derived("other"));
    for (TaskId task = 1; task <= 3; ++task) {
        log.for_each(task, [&](const Op& op, uint64_t number) { CHECK(same(sample.ops[task].at(number).op, op)); });
    }
    // Nothing to keep, or too much of it: the log is as without.
    const std::string plain = read_all(write_sample(dir / "b.oplog", 5, 3000, 3, 1).path);
    options.derive = [](const LogReader&) { return std::nullopt; };
    CHECK(read_all(write_sample(dir / "c.oplog", 5, 3000, 3, 1, options).path) == plain);
    options.derive = [](const LogReader&) { return Derived{"much", 1, std::vector<uint8_t>(Derived::kMostBytes + 1)}; };
    CHECK(read_all(write_sample(dir / "d.oplog", 5, 3000, 3, 1, options).path) == plain);
    // A log that was cut is another one.
    std::string whole = read_all(sample.path);
    whole.resize(whole.size() - 1);
    write_all(dir / "cut.oplog", whole);
    const LogReader cut(dir / "cut.oplog", {.recover = true});
    CHECK(cut.op_count() == 3000);
    CHECK_FALSE(cut.derived("some"));
}

TEST_CASE("op log: a file cut anywhere is refused, and recovered up to its last whole block on request") {
    const TempDir dir;
    WriterOptions options;
    options.block_ops = 50;
    const Sample sample = write_sample(dir / "whole.oplog", 3, 2000, 2, 1, options);
    const std::string bytes = read_all(sample.path);
    const auto path = dir / "cut.oplog";
    size_t most = 0;
    for (size_t cut = 1; cut < bytes.size(); cut += cut < 200 ? 1 : 331) {
        write_all(path, std::string_view(bytes).substr(0, cut));
        CHECK(!error_of([&] { LogReader log(path); }).empty());
        try {
            const LogReader log(path, {.recover = true});
            CHECK(log.recovered());
            CHECK(log.tables().losses() >= 1);
            for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
                log.for_each(task,
                             [&](const Op& op, uint64_t number) { CHECK(same(op, sample.ops[task].at(number).op)); });
            }
            most = std::max<size_t>(most, log.op_count());
        } catch (const Error& error) {
            CHECK(cut < 400);  // only where not even the header is whole
        }
    }
    CHECK(most == 2000);
    // A whole file needs no recovery.
    CHECK(!LogReader(sample.path, {.recover = true}).recovered());
}

TEST_CASE("op log: a writer that never finished leaves what can be recovered") {
    const TempDir dir;
    {
        WriterOptions options;
        options.block_ops = 10;
        LogWriter writer(dir / "a.oplog", {}, options);
        fill_tables(writer, 1);
        Op op;
        for (int i = 0; i < 25; ++i) {
            op.begin = i;
            writer.append(1, op);
        }
    }
    CHECK(!std::filesystem::exists(dir / "a.oplog"));
    const LogReader log(dir / "a.oplog.partial", {.recover = true});
    CHECK(log.op_count() == 20);
}

TEST_CASE("op log: a flipped bit is found, with its position") {
    const TempDir dir;
    const Sample sample = write_sample(dir / "whole.oplog", 4, 3000, 2, 1);
    const std::string bytes = read_all(sample.path);
    const auto path = dir / "flipped.oplog";
    std::mt19937_64 random(1);
    for (int round = 0; round < 300; ++round) {
        std::string damaged = bytes;
        // Bytes 10..15 are zero and reserved: readers ignore them.
        size_t at = random() % bytes.size();
        if (at >= 10 && at < 16) {
            at = 0;
        }
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
        write_all(path, damaged);
        bool found = false;
        try {
            const LogReader log(path);
            OpBlock block;
            for (const BlockInfo& one : log.blocks()) {
                log.decode(one, block);
            }
        } catch (const Error& error) {
            found = true;
            CHECK(std::string(error.what()).find("flipped.oplog:") != std::string::npos);
        }
        // The reserved bytes of a section head are the only others that mean nothing.
        if (!found) {
            const LogReader log(path);
            CHECK(log.op_count() == 3000);
        }
    }
}

TEST_CASE("op log: a section whose checksum differs is refused, though it could be decoded") {
    const TempDir dir;
    const Sample sample = write_sample(dir / "whole.oplog", 7, 100, 2, 1);
    const std::string bytes = read_all(sample.path);
    const auto path = dir / "checksum.oplog";
    const auto problem = [&](ReadOptions options) -> std::string {
        try {
            const LogReader log(path, options);
            OpBlock block;
            for (const BlockInfo& one : log.blocks()) {
                log.decode(one, block);
            }
            return log.op_count() == 100 ? "" : "ops are missing";
        } catch (const Error& error) {
            return error.what();
        }
    };
    size_t sections = 0;
    for (size_t at = sizeof(FileHead); at < bytes.size() - sizeof(FileEnd); ++sections) {
        SectionHead head;
        std::memcpy(&head, bytes.data() + at, sizeof head);
        std::string damaged = bytes;
        damaged[at + offsetof(SectionHead, checksum)] ^= 1;
        write_all(path, damaged);
        const std::string position = "checksum.oplog:" + std::to_string(at) + ":";
        CAPTURE(position);
        CHECK(problem({}).find("the checksum of this ") != std::string::npos);
        CHECK(problem({}).find(position) != std::string::npos);
        CHECK(problem({.verify_checksums = false}).empty());
        at += sizeof head + head.size;
    }
    CHECK(sections >= 8);  // header, strings, files, handles, processes, tasks, counters, ops, index
}

TEST_CASE("op log: a section that cannot be is refused, with its place") {
    const TempDir dir;
    const std::string bytes = read_all(write_sample(dir / "whole.oplog", 8, 100, 2, 1).path);
    const auto path = dir / "head.oplog";
    const auto problem = [&](const std::string& damaged) {
        write_all(path, damaged);
        return error_of([&] {
            const LogReader log(path, {.verify_checksums = false});
            OpBlock block;
            for (const BlockInfo& one : log.blocks()) {
                log.decode(one, block);
            }
        });
    };
    const auto put = [](std::string& into, size_t at, const auto& value) {
        std::memcpy(into.data() + at, &value, sizeof value);
    };
    for (size_t at = sizeof(FileHead); at < bytes.size() - sizeof(FileEnd);) {
        SectionHead head;
        std::memcpy(&head, bytes.data() + at, sizeof head);
        const std::string place = "head.oplog:" + std::to_string(at) + ": ";
        CAPTURE(place);
        for (const int type : {0, 11, 255}) {
            std::string damaged = bytes;
            damaged[at] = static_cast<char>(type);
            CHECK(problem(damaged).find(place + "section type " + std::to_string(type) + " is not known") !=
                  std::string::npos);
        }
        const auto rest = static_cast<uint32_t>(bytes.size() - at - sizeof head);
        for (const uint32_t size : {rest, rest + 1, UINT32_MAX}) {
            std::string damaged = bytes;
            put(damaged, at + offsetof(SectionHead, size), size);
            const std::string text = place + "the file ends within a section of " + std::to_string(size) + " bytes";
            CHECK((problem(damaged).find(text) != std::string::npos) == (size > rest));
        }
        at += sizeof head + head.size;
    }
    // The end mark names the place of the index.
    for (const size_t at : {bytes.size() - 15, bytes.size() - 1, bytes.size(), bytes.size() + 1, SIZE_MAX}) {
        std::string damaged = bytes;
        put(damaged, bytes.size() - sizeof(FileEnd), static_cast<uint64_t>(at));
        CHECK(problem(damaged).find("head.oplog:" + std::to_string(at) + ": the file ends within a section") !=
              std::string::npos);
    }
    for (const uint16_t version : {0, 3}) {
        std::string damaged = bytes;
        put(damaged, offsetof(FileHead, version), version);
        CHECK(problem(damaged).find("head.oplog:8: op log version " + std::to_string(version) +
                                    ", this reprise reads") != std::string::npos);
    }
}

TEST_CASE("op log: decoding survives damage that the checksum does not catch") {
    const TempDir dir;
    const Sample sample = write_sample(dir / "whole.oplog", 6, 3000, 2, 1);
    const std::string bytes = read_all(sample.path);
    const auto path = dir / "hostile.oplog";
    std::mt19937_64 random(2);
    size_t refused = 0;
    for (int round = 0; round < 2000; ++round) {
        std::string damaged = bytes;
        for (size_t n = 1 + random() % 4; n > 0; --n) {
            damaged[16 + random() % (bytes.size() - 16)] = static_cast<char>(random());
        }
        write_all(path, damaged);
        try {
            const LogReader log(path, {.recover = round % 2 == 1, .verify_checksums = false});
            OpBlock block;
            for (const BlockInfo& one : log.blocks()) {
                log.decode(one, block);
            }
        } catch (const Error&) {
            ++refused;
        }
    }
    CHECK(refused > 500);
}

TEST_CASE("op log: a task that is too long ago does not hold memory") {
    const TempDir dir;
    WriterOptions options;
    options.memory_bytes = 1 << 20;
    LogWriter writer(dir / "a.oplog", {}, options);
    fill_tables(writer, 1);
    const ProcessId process = 1;
    Op op;
    op.kind = OpKind::fsync;
    op.handle = 1;
    for (int task = 0; task < 3000; ++task) {
        const TaskId id = writer.add_task({process, task, 0});
        for (int i = 0; i < 10; ++i) {
            op.begin = i;
            writer.append(id, op);
        }
    }
    writer.finish();
    CHECK(LogReader(dir / "a.oplog").op_count() == 30000);
}
