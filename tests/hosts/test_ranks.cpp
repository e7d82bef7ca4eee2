// SPDX-License-Identifier: MIT
// A replay by two ranks that are processes, without MPI: edges across them, their results, and the end of one.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "hosts/hosts.h"
#include "replay/run/runner.h"
#include "tests/hosts/rank_net.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr int kTurns = 100;

/// Two processes that hand a turn to and fro, a pread each: op k of the second waits for op k of the first, and op k+1
/// of the first for op k of the second.
LogReader to_and_fro(const std::filesystem::path& path, int64_t think_ns) {
    JobBuilder job(path);
    const TaskId a = job.lone_task(), b = job.lone_task();
    const HandleId of_a = job.open(a, job.file("/data/in")), of_b = job.open(b, job.file("/data/in"));
    const auto read = [&](TaskId task, HandleId handle, std::vector<Edge> edges) {
        job.skip(think_ns);
        Op op{.kind = OpKind::pread, .result = 10, .handle = handle, .fd = job.fd(handle), .offset = 0, .size = 10};
        op.edges = edges;
        return job.add(task, op);
    };
    uint64_t last_a = 0, last_b = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
        last_a =
            read(a, of_a, turn == 0 ? std::vector<Edge>{} : std::vector<Edge>{{b, EdgeKind::message, 100, last_b}});
        last_b = read(b, of_b, {{a, EdgeKind::message, 100, last_a}});
    }
    return job.finish();
}

/// The second process computes before each of its ops, and the first waits for that op.
LogReader one_waits(const std::filesystem::path& path, int64_t compute_ns) {
    JobBuilder job(path);
    const TaskId waits = job.lone_task(), computes = job.lone_task();
    const HandleId waiter = job.open(waits, job.file("/data/in")), other = job.open(computes, job.file("/data/in"));
    int64_t now = 1'000'000;
    for (int turn = 0; turn < kTurns / 2; ++turn, now += compute_ns + 20'000) {
        job.add(computes, {.kind = OpKind::compute, .begin = now, .duration = compute_ns});
        const uint64_t source = job.add(computes, {.kind = OpKind::pread,
                                                   .begin = now + compute_ns,
                                                   .duration = 5'000,
                                                   .result = 10,
                                                   .handle = other,
                                                   .fd = job.fd(other),
                                                   .size = 10});
        const Edge edge{computes, EdgeKind::message, 100, source};
        job.add(waits, {.kind = OpKind::wait,
                        .begin = now,
                        .duration = compute_ns + 5'000,
                        .arg = kWaitPoll,
                        .edges = {&edge, 1}});
        job.add(waits, {.kind = OpKind::pread,
                        .begin = now + compute_ns + 6'000,
                        .duration = 5'000,
                        .result = 10,
                        .handle = waiter,
                        .fd = job.fd(waiter),
                        .size = 10});
    }
    return job.finish();
}

struct Outcome {
    ReplayResult result;
    PeersReport report;
};

Outcome perform(const LogReader& log, int fd, uint32_t rank, Pace pace, const std::function<void(Hosts&)>& before) {
    ConversationSettings settings;
    settings.silent_after_ns = 1'500'000'000;
    settings.others_have_ns = 500'000'000;
    Hosts hosts([=] { return std::make_unique<SocketTransport>(fd, rank); }, settings);
    hosts.meet("reprise test", "node" + std::to_string(rank));
    hosts.set_dealing({2, {kNoRank, 0, 1}, ""});
    ReplayOptions options;
    options.engine = EngineKind::null;
    options.pace = pace;
    options.filter = OpFilter::all();
    options.peers = &hosts;
    if (before) {
        before(hosts);
    }
    Outcome out;
    out.result = replay(log, options);
    PeerRow row = out.result.peer.value_or(PeerRow{});
    row.ops = out.result.ops;
    row.ended = out.result.ended;
    row.waited_ns = out.result.rank_wait_ns;
    std::vector<std::string> results;
    out.report = hosts.report(row, "a result", results);
    CHECK((hosts.rank() != 0 || results.size() == out.report.rows.size()));
    hosts.ranks().end(4);
    return out;
}

