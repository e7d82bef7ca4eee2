// SPDX-License-Identifier: MIT
// One log from one log per rank: rows, clocks, messages between ranks, and what is refused.
#include "transform/merge.h"

#include <doctest/doctest.h>

#include <memory>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/held_memory.h"
#include "formats/oplog/ranks.h"
#include "formats/oplog/sockets.h"
#include "formats/support/error.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// A rank's log: one process, one task, one socket to the other rank.
struct Rank {
    explicit Rank(int64_t number, std::string boot = "boot", int64_t monotonic = 0, int64_t unix_ns = 1'000'000'000) {
        header.host = boot;
        header.tool = "reprise 1";
        header.source = "capture";
        header.clock = "monotonic";
        header.origin_unix_ns = unix_ns;
        write_fact(header, fact::rank, number);
        write_fact(header, fact::ranks_world, 2);
        write_fact(header, fact::ranks_source, "Open MPI");
        write_fact(header, fact::ranks_job, "job 7");
        write_fact(header, fact::boot, boot);
        write_fact(header, fact::origin_monotonic, monotonic);
    }
    LogWriter& start(const std::filesystem::path& path) {
        writer = std::make_unique<LogWriter>(path, header, WriterOptions{.sync = false});
        ProcessRow process;
        process.pid = 100;
        process.command = writer->intern("train");
        writer->add_process(process);
        task = writer->add_task({.process = 1, .tid = 100});
        socket = writer->add_handle({.kind = HandleKind::socket});
        return *writer;
    }
    void connect(uint16_t here, uint16_t there, bool loopback = true) {
        SocketEnd end;
        end.inode = here;
        end.from_start = from_start;
        end.net = 1;
        const uint8_t first = loopback ? 127 : 10;
        end.local = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, first, 0, 0, 1}, here};
        end.remote = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, first, 0, 0, 1}, there};
        writer->keep(encode_sockets({{socket, end}}));
    }
    uint64_t op(OpKind kind, int64_t begin, int64_t duration, int64_t result = 0, int64_t offset = 0, int64_t arg = 0) {
        Op made;
        made.kind = kind;
        made.begin = begin;
        made.duration = duration;
        made.result = result;
        made.size = result;
        made.offset = offset;
        made.arg = arg;
        if (kind == OpKind::send || kind == OpKind::receive) {
            made.handle = socket;
            made.fd = 5;
        }
        return writer->append(task, made);
    }

    Header header;
    std::unique_ptr<LogWriter> writer;
    TaskId task = 0;
    HandleId socket = 0;
    bool from_start = true;
};

std::vector<Op> ops_of(const LogReader& log, TaskId task, std::vector<std::vector<Edge>>& edges) {
    std::vector<Op> out;
    log.for_each(task, [&](const Op& op, uint64_t) {
        edges.emplace_back(op.edges.begin(), op.edges.end());
        out.push_back(op);
        out.back().edges = {};
        out.back().list = {};
    });
    return out;
}

struct Pair {
    TempDir dir;
    std::filesystem::path first = dir / "job.rank0.oplog", second = dir / "job.rank1.oplog", out = dir / "job.oplog";

    MergeResult merge(const MergeOptions& options = {}) { return merge_logs({second, first}, out, options); }
};

/// Rank 0 computes and sends 100 and 50 bytes; rank 1 waits for the first and reads both at once, then answers.
void write_messages(Rank& a, Rank& b, int64_t later_b) {
    a.op(OpKind::compute, 0, 10 * kUs);
    a.op(OpKind::send, 10 * kUs, 2 * kUs, 100, 0);
    a.op(OpKind::send, 13 * kUs, 2 * kUs, 50, 100);
    a.op(OpKind::receive, 16 * kUs, 20 * kUs, 8, 0);
    a.writer->finish();
    b.op(OpKind::wait, 2 * kUs - later_b, 16 * kUs, 1, 0, kWaitEpoll);
    b.op(OpKind::compute, 18 * kUs - later_b, 2 * kUs);
    b.op(OpKind::receive, 20 * kUs - later_b, 1 * kUs, 150, 0);
    b.op(OpKind::send, 30 * kUs - later_b, 2 * kUs, 8, 0);
    b.writer->finish();
}

}  // namespace

