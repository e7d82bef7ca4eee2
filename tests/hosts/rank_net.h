// SPDX-License-Identifier: MIT
// Transports for tests: ranks that are threads of one process, or processes joined by sockets, with faults that the
// test owns.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hosts/transport.h"

namespace reprise::test {

/// Until one of them is readable, or the time has passed.
inline void poll_for(std::vector<pollfd> any, int64_t most_ns) {
    const timespec most{most_ns / 1'000'000'000, most_ns % 1'000'000'000};
    ::ppoll(any.data(), any.size(), &most, nullptr);
}

/// The network of ranks that are threads.
struct Net {
    explicit Net(uint32_t size) : inbox(size), cut(size) {}
    std::mutex mutex;
    std::vector<std::deque<std::pair<uint32_t, std::string>>> inbox;
    std::vector<std::atomic<bool>> cut;  // what the rank sends and is sent gets lost
    std::atomic<int> finished{0}, aborted{0};
};

class NetTransport : public Transport {
public:
    NetTransport(Net& net, uint32_t rank) : net_(net), rank_(rank) {}
    uint32_t rank() const override { return rank_; }
    uint32_t size() const override { return static_cast<uint32_t>(net_.inbox.size()); }
    std::string library() const override { return "threads"; }
    void send(uint32_t to, const void* data, size_t bytes) override {
        if (net_.cut[rank_] || net_.cut[to]) {
            return;
        }
        const std::lock_guard lock(net_.mutex);
        net_.inbox[to].emplace_back(rank_, std::string(static_cast<const char*>(data), bytes));
    }
    bool receive(uint32_t& from, std::string& into) override {
        const std::lock_guard lock(net_.mutex);
        auto& mine = net_.inbox[rank_];
        if (mine.empty()) {
            return false;
        }
        from = mine.front().first;
        into = std::move(mine.front().second);
        mine.pop_front();
        return true;
    }
    void wait(int bell, int64_t most_ns) override { poll_for({{bell, POLLIN, 0}}, most_ns); }
    bool hears() const override { return false; }
    bool all_sent() override { return true; }
    void finish() override { ++net_.finished; }
    void abort(int) override { ++net_.aborted; }

private:
    Net& net_;
    const uint32_t rank_;
};

/// Two ranks that are processes: `fd` is one end of a pair of SOCK_SEQPACKET sockets.
class SocketTransport : public Transport {
public:
    SocketTransport(int fd, uint32_t rank) : fd_(fd), rank_(rank) {}
    ~SocketTransport() override { ::close(fd_); }
    uint32_t rank() const override { return rank_; }
    uint32_t size() const override { return 2; }
    std::string library() const override { return "sockets"; }
    void send(uint32_t, const void* data, size_t bytes) override { (void)::send(fd_, data, bytes, MSG_NOSIGNAL); }
    bool receive(uint32_t& from, std::string& into) override {
        into.resize(size_t{1} << 16);
        const ssize_t got = ::recv(fd_, into.data(), into.size(), MSG_DONTWAIT);
        into.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
        from = 1 - rank_;
        return got > 0;
    }
    void wait(int bell, int64_t most_ns) override { poll_for({{bell, POLLIN, 0}, {fd_, POLLIN, 0}}, most_ns); }
    bool hears() const override { return true; }
    bool all_sent() override { return true; }
    void finish() override {}
    void abort(int) override {}

private:
    const int fd_;
    const uint32_t rank_;
};

}  // namespace reprise::test
