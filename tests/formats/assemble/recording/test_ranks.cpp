// SPDX-License-Identifier: MIT
// Ranks and connections of a recording, as the log states them.
#include <doctest/doctest.h>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/ranks.h"
#include "formats/oplog/sockets.h"
#include "tests/formats/assemble/recording/raw_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

RawBytes rank_record(uint32_t pid, uint32_t rank, uint32_t world, uint64_t time, std::string_view source = "torchrun") {
    raw_rank record{};
    record.head.pid = pid;
    record.head.time = time;
    record.rank = rank;
    record.world = world;
    RawBytes bytes(RAW_RANK, record);
    bytes.string(0, source).string(1, "job 7");
    return bytes;
}

constexpr uint64_t kPeer = RAW_PEER_CONNECTION | 0x40;

RawBytes socket_record(uint64_t inode, uint16_t local, uint16_t remote, uint64_t time, uint32_t retransmits = 0) {
    raw_socket record{};
    record.head.time = time;
    record.inode = inode;
    record.peer = kPeer;
    record.local[10] = record.local[11] = record.remote[10] = record.remote[11] = 0xff;
    record.local[12] = record.remote[12] = 10;
    record.local[15] = 1;
    record.remote[15] = 2;
    record.local_port = local;
    record.remote_port = remote;
    record.retransmits = retransmits;
    record.rtt_us = 100;
    return {RAW_SOCKET, record};
}

}  // namespace

TEST_CASE("ranks: of a launcher's processes, each by its variables") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.spawn(200, 200, 0);
    job.spawn(300, 300, 0);
    job.as(200, 200);
    job.open("/d/b", 3, 0xf2, 8);
    job.records().push_back(rank_record(200, 0, 2, job.now));
    job.spawn(201, 201, 0);
    job.as(300, 300);
    job.open("/d/c", 3, 0xf3, 9);
    job.records().push_back(rank_record(300, 1, 2, job.now));
    job.records().push_back(rank_record(999, 1, 2, job.now));  // it was gone
    const AssembledLog log = job.assemble();
    const RecordedRanks ranks = recorded_ranks(log.reader.header(), log.reader.tables());
    CHECK(ranks.count == 2);
    CHECK(ranks.of_process == std::vector<uint32_t>{kNoRank, kNoRank, 0, 1, 0});
    CHECK(read_fact(log.reader.header(), fact::ranks_source) == "torchrun");
    CHECK(read_fact(log.reader.header(), fact::ranks_world) == 2);
    CHECK(read_fact(log.reader.header(), fact::ranks_job) == "job 7");
    CHECK_FALSE(read_fact(log.reader.header(), fact::rank));
}

TEST_CASE("ranks: a recording of one rank says which") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    job.records().push_back(rank_record(100, 3, 4, job.now + 1, "Open MPI"));
    job.spawn(200, 200, 0);
    job.open("/d/b", 4, 0xf2, 8);
    const AssembledLog log = job.assemble();
    CHECK(read_fact(log.reader.header(), fact::rank) == 3);
    CHECK(read_fact(log.reader.header(), fact::ranks_world) == 4);
    CHECK_FALSE(read_fact(log.reader.header(), fact::ranks));
    CHECK(recorded_ranks(log.reader.header(), log.reader.tables()).count == 1);
}

TEST_CASE("ranks: a job of one rank states none, nor one whose numbers are damage") {
    for (const auto& [rank, world] : {std::pair<uint32_t, uint32_t>{0, 1}, {UINT32_MAX, 2}, {0, UINT32_MAX}}) {
        RawJob job;
        job.open("/d/a", 3, 0xf1, 7);
        job.records().push_back(rank_record(100, rank, world, job.now + 1));
        const AssembledLog log = job.assemble();
        CHECK_FALSE(read_fact(log.reader.header(), fact::rank));
        CHECK_FALSE(read_fact(log.reader.header(), fact::ranks));
    }
}

TEST_CASE("ranks: marks of the job") {
    RawJob job;
    job.open("/d/a", 3, 0xf1, 7);
    for (uint32_t rank = 0; rank < 2; ++rank) {
        job.as(100, 100);
        job.spawn(200 + rank, 200 + rank, 0);
        job.as(200 + rank, 200 + rank);
        job.call(SYS_prctl, {RAW_MARKER_PRCTL, 0x1000, rank, 0, RAW_MARKER_MAGIC}, -22).string(1, "reprise.rank");
        job.call(SYS_prctl, {RAW_MARKER_PRCTL, 0x1000, 2, 0, RAW_MARKER_MAGIC}, -22).string(1, "reprise.world");
    }
    const AssembledLog log = job.assemble();
    CHECK(recorded_ranks(log.reader.header(), log.reader.tables()).of_process ==
          std::vector<uint32_t>{kNoRank, kNoRank, 0, 1});
    CHECK(read_fact(log.reader.header(), fact::ranks_source) == "marks of the job");
}

TEST_CASE("connections: addresses from the first record, what it did from the last") {
    RawJob job;
    raw_fd socket = RawJob::fd_of(5, 0xa1, 4711, 0, 0140777);
    socket.peer_or_pages = kPeer;
    job.call(SYS_sendto, {5, 0x1000, 10, 0}, 10).fd(0, socket);
    job.records().push_back(socket_record(4711, 29500, 40001, job.now));
    job.call(SYS_sendto, {5, 0x1000, 10, 0}, 10).fd(0, socket);
    job.records().push_back(socket_record(4711, 0, 40001, job.now, 9));  // it is over
    job.records().push_back(socket_record(4712, 1, 2, job.now));         // another's
    const AssembledLog log = job.assemble();
    const Sockets sockets = recorded_sockets(log.reader);
    REQUIRE(sockets.size() == 1);
    const SocketEnd& end = sockets.begin()->second;
    CHECK(to_text(end.local) == "10.0.0.1:29500");
    CHECK(to_text(end.remote) == "10.0.0.2:40001");
    CHECK(end.retransmits == 9);
    CHECK(end.rtt_us == 100);
    CHECK(end.inode == 4711);
}
