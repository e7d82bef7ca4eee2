// SPDX-License-Identifier: MIT
// Ranks in conversation: what they share, whose clock is where, who is cut off, and why a run ends.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/clock.h"
#include "formats/support/error.h"
#include "hosts/hosts.h"
#include "tests/hosts/rank_net.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Each rank on a thread of its own; what it throws, as text.
std::vector<std::string> run_ranks(Net& net, const std::function<void(Conversation&)>& body,
                                   const std::function<ConversationSettings(uint32_t)>& settings = {}) {
    const auto size = static_cast<uint32_t>(net.inbox.size());
    std::vector<std::string> threw(size);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            Conversation ranks([&net, rank] { return std::make_unique<NetTransport>(net, rank); },
                               settings ? settings(rank) : ConversationSettings{});
            try {
                body(ranks);
            } catch (const Error& error) {
                threw[rank] = error.what();
                ranks.stop(error.what(), static_cast<int>(error.code()));
            }
            ranks.end(4);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return threw;
}

ConversationSettings quick() {
    ConversationSettings settings;
    settings.alive_every_ns = 20'000'000;
    settings.silent_after_ns = 600'000'000;
    settings.others_have_ns = 300'000'000;
    settings.moment_ns = 50'000'000;
    return settings;
}

}  // namespace

TEST_CASE("ranks share, collect and announce, in any order of arrival") {
    Net net(5);
    std::vector<std::vector<std::string>> shared(5);
    std::vector<std::string> told(5);
    const auto threw = run_ranks(net, [&](Conversation& ranks) {
        for (int turn = 0; turn < 20; ++turn) {
            shared[ranks.rank()] = ranks.share("of " + std::to_string(ranks.rank()) + std::string(turn, 'x'));
            told[ranks.rank()] = ranks.announce(ranks.rank() == 0 ? "word" : "not mine to say");
        }
    });
    for (uint32_t rank = 0; rank < 5; ++rank) {
        CHECK(threw[rank].empty());
        REQUIRE(shared[rank].size() == 5);
        CHECK(shared[rank][3] == "of 3" + std::string(19, 'x'));
        CHECK(told[rank] == "word");
    }
    CHECK(net.finished == 5);
    CHECK(net.aborted == 0);
}

TEST_CASE("a clock that is far off is known to within its uncertainty") {
    Net net(3);
    constexpr int64_t kFar = 3'600'000'000'000;  // an hour
    std::vector<ClockOffset> offsets(3);
    std::vector<std::optional<int64_t>> starts(3);
    run_ranks(
        net,
        [&](Conversation& ranks) {
            offsets[ranks.rank()] = ranks.measure_clock();
            ranks.ready();
            while (!starts[ranks.rank()]) {
                starts[ranks.rank()] = ranks.start_ns();
            }
            ranks.gate();
        },
        [](uint32_t rank) {
            ConversationSettings settings;
            settings.clock = [rank] { return monotonic_ns() - (rank == 2 ? kFar : 0) + (rank == 1 ? 500 : 0); };
            return settings;
        });
    CHECK(std::abs(offsets[2].offset_ns - kFar) <= offsets[2].uncertainty_ns);
    CHECK(std::abs(offsets[1].offset_ns + 500) <= offsets[1].uncertainty_ns);
    CHECK(offsets[2].uncertainty_ns > 0);
    // One instant, by each one's clock.
    CHECK(std::abs(*starts[2] + kFar - *starts[0]) <= offsets[2].uncertainty_ns);
}

TEST_CASE("what ends one rank ends all, and is told by its name") {
    Net net(3);
    const auto threw = run_ranks(net, [](Conversation& ranks) {
        ranks.set_names({"rank 0 on host a", "rank 1 on host b", "rank 2 on host c"});
        if (ranks.rank() == 1) {
            throw machine_error("cannot open the root /mnt: No such file or directory", "");
        }
        ranks.gate();
    });
    CHECK(threw[0] == "rank 1 on host b: cannot open the root /mnt: No such file or directory");
    CHECK(threw[2] == threw[0]);
    CHECK(net.finished == 3);  // nobody is lost: the end is in order
}

TEST_CASE("a rank that is cut off ends itself and the others") {
    Net net(3);
    std::string said;
    const auto threw = run_ranks(
        net,
        [&](Conversation& ranks) {
            ranks.set_names({"rank 0 on host a", "rank 1 on host b", "rank 2 on host c"});
            ranks.gate();
            if (ranks.rank() == 2) {
                net.cut[2] = true;
            }
            ranks.gate();
        },
        [&](uint32_t rank) {
            ConversationSettings settings = quick();
            if (rank == 0) {
                settings.cut_off = [&](const std::string& why) { said = why; };
            }
            return settings;
        });
    CHECK(said == threw[0]);  // at once, before all else
    CHECK(threw[0].starts_with("rank 2 on host c: cut off: no sign of life for"));
    CHECK(threw[1] == threw[0]);
    CHECK(threw[2].starts_with("rank 0 on host a: cut off"));
    CHECK(net.finished == 0);
    CHECK(net.aborted == 1);  // by rank 0
}