TEST_CASE("merge: messages between ranks become edges, of the wait before the read too") {
    Pair pair;
    Rank a(0, "boot", 5 * kMs), b(1, "boot", 5 * kMs + kUs);  // rank 1 began 1 us later
    a.start(pair.first);
    b.start(pair.second);
    a.connect(1000, 2000);
    b.connect(2000, 1000);
    write_messages(a, b, kUs);
    const MergeResult result = pair.merge();
    CHECK(result.ops == 8);
    CHECK(result.connections == 1);
    CHECK(result.edges == 3);
    CHECK(result.waits == 1);
    CHECK(result.dropped == 0);
    REQUIRE(result.logs.size() == 2);
    CHECK(result.logs[0].rank == 0);
    CHECK(result.logs[1].offset_ns == kUs);
    CHECK(result.logs[1].error_ns == 0);

    const LogReader log(pair.out);
    std::vector<std::vector<Edge>> edges;
    const std::vector<Op> first = ops_of(log, 1, edges);
    REQUIRE(first.size() == 4);
    CHECK(edges[3] == std::vector<Edge>{{2, EdgeKind::message, 100, 3}});
    edges.clear();
    const std::vector<Op> second = ops_of(log, 2, edges);
    REQUIRE(second.size() == 4);
    CHECK(second[0].begin == 2 * kUs);
    CHECK(edges[0] == std::vector<Edge>{{1, EdgeKind::message, 100, 2}});
    CHECK(edges[2] == std::vector<Edge>{{1, EdgeKind::message, 100, 2}});
    CHECK(second[2].handle == 2);
    const RecordedRanks ranks = recorded_ranks(log.header(), log.tables());
    CHECK(ranks.count == 2);
    CHECK(ranks.of_process == std::vector<uint32_t>{kNoRank, 0, 1});
    CHECK_FALSE(read_fact(log.header(), fact::rank));
    CHECK(recorded_sockets(log).size() == 2);
}

TEST_CASE("merge: a send that ends after the read of its bytes is not waited for, but the op before it is") {
    Pair pair;
    Rank a(0), b(1);
    a.start(pair.first);
    b.start(pair.second);
    a.connect(1000, 2000);
    b.connect(2000, 1000);
    a.op(OpKind::compute, 0, 10 * kUs);
    a.op(OpKind::send, 10 * kUs, 20 * kUs, 100, 0);
    a.writer->finish();
    b.op(OpKind::receive, 5 * kUs, 10 * kUs, 100, 0);
    b.writer->finish();
    CHECK(pair.merge().edges == 1);
    std::vector<std::vector<Edge>> edges;
    ops_of(LogReader(pair.out), 2, edges);
    CHECK(edges[0] == std::vector<Edge>{{1, EdgeKind::message, 100, 0}});
}

TEST_CASE("merge: loopback addresses of two machines are not one connection, others are") {
    for (const bool loopback : {true, false}) {
        Pair pair;
        Rank a(0, "boot a"), b(1, "boot b");
        a.start(pair.first);
        b.start(pair.second);
        a.connect(1000, 2000, loopback);
        b.connect(2000, 1000, loopback);
        write_messages(a, b, 0);
        const MergeResult result = pair.merge();
        CHECK(result.connections == (loopback ? 0 : 1));
        CHECK(result.edges == (loopback ? 0 : 3));
        CHECK(LogReader(pair.out).header().host == "boot a, boot b");
    }
}

TEST_CASE("merge: a wall clock that messages contradict is corrected by the least") {
    // Of rank 1 the clock is behind: it seems to have read at 21 us - 15 us what was sent from 13 us on.
    for (const int64_t behind : {15 * kUs, -40 * kUs}) {
        Pair pair;
        Rank a(0, "a", 0, 1'000'000'000), b(1, "b", 77, 1'000'000'000 - behind);
        write_fact(a.header, fact::clock_error, 3 * kMs);
        write_fact(b.header, fact::clock_error, 4 * kMs);
        a.start(pair.first);
        b.start(pair.second);
        a.connect(1000, 2000, false);
        b.connect(2000, 1000, false);
        write_messages(a, b, 0);
        const MergeResult result = pair.merge();
        CHECK(result.dropped == 0);
        // The read ends at 21, the send of its last byte begins at 13; the answer is sent at 30 and read by 36.
        const int64_t expected = behind > 0 ? behind - 8 * kUs + 1 : behind + 6 * kUs - 1;
        CHECK(result.logs[1].corrected_ns == expected);
        CHECK(result.logs[1].error_ns == 14 * kUs - 2);  // the window that messages leave
        CHECK(result.logs[1].clock == "wall clock, corrected by messages");
    }
}

TEST_CASE("merge: without messages the clock is as good as its keeper says") {
    Pair pair;
    Rank a(0, "a"), b(1, "b");
    write_fact(a.header, fact::clock_error, 3 * kMs);
    write_fact(b.header, fact::clock_error, 4 * kMs);
    a.start(pair.first);
    b.start(pair.second);
    a.op(OpKind::compute, 0, kUs);
    b.op(OpKind::compute, 0, kUs);
    a.writer->finish();
    b.writer->finish();
    CHECK(pair.merge().logs[1].error_ns == 7 * kMs);
}

