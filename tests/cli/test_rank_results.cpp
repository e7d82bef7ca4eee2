// SPDX-License-Identifier: MIT
// Ranks that are threads send what they counted and their logs to rank 0, which makes one result and one log of them.
#include "cli/rank_results.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "replay/run/pack_result.h"
#include "tests/hosts/rank_net.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::cli;
using namespace reprise::test;

namespace {

constexpr uint32_t kRanks = 3;
constexpr int kOps = 500;

/// Of process and task r + 1 the rank r; `mine`: whose ops are in it.
void write_log(const std::filesystem::path& path, const std::function<bool(uint32_t)>& mine) {
    LogWriter writer(path, {}, {.sync = false});
    std::vector<TaskId> tasks;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        const ProcessId process = writer.add_process({.pid = static_cast<int32_t>(10 + rank)});
        tasks.push_back(writer.add_task({.process = process, .tid = static_cast<int32_t>(10 + rank)}));
    }
    const FileId file = writer.add_file({.path = writer.intern("/data/file")});
    const HandleId handle = writer.add_handle({.file = file});
    std::mt19937 random(1);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        for (int op = 0; op < kOps; ++op) {
            const auto took = static_cast<int64_t>(random() % 100'000);
            if (mine(rank)) {
                writer.append(tasks[rank], {.kind = OpKind::pread,
                                            .begin = 1'000'000LL * (op + 1),
                                            .duration = took,
                                            .result = 4'096,
                                            .handle = handle,
                                            .fd = 3,
                                            .size = 4'096});
            }
        }
    }
    writer.finish();
}

bool all_of_them(uint32_t) { return true; }

/// What a rank did: half of its ops had another length here, and it waited for the rank after it.
SeriesRun counted(const LogReader& log, uint32_t rank) {
    SeriesRun run;
    run.result.latency.resize(kOpKindLimit);
    run.result.rank_waits.resize(kRanks);
    run.result.rank_waits[(rank + 1) % kRanks] = 10 * (rank + 1);
    run.result.rank_wait_ns = 10 * (rank + 1);
    run.figures = std::make_unique<RunFigures>(log.tables());
    log.for_each(rank + 1, [&](const Op& op, uint64_t number) {
        Op here = op;
        here.duration += number % 2 == 0 ? 0 : 1'000;
        run.figures->add({.task = rank + 1, .recorded = op, .here = here, .number = number});
        run.result.latency[static_cast<size_t>(op.kind)].add(here.duration);
        ++run.result.ops;
        run.result.bytes_read += 4'096;
        run.result.elapsed_ns = std::max(run.result.elapsed_ns, here.end());
    });
    return run;
}

PeerRow row_of(const SeriesRun& run) {
    PeerRow row;
    row.ops = run.result.ops;
    row.elapsed_ns = run.result.elapsed_ns;
    row.waited_ns = run.result.rank_wait_ns;
    row.ended = run.result.ended;
    return row;
}

/// `silent_s`: after which a rank is cut off.
ConversationSettings quick(int silent_s) {
    ConversationSettings settings;
    settings.alive_every_ns = 50'000'000;
    settings.silent_after_ns = silent_s * 1'000'000'000LL;
    settings.others_have_ns = 500'000'000;
    settings.moment_ns = 100'000'000;
    return settings;
}

/// What each rank threw, as text.
std::vector<std::string> by_ranks(Net& net, const std::function<void(Hosts&)>& body, int silent_s = 60) {
    std::vector<std::string> threw(kRanks);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
            Hosts hosts([&net, rank] { return std::make_unique<NetTransport>(net, rank); }, quick(silent_s));
            try {
                hosts.meet("reprise test", "node" + std::to_string(rank));
                hosts.set_dealing({kRanks, {kNoRank, 0, 1, 2}, ""});
                body(hosts);
            } catch (const Error& error) {
                threw[rank] = error.what();
                hosts.ranks().stop(error.what(), static_cast<int>(error.code()));
            }
            hosts.ranks().end(4);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return threw;
}

std::string packed(uint32_t rank, const SeriesRun& run) {
    RankPlace place;
    place.row = row_of(run);
    place.row.rank = rank;
    Bytes bytes;
    pack(place, bytes);
    pack(run.result, bytes);
    pack(run.figures->sums(), bytes);
    return {bytes.begin(), bytes.end()};
}

std::string dumped(const std::filesystem::path& path) {
    std::string out;
    const LogReader log(path);
    for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t number) {
            out += std::to_string(task) + " " + std::to_string(number) + " " + std::to_string(op.begin) + " " +
                   std::to_string(op.duration) + "\n";
        });
    }
    return out;
}

}  // namespace

