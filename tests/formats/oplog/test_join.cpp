// SPDX-License-Identifier: MIT
// Logs of the ranks of a run as one: the same as that of a run without ranks.
#include "formats/oplog/join.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/layout.h"
#include "formats/support/bytes.h"
#include "formats/support/error.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr uint32_t kTasks = 9;

/// A run of nine tasks that performs those for which `mine` holds. `recording`: another one has other tables.
void write_run(const std::filesystem::path& path, const std::function<bool(TaskId)>& mine, uint64_t most_ops = 3'000,
               int recording = 0) {
    Header header;
    header.source = "replay";
    header.host = "a";
    header.kernel = "6.1";
    write_fact(header, fact::pace, std::string("causal"));
    write_fact(header, fact::ended, std::string("complete"));
    LogWriter writer(path, header, {.sync = false});
    std::vector<TaskId> tasks;
    std::vector<HandleId> handles;
    for (uint32_t i = 0; i < kTasks; ++i) {
        const ProcessId process = writer.add_process({.pid = static_cast<int32_t>(10 + i)});
        tasks.push_back(writer.add_task({.process = process, .tid = static_cast<int32_t>(20 + i)}));
        const FileId file = writer.add_file({.path = writer.intern("/data/" + std::to_string(i + recording))});
        handles.push_back(writer.add_handle({.file = file}));
    }
    writer.count(Count::edges_given_up, 3);  // of the plan: every rank says so
    std::mt19937_64 random(5);
    for (uint32_t i = 0; i < kTasks; ++i) {
        int64_t now = 1'000;
        for (uint64_t op = 0; op < most_ops >> (i % 4 * 3); ++op) {  // long ones, and short ones that share sections
            const int64_t took = static_cast<int64_t>(random() % 100'000);
            if (mine(tasks[i])) {
                writer.append(tasks[i], {.kind = OpKind::pread,
                                         .begin = now,
                                         .duration = took,
                                         .result = 4096,
                                         .handle = handles[i],
                                         .fd = 3,
                                         .offset = static_cast<int64_t>(op * 4096),
                                         .size = 4096});
                if (op % 100 == 7) {
                    writer.count(Count::left_out_no_place);
                }
            }
            now += took + 10;
        }
    }
    writer.finish();
}

std::string dumped(const std::filesystem::path& path) {
    std::ostringstream out;
    const LogReader log(path);
    for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t number) {
            out << task << ' ' << number << ' ' << static_cast<int>(op.kind) << ' ' << op.begin << ' ' << op.duration
                << ' ' << op.result << ' ' << op.handle << ' ' << op.offset << '\n';
        });
    }
    for (const Counter& counter : log.tables().counters) {
        out << counter.name << ' ' << counter.value << '\n';
    }
    for (const FileRow& file : log.tables().files) {
        out << log.tables().strings[file.path] << '\n';
    }
    return out.str();
}

Bytes bytes_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Hands out a few bytes at a time.
ByteSource pieces(const Bytes& bytes, size_t most) {
    return [&bytes, most, at = size_t{0}](std::span<uint8_t> into) mutable {
        const size_t n = std::min({most, into.size(), bytes.size() - at});
        if (n != 0) {
            std::memcpy(into.data(), bytes.data() + at, n);
        }
        at += n;
        return n;
    };
}

std::function<bool(TaskId)> every(uint32_t of, uint32_t rest) {
    return [=](TaskId task) { return task % of == rest; };
}

}  // namespace

TEST_CASE("joined logs of ranks are the log of the whole run") {
    const TempDir dir;
    const uint64_t ops = 200'000;  // sections of their own, and shared ones
    write_run(
        dir / "whole.oplog", [](TaskId) { return true; }, ops);
    LogJoin join(dir / "joined.oplog", {.sync = false});
    for (const uint32_t part : {0U, 2U, 1U}) {
        const auto path = dir / ("part" + std::to_string(part) + ".oplog");
        write_run(path, every(3, part), ops);
        join.add(path.string(), file_source(path));
    }
    join.finish();
    CHECK(dumped(dir / "joined.oplog") == dumped(dir / "whole.oplog"));
    const LogReader joined(dir / "joined.oplog"), whole(dir / "whole.oplog");
    CHECK(joined.header() == whole.header());
    CHECK(joined.op_count() == whole.op_count());
    CHECK(joined.op_count() == join.ops());
    CHECK(joined.blocks().size() > 9);
    CHECK_FALSE(std::filesystem::exists(dir / "joined.oplog.partial"));
    // One part alone is a log of its own.
    LogJoin alone(dir / "alone.oplog", {.sync = false});
    alone.add("whole", file_source(dir / "whole.oplog"));
    alone.finish();
    CHECK(dumped(dir / "alone.oplog") == dumped(dir / "whole.oplog"));
}

TEST_CASE("joining takes parts in pieces of any size") {
    const TempDir dir;
    write_run(dir / "a.oplog", every(2, 0));
    write_run(dir / "b.oplog", every(2, 1));
    write_run(dir / "whole.oplog", [](TaskId) { return true; });
    const Bytes a = bytes_of(dir / "a.oplog"), b = bytes_of(dir / "b.oplog");
    for (const size_t most : {1, 7, 4096}) {
        LogJoin join(dir / "joined.oplog", {.sync = false});
        join.add("a", pieces(a, most));
        join.add("b", pieces(b, most));
        join.finish();
        CHECK(dumped(dir / "joined.oplog") == dumped(dir / "whole.oplog"));
    }
}