TEST_CASE("merge: files of one name and inode are one, and made by the job where one rank made them") {
    Pair pair;
    Rank a(0), b(1);
    const auto add = [](Rank& rank, const char* path, uint64_t inode, Origin origin, uint64_t size) {
        FileRow row;
        row.path = rank.writer->intern(path);
        row.inode = inode;
        row.device = 9;
        row.origin = origin;
        row.size = size;
        row.size_exact = true;
        return rank.writer->add_file(row);
    };
    a.start(pair.first);
    b.start(pair.second);
    add(a, "/data/x", 7, Origin::existed, 10);
    add(a, "/out/ck", 8, Origin::created, 50);
    add(a, "/tmp/own", 9, Origin::created, 1);
    add(a, "/later", 0, Origin::absent, 0);
    add(b, "/out/ck", 8, Origin::existed, 50);
    add(b, "/tmp/own", 10, Origin::created, 2);
    const FileId data = add(b, "/data/x", 7, Origin::existed, 12);
    add(b, "/later", 11, Origin::created, 3);
    Op op;
    op.kind = OpKind::open;
    op.file = data;
    op.result = 3;
    op.handle = b.writer->add_handle({.file = data});
    b.writer->append(b.task, op);
    a.op(OpKind::compute, 0, kUs);
    a.writer->keep(encode_cached({{1, 4}}));
    b.writer->keep(encode_cached({{3, 2}, {1, 5}}));
    a.writer->keep(encode_held_memory({{1, {{kMs, 4096, 0}}}}));
    b.writer->keep(encode_held_memory({{1, {{2 * kMs, 8192, 0}}}}));
    a.writer->finish();
    b.writer->finish();
    const MergeResult result = pair.merge();
    CHECK(result.files == 5);
    CHECK(result.files_shared == 3);
    const LogReader log(pair.out);
    const Tables& tables = log.tables();
    CHECK(tables.files[1].size == 10);
    CHECK(tables.files[2].origin == Origin::created);
    CHECK(tables.files[4].origin == Origin::created);
    CHECK(tables.files[4].inode == 11);
    std::vector<std::vector<Edge>> edges;
    const std::vector<Op> ops = ops_of(log, 2, edges);
    CHECK(ops.at(0).file == 1);
    CHECK(tables.handles[ops.at(0).handle].file == 1);
    CHECK(cached_pages(log) == CachedPages{{1, 2}, {2, 5}});
    CHECK(held_memory(log) == HeldMemories{{1, {{kMs, 4096, 0}}}, {2, {{2 * kMs, 8192, 0}}}});
}

TEST_CASE("merge: what is no set of ranks of one job is refused, and leaves nothing behind") {
    const auto refused = [](const std::function<void(Rank&)>& change, const std::string& why, bool allow = false) {
        Pair pair;
        Rank a(0), b(1);
        change(b);
        a.start(pair.first);
        b.start(pair.second);
        a.op(OpKind::compute, 0, kUs);
        b.op(OpKind::compute, 0, kUs);
        a.writer->finish();
        b.writer->finish();
        CHECK_THROWS_WITH_AS(pair.merge({.allow_missing = allow, .writer = {}, .progress = {}}),
                             doctest::Contains(why.c_str()), Error);
        CHECK_FALSE(std::filesystem::exists(pair.out));
        CHECK_FALSE(std::filesystem::exists(pair.out.native() + ".partial"));
    };
    refused([](Rank& b) { b.header.tool = "reprise 2"; }, "same version of reprise");
    refused([](Rank& b) { write_fact(b.header, fact::ranks_job, "job 8"); }, "of one run");
    refused([](Rank& b) { write_fact(b.header, fact::ranks_world, 3); }, "number of ranks");
    refused([](Rank& b) { write_fact(b.header, fact::rank, 0); }, "once");
    refused([](Rank& b) { write_fact(b.header, fact::rank, 2); }, "rank 1 of 2");
    refused([](Rank& b) { b.header.extra.erase("ranks.own"); }, "does not say which rank");
    refused([](Rank& b) { write_fact(b.header, fact::origin_monotonic, 60'000 * kMs); }, "do not overlap", true);
}

TEST_CASE("merge: a rank that is missing is counted") {
    Pair pair;
    Rank a(0), b(2);
    for (Rank* rank : {&a, &b}) {
        write_fact(rank->header, fact::ranks_world, 4);
    }
    a.start(pair.first);
    b.start(pair.second);
    a.op(OpKind::compute, 0, kUs);
    b.op(OpKind::compute, 0, kUs);
    a.writer->finish();
    b.writer->finish();
    pair.merge({.allow_missing = true, .writer = {}, .progress = {}});
    const LogReader log(pair.out);
    REQUIRE(log.tables().counters.size() == 1);
    CHECK(log.tables().counters[0].name == info(Count::merge_ranks_missing).name);
    CHECK(log.tables().counters[0].value == 2);
    CHECK(recorded_ranks(log.header(), log.tables()).of_process == std::vector<uint32_t>{kNoRank, 0, 2});
}

TEST_CASE("merge: damaged inputs are refused") {
    Pair pair;
    Rank a(0), b(1);
    a.start(pair.first);
    b.start(pair.second);
    a.connect(1000, 2000);
    b.connect(2000, 1000);
    write_messages(a, b, 0);
    const std::string whole = read_file(pair.second);
    for (size_t at = 0; at < whole.size(); at += 7) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
        write_file(pair.second, damaged);
        try {
            pair.merge();
        } catch (const Error&) {
        }
        write_file(pair.second, whole.substr(0, at));
        CHECK_THROWS_AS(pair.merge(), Error);
    }
}