TEST_CASE("rank results: rank 0 has the sums of all ranks and their rows, the others their own") {
    const TempDir dir;
    write_log(dir / "job.oplog", all_of_them);
    const LogReader log(dir / "job.oplog");
    std::vector<SeriesRun> runs(kRanks);
    Net net(kRanks);
    const std::vector<std::string> threw = by_ranks(net, [&](Hosts& hosts) {
        SeriesRun& run = runs[hosts.rank()] = counted(log, hosts.rank());
        merge_ranks(hosts, row_of(run), log, {}, run);
    });
    CHECK(threw == std::vector<std::string>(kRanks));
    const SeriesRun& all = runs[0];
    CHECK(all.result.ops == kRanks * kOps);
    CHECK(all.result.bytes_read == uint64_t{4'096} * kRanks * kOps);
    CHECK(all.result.latency[static_cast<size_t>(OpKind::pread)].count() == kRanks * kOps);
    CHECK(all.result.rank_waits == std::vector<int64_t>{30, 10, 20});
    CHECK(all.result.rank_wait_ns == 30);
    const RunSums& sums = all.figures->sums();
    CHECK(sums.here.figures.bytes_read == uint64_t{4'096} * kRanks * kOps);
    CHECK(sums.recorded.latency[static_cast<size_t>(OpKind::pread)].count() == kRanks * kOps);
    REQUIRE(all.ranks.rows.size() == kRanks);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        CHECK(all.ranks.rows[rank].ops == kOps);
        CHECK(all.ranks.rows[rank].waited_ns == 10 * (rank + 1));
        CHECK(all.ranks.rows[rank].held_up_ns == all.result.rank_waits[rank]);
    }
    CHECK(runs[1].result.ops == kOps);
    CHECK(runs[1].ranks.rows.empty());
}

TEST_CASE("rank results: without a rank that is cut off, the result says of how many it is") {
    const TempDir dir;
    write_log(dir / "job.oplog", all_of_them);
    const LogReader log(dir / "job.oplog");
    SeriesRun all;
    Net net(kRanks);
    by_ranks(
        net,
        [&](Hosts& hosts) {
            hosts.gate();
            SeriesRun run = counted(log, hosts.rank());
            if (hosts.rank() == 2) {
                net.cut[2] = true;
                return;
            }
            merge_ranks(hosts, row_of(run), log, {}, run);
            if (hosts.rank() == 0) {
                all = std::move(run);
            }
        },
        2);
    CHECK(all.result.ops == 2 * kOps);
    REQUIRE(!all.result.notes.empty());
    CHECK(all.result.notes.back() == "The figures are of 2 of 3 ranks: the others did not answer.");
    REQUIRE(all.ranks.rows.size() == kRanks);
    CHECK(all.ranks.rows[2].ended == "lost");
}

TEST_CASE("rank results: one that cannot be read ends the run with the rank's name") {
    const TempDir dir;
    write_log(dir / "job.oplog", all_of_them);
    const LogReader log(dir / "job.oplog");
    const std::string good = packed(1, counted(log, 1));
    const std::vector<std::function<void(std::string&)>> damages = {
        [](std::string& bytes) { bytes.resize(bytes.size() / 2); }, [](std::string& bytes) { bytes += "more"; },
        [](std::string& bytes) { ++bytes[0]; },  // another version
        [](std::string& bytes) { bytes = "no result"; }};
    for (const auto& damage : damages) {
        std::string bad = good;
        damage(bad);
        Net net(kRanks);
        const std::vector<std::string> threw = by_ranks(net, [&](Hosts& hosts) {
            SeriesRun run = counted(log, hosts.rank());
            if (hosts.rank() == 1) {
                std::vector<std::string> results;
                hosts.report(row_of(run), bad, results);
                return;
            }
            merge_ranks(hosts, row_of(run), log, {}, run);
        });
        CAPTURE(threw[0]);
        CHECK(threw[0].find("rank 1 on host node1 sent a result that cannot be read: ") != std::string::npos);
    }
}

TEST_CASE("rank results: the ranks' logs become one, and are removed then") {
    const TempDir dir;
    write_log(dir / "whole.oplog", all_of_them);
    std::vector<std::string> lost(kRanks, "?");
    Net net(kRanks);
    by_ranks(net, [&](Hosts& hosts) {
        const uint32_t rank = hosts.rank();
        const auto part = dir / ("part" + std::to_string(rank) + ".oplog");
        write_log(part, [=](uint32_t of) { return of == rank; });
        lost[rank] = join_logs(hosts, part, dir / "joined.oplog");
    });
    CHECK(lost[0].empty());
    CHECK(dumped(dir / "joined.oplog") == dumped(dir / "whole.oplog"));
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
        CHECK_FALSE(std::filesystem::exists(dir / ("part" + std::to_string(rank) + ".oplog")));
    }
}

TEST_CASE("rank results: a part that is damaged, of other ops or missing is named, and all parts stay") {
    enum class What : uint8_t { damaged, cut, twice, missing };
    for (const What what : {What::damaged, What::cut, What::twice, What::missing}) {
        CAPTURE(static_cast<int>(what));
        const TempDir dir;
        std::vector<std::string> lost(kRanks);
        Net net(kRanks);
        const std::vector<std::string> threw = by_ranks(net, [&](Hosts& hosts) {
            const uint32_t rank = hosts.rank();
            const auto part = dir / ("part" + std::to_string(rank) + ".oplog");
            const bool bad = rank == 1;
            write_log(part, [&](uint32_t of) { return of == rank || (bad && what == What::twice && of == 0); });
            const auto size = std::filesystem::file_size(part);
            if (bad && what == What::damaged) {
                std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
                file.seekp(static_cast<std::streamoff>(size / 2));
                file.put('\x55');
            } else if (bad && what == What::cut) {
                std::filesystem::resize_file(part, size - 5);
            } else if (bad && what == What::missing) {
                std::filesystem::remove(part);
            }
            lost[rank] = join_logs(hosts, part, dir / "joined.oplog");
        });
        CHECK(threw == std::vector<std::string>(kRanks));
        CAPTURE(lost[0]);
        CHECK(lost[0].starts_with("rank 1 "));
        CHECK_FALSE(std::filesystem::exists(dir / "joined.oplog"));
        CHECK(std::filesystem::exists(dir / "part0.oplog"));
        CHECK(std::filesystem::exists(dir / "part2.oplog"));
        CHECK(std::filesystem::exists(dir / "part1.oplog") == (what != What::missing));
    }
}