TEST_CASE("joining merges what headers say") {
    Header a, b;
    a.host = "a";
    b.host = "b";
    a.kernel = b.kernel = "6.1";
    write_fact(a, fact::ended, std::string("complete"));
    write_fact(b, fact::ended, std::string("interrupted: why"));
    write_fact(a, fact::trust, std::string("good"));
    write_fact(a, fact::trust_reason, std::string("no steal"));
    write_fact(b, fact::trust, std::string("poor"));
    write_fact(b, fact::trust_reason, std::string("late"));
    write_fact(a, fact::device_read, 5);
    write_fact(b, fact::device_read, 6);
    write_fact(a, fact::pace, std::string("afap"));
    write_fact(b, fact::pace, std::string("afap"));
    write_fact(a, fact::elapsed_low, 1);
    write_fact(b, fact::elapsed_low, 2);
    merge_headers(a, b);
    CHECK(a.host == "a, b");
    CHECK(a.kernel == "6.1");
    CHECK(read_fact(a, fact::ended) == "interrupted: why");
    CHECK(read_fact(a, fact::trust) == "poor");
    CHECK(read_fact(a, fact::trust_reason) == "late");
    CHECK(read_fact(a, fact::device_read) == 11);
    CHECK(read_fact(a, fact::pace) == "afap");
    CHECK_FALSE(read_fact(a, fact::elapsed_low).has_value());
}

TEST_CASE("joining refuses parts that do not belong together, by name") {
    const TempDir dir;
    write_run(dir / "a.oplog", every(2, 0));
    const auto refused = [&](const std::filesystem::path& part, const std::string& why) {
        LogJoin join(dir / "joined.oplog", {.sync = false});
        join.add("rank 0", file_source(dir / "a.oplog"));
        try {
            join.add("rank 1", file_source(part));
            FAIL("joined");
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::bad_input);
            CHECK(std::string(error.what()).find("rank 1") == 0);
            CAPTURE(error.what());
            CHECK(std::string(error.what()).find(why) != std::string::npos);
        }
        join.discard();
        CHECK_FALSE(std::filesystem::exists(dir / "joined.oplog.partial"));
    };
    write_run(dir / "twice.oplog", every(4, 2));
    refused(dir / "twice.oplog", "it has ops of task 2, and so has rank 0");
    write_run(dir / "other.oplog", every(2, 1), 3'000, 1);
    refused(dir / "other.oplog", "it is of another recording than rank 0");
    std::ofstream(dir / "text") << "something else that is long enough";
    refused(dir / "text", "this is not an op log");
}

TEST_CASE("joining a part that was cut or damaged is an error; recovering takes what is whole") {
    const TempDir dir;
    write_run(dir / "a.oplog", every(2, 1), 70'000);
    const Bytes whole = bytes_of(dir / "a.oplog");
    for (size_t size = 0; size < whole.size(); size += 1 + size / 9) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
        LogJoin join(dir / "joined.oplog", {.sync = false});
        CHECK_THROWS_AS(join.add("cut", pieces(cut, 1'000)), Error);
        join.discard();
    }
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(whole.size() / 2));
    LogJoin join(dir / "joined.oplog", {.sync = false, .recover = true});
    join.add("cut", pieces(cut, 1'000));
    join.finish();
    const LogReader log(dir / "joined.oplog");
    CHECK(log.op_count() > 0);
    CHECK(log.op_count() < LogReader(dir / "a.oplog").op_count());
    CHECK(log.tables().losses() == 1);
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        Bytes damaged = whole;
        damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1 + random() % 255);
        LogJoin one(dir / "damaged.oplog", {.sync = false});
        try {
            one.add("damaged", pieces(damaged, 1 << 20));
            one.finish();
            dumped(dir / "damaged.oplog");  // a byte that no section holds
        } catch (const Error&) {
            one.discard();
        }
    }
}

TEST_CASE("joining decodes no op: blocks that no decoder takes are copied byte by byte") {
    const TempDir dir;
    write_run(dir / "a.oplog", every(2, 1), 200'000);
    write_run(dir / "b.oplog", every(2, 0));
    // Garbage in the place of the packed columns, under a checksum that fits.
    Bytes bytes = bytes_of(dir / "a.oplog");
    std::mt19937 random(3);
    std::vector<Bytes> garbage;
    for (size_t at = sizeof(FileHead); at + sizeof(SectionHead) < bytes.size();) {
        SectionHead head;
        std::memcpy(&head, bytes.data() + at, sizeof head);
        const std::span<uint8_t> payload(bytes.data() + at + sizeof head, head.size);
        if (static_cast<SectionType>(head.type) == SectionType::index) {
            break;
        }
        if (static_cast<SectionType>(head.type) == SectionType::ops) {
            ByteReader in(payload);
            for (uint64_t blocks = in.varint(); blocks > 0; --blocks) {
                for (int field = 0; field < 5; ++field) {
                    in.varint();
                }
            }
            std::generate(payload.end() - static_cast<ptrdiff_t>(in.left()), payload.end(), [&] { return random(); });
            head.checksum = section_checksum(head.type, payload);
            std::memcpy(bytes.data() + at, &head, sizeof head);
            garbage.emplace_back(payload.begin(), payload.end());
        }
        at += sizeof head + head.size;
    }
    REQUIRE(garbage.size() > 1);
    LogJoin join(dir / "joined.oplog", {.sync = false});
    join.add("a", pieces(bytes, 1 << 20));
    join.add("b", file_source(dir / "b.oplog"));
    join.finish();
    CHECK(join.ops() == LogReader(dir / "a.oplog").op_count() + LogReader(dir / "b.oplog").op_count());
    const Bytes joined = bytes_of(dir / "joined.oplog");
    for (const Bytes& section : garbage) {
        CHECK(std::search(joined.begin(), joined.end(), section.begin(), section.end()) != joined.end());
    }
    const LogReader log(dir / "joined.oplog");
    OpBlock block;
    CHECK_THROWS_AS(log.decode(log.blocks().front(), block), Error);
}