namespace {

/// As MPI, which once a rank is gone may not come back from a call for a while.
class HeldTransport : public NetTransport {
public:
    HeldTransport(Net& net, uint32_t rank, std::atomic<bool>& held) : NetTransport(net, rank), held_(held) {}
    bool receive(uint32_t& from, std::string& into) override {
        while (held_.load()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return NetTransport::receive(from, into);
    }

private:
    std::atomic<bool>& held_;
};

bool soon(const std::function<bool()>& holds) {
    for (const int64_t begin = monotonic_ns(); monotonic_ns() - begin < 20'000'000'000;) {
        if (holds()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

}  // namespace

TEST_CASE("a rank whose thread MPI holds ends by itself") {
    Net net(2);
    std::atomic<bool> held{false};
    const auto made = [&] { return std::make_unique<HeldTransport>(net, 1, held); };
    SUBCASE("once the run was stopped, it does not wait for the word of rank 0") {
        ConversationSettings settings;
        settings.others_have_ns = 3'600'000'000'000;
        Conversation ranks(made, settings);
        ranks.stop("interrupted by signal 15", 4);
        CHECK_FALSE(ranks.all_ended());
        held = true;
        CHECK(soon([&] { return ranks.all_ended(); }));
        held = false;
    }
    SUBCASE("before it was stopped, that is as if it were cut off") {
        Conversation ranks(made, quick());
        ranks.progress(1, true);
        CHECK(ranks.stopped().empty());
        held = true;
        CHECK(soon([&] {
            ranks.progress(1, true);
            return !ranks.stopped().empty();
        }));
        CHECK(ranks.stopped().find("MPI does not come back from a call") == 0);
        CHECK(ranks.stop_code() == 4);
        CHECK(ranks.lost());
        held = false;
    }
}

TEST_CASE("whom the launcher told to end has the others hurry") {
    Net net(2);
    std::array<int64_t, 2> patience{};
    run_ranks(
        net,
        [&](Conversation& ranks) {
            ranks.gate();
            if (ranks.rank() == 0) {
                ranks.hurry();
                ranks.stop("interrupted by signal 15", 4);
            }
            CHECK(soon([&] { return ranks.rank() == 0 || !ranks.stopped().empty(); }));
            patience[ranks.rank()] = ranks.patience_ns();
        },
        [](uint32_t) { return quick(); });
    CHECK(patience[0] == quick().moment_ns);
    CHECK(patience[1] == quick().moment_ns);
}

TEST_CASE("damaged messages end the run, and are no reason to crash") {
    Net net(2);
    NetTransport stranger(net, 1);
    for (const std::string& bytes : {std::string("\xff"), std::string("\x00\x05", 2), std::string("\x06\x80", 2),
                                     std::string("\x05\x04\xff\xff\xff\xff\x0f", 7), std::string()}) {
        stranger.send(0, bytes.data(), bytes.size());
    }
    std::string threw;
    {
        Conversation ranks([&net] { return std::make_unique<NetTransport>(net, 0); }, quick());
        try {
            ranks.gate();
        } catch (const Error& error) {
            threw = error.what();
        }
    }
    CHECK(threw.find("sent what this version does not understand") != std::string::npos);
}

TEST_CASE("other versions of reprise are refused and named") {
    Net net(3);
    std::vector<std::string> threw(3);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
            Hosts hosts([&net, rank] { return std::make_unique<NetTransport>(net, rank); });
            try {
                hosts.meet(rank == 2 ? "reprise 0.0.9" : "reprise 0.1.0", "node" + std::to_string(rank));
            } catch (const Error& error) {
                threw[rank] = error.what();
            }
            hosts.ranks().end(4);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(
        threw[0].starts_with("the ranks run different versions of reprise: rank 0 on host node0 has reprise 0.1.0, "
                             "rank 2 on host node2 has reprise 0.0.9"));
}

TEST_CASE("a log that only rank 0 has is sent to the others; other logs are refused") {
    TempDir dir;
    const std::string text(3'000'000, 'l');
    write_file(dir / "job.oplog", text);
    Net net(3);
    std::vector<std::string> got(3), threw(3);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
            Hosts hosts([&net, rank] { return std::make_unique<NetTransport>(net, rank); });
            hosts.meet("reprise 0.1.0", "node" + std::to_string(rank));
            Hosts::Received received;
            const auto path = hosts.fetch_log(rank == 0 ? dir / "job.oplog" : dir / "missing" / "job.oplog", received);
            got[rank] = read_file(path);
            try {
                hosts.check_log(rank == 1 ? "a" : "b");
            } catch (const Error& error) {
                threw[rank] = error.what();
            }
            hosts.ranks().end(3);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(got[1] == text);
    CHECK(got[2] == text);
    CHECK(threw[2].starts_with("the ranks have different logs: not that of rank 0 have rank 1 on host node1"));
}

TEST_CASE("who shares a root finds out in the root") {
    TempDir shared, own;
    Net net(4);
    std::vector<RootGroup> groups(4);
    run_ranks(net, [&](Conversation& ranks) {
        groups[ranks.rank()] = group_by_root(ranks, ranks.rank() == 2 ? own.path() : shared.path());
    });
    CHECK(groups[0].members == std::vector<uint32_t>{0, 1, 3});
    CHECK(groups[3].place == 2);
    CHECK(groups[2].members == std::vector<uint32_t>{2});
    CHECK(groups[2].leads());
    CHECK(std::filesystem::is_empty(shared.path()));
}
