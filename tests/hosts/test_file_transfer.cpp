// SPDX-License-Identifier: MIT
// Files of ranks to rank 0: whole, in order, and no more of them under way than two windows.
#include "hosts/file_transfer.h"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "formats/support/error.h"
#include "tests/hosts/rank_net.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// Counts what it sends.
class CountingTransport : public NetTransport {
public:
    CountingTransport(Net& net, uint32_t rank, std::atomic<uint64_t>& sent) : NetTransport(net, rank), sent_(sent) {}
    void send(uint32_t to, const void* data, size_t bytes) override {
        sent_ += bytes;
        NetTransport::send(to, data, bytes);
    }

private:
    std::atomic<uint64_t>& sent_;
};

struct Sent {
    std::vector<std::atomic<uint64_t>> bytes;
    explicit Sent(uint32_t ranks) : bytes(ranks) {}
};

/// Each rank on a thread of its own.
void by_ranks(uint32_t size, Sent& sent, const std::function<void(Conversation&)>& body) {
    Net net(size);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            Conversation ranks([&, rank] { return std::make_unique<CountingTransport>(net, rank, sent.bytes[rank]); });
            try {
                body(ranks);
            } catch (const Error& error) {
                ranks.stop(error.what(), 4);
            }
            ranks.end(4);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

std::string random_bytes(size_t size, uint32_t seed) {
    std::mt19937_64 random(seed);
    std::string bytes(size, '\0');
    for (char& byte : bytes) {
        byte = static_cast<char>(random());
    }
    return bytes;
}

}  // namespace

TEST_CASE("files of ranks arrive whole, one after the other, also those that are dropped half way") {
    constexpr size_t kChunk = FileTransfer::kChunk;
    const std::vector<std::string> files = {
        random_bytes(kChunk + 5, 0), random_bytes(kChunk * 5 + 1, 1), "",
        random_bytes(kChunk, 3),     random_bytes(kChunk * 9, 4),     "a few bytes"};
    const auto ranks = static_cast<uint32_t>(files.size());
    for (const size_t most : {SIZE_MAX, kChunk + 7}) {
        std::vector<std::string> got(ranks);
        Sent sent(ranks);
        by_ranks(ranks, sent, [&](Conversation& conversation) {
            std::istringstream mine(files[conversation.rank()]);
            for (uint32_t from = 0; from < ranks; ++from) {
                FileTransfer transfer(conversation, from, files[from].size(), mine);
                std::vector<uint8_t> piece(700'001);
                while (conversation.rank() == 0 && got[from].size() < most) {
                    const size_t some = transfer.take(piece);
                    if (some == 0) {
                        break;
                    }
                    got[from].append(reinterpret_cast<const char*>(piece.data()), some);
                }
                transfer.finish();
            }
            conversation.gate();
        });
        for (uint32_t from = 0; from < ranks; ++from) {
            CAPTURE(from);
            const bool all = files[from].size() <= most;
            CHECK((all ? got[from] == files[from] : got[from].size() >= most && files[from].starts_with(got[from])));
        }
    }
}

TEST_CASE("a rank sends no more than two windows ahead of what rank 0 has taken, whatever rank's turn it is") {
    constexpr uint64_t kSize = FileTransfer::kChunk * FileTransfer::kWindow * 6;
    constexpr uint64_t kAhead = FileTransfer::kChunk * FileTransfer::kWindow * 2;
    constexpr uint64_t kSlack = 1 << 20;  // of the conversation
    uint64_t while_waiting = 0, of_the_last = 0, in_all = 0;
    Sent sent(3);
    by_ranks(3, sent, [&](Conversation& ranks) {
        std::istringstream mine(std::string(ranks.rank() == 0 ? 0 : kSize, 'x'));
        for (uint32_t from = 1; from < 3; ++from) {
            FileTransfer transfer(ranks, from, kSize, mine);
            if (ranks.rank() == 0) {
                std::vector<uint8_t> byte(1);
                CHECK(transfer.take(byte) == 1);
                for (int i = 0; i < 3'000 && sent.bytes[from] < kAhead; ++i) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(200));  // does it go on?
                if (from == 1) {
                    while_waiting = sent.bytes[1];
                    of_the_last = sent.bytes[2];
                }
            }
            transfer.finish();
        }
        ranks.gate();
        if (ranks.rank() == 0) {
            in_all = sent.bytes[2];
        }
    });
    CHECK(while_waiting >= kAhead);
    CHECK(while_waiting <= kAhead + kSlack);
    CHECK(of_the_last <= kSlack);  // its turn has not come
    CHECK(in_all >= kSize);
}