/// Rank 1 is a child, which is killed after `kill_after_ms` where that is not 0. The outcome of rank 0, and the child's
/// status.
std::pair<Outcome, int> by_two(const LogReader& log, Pace pace, int kill_after_ms = 0) {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(fds[0]);
        try {
            const Outcome mine = perform(log, fds[1], 1, pace, {});
            ::_exit(mine.result.ended == "complete" && mine.result.ops == kTurns + 1 ? 0 : 1);
        } catch (const std::exception&) {
            ::_exit(2);
        }
    }
    ::close(fds[1]);
    std::thread killer;
    if (kill_after_ms != 0) {
        killer = std::thread([=] {
            ::usleep(static_cast<useconds_t>(kill_after_ms) * 1000);
            ::kill(child, SIGKILL);
        });
    }
    Outcome mine = perform(log, fds[0], 0, pace, {});
    if (killer.joinable()) {
        killer.join();
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return {std::move(mine), status};
}

}  // namespace

TEST_CASE("ranks: tasks wait for those of another rank, whatever the pace") {
    TempDir dir;
    const LogReader log = to_and_fro(dir / "job.oplog", 0);
    for (const Pace pace : {Pace::afap, Pace::causal}) {
        const auto [mine, status] = by_two(log, pace);
        CHECK(mine.result.ended == "complete");
        CHECK(mine.result.ops == kTurns + 1);
        CHECK(mine.result.edge_waits > 0);
        CHECK(mine.result.mismatches == 0);
        CHECK(status == 0);
        REQUIRE(mine.report.rows.size() == 2);
        CHECK(mine.report.rows[1].host == "node1");
        CHECK(mine.report.rows[1].recorded == "1");
        CHECK(mine.report.rows[1].ops == kTurns + 1);
        CHECK(mine.report.rows[1].ended == "complete");
        // Both are processes of this machine: one clock.
        CHECK(std::abs(mine.report.rows[1].clock.offset_ns) <= mine.report.rows[1].clock.uncertainty_ns);
    }
}

TEST_CASE("ranks: the death of one ends the run of the other, whose result says why") {
    TempDir dir;
    const LogReader log = to_and_fro(dir / "job.oplog", 100'000'000);
    const auto [mine, status] = by_two(log, Pace::causal, 1'500);
    CHECK(WIFSIGNALED(status));
    CHECK(mine.result.ended.starts_with("interrupted: rank 1 on host node1: cut off"));
    CHECK(mine.result.ops > 0);
    CHECK(mine.result.ops < kTurns);
    REQUIRE(mine.report.rows.size() == 2);
    CHECK(mine.report.rows[1].ended == "lost");
}

TEST_CASE("ranks: the result says for which rank this one waited, and how long") {
    TempDir dir;
    constexpr int64_t kCompute = 4'000'000;
    const LogReader log = one_waits(dir / "job.oplog", kCompute);
    const auto [mine, status] = by_two(log, Pace::causal);
    CHECK(status == 0);
    CHECK(mine.result.ended == "complete");
    REQUIRE(mine.result.rank_waits.size() == 2);
    CHECK(mine.result.rank_waits[0] == 0);
    CHECK(mine.result.rank_waits[1] == mine.result.rank_wait_ns);
    CHECK(mine.result.rank_waits[1] > kTurns / 2 * kCompute * 8 / 10);
    CHECK(mine.result.rank_waits[1] <= mine.result.elapsed_ns);
    REQUIRE(mine.report.rows.size() == 2);
    CHECK(mine.report.rows[0].waited_ns == mine.result.rank_wait_ns);
    CHECK(mine.report.rows[1].waited_ns < kTurns / 2 * kCompute / 10);
}
