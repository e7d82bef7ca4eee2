// SPDX-License-Identifier: MIT
// The transport over MPI: a plug-in of its own for each MPI, loaded where that MPI's launcher started the process
// (launched.cpp). Everything goes through one communicator, without a call that waits.
#include <dirent.h>
#include <mpi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>
#include <vector>

#include "formats/support/unique_fd.h"
#include "hosts/mpi_plugin.h"
#include "hosts/transport.h"

namespace reprise {
namespace {

constexpr int kTag = 1;

/// MPI has no wait that sleeps. Where it sends through sockets, they tell when it is time to look: all sockets of the
/// process are watched, MPI's among them. Whether they tell of every message shows as messages come: one of which no
/// socket has told came another way (RDMA), or through a socket that is new.
class Sockets {
public:
    Sockets() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

    void watch_all() {
        DIR* const all = ::opendir("/proc/self/fd");
        if (all == nullptr) {
            return;
        }
        while (const dirent* const entry = ::readdir(all)) {
            char target[16] = {};
            if (::readlinkat(::dirfd(all), entry->d_name, target, sizeof target - 1) > 0 &&
                std::string(target).starts_with("socket:")) {
                epoll_event event{};
                event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
                ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, std::atoi(entry->d_name), &event);  // or is watched already
            }
        }
        ::closedir(all);
    }

    void wait(int bell, int64_t most_ns) {
        pollfd both[] = {{epoll_.get(), POLLIN, 0}, {bell, POLLIN, 0}};
        const timespec most{most_ns / 1'000'000'000, most_ns % 1'000'000'000};
        bell_only_ = ::ppoll(both, 2, &most, nullptr) > 0 && both[0].revents == 0;
    }

    /// Before each look at MPI. Whether it may find something.
    bool look() {
        epoll_event events[16];
        while (!told_ && ::epoll_wait(epoll_.get(), events, 16, 0) > 0) {
            told_ = true;
        }
        return told_ || !hear() || !bell_only_;
    }

    void looked(bool found) {
        constexpr int kEnough = 64;
        if (found) {
            ++(told_ ? told_messages_ : untold_messages_);
            if (!told_) {
                watch_all();
            }
        } else {
            told_ = false;
        }
        if (told_messages_ + untold_messages_ > kEnough) {
            told_messages_ /= 2;
            untold_messages_ /= 2;
        }
    }

    /// A message now and then arrives between the question and the look.
    bool hear() const { return told_messages_ >= 8 && untold_messages_ <= told_messages_ / 2; }

private:
    UniqueFd epoll_;
    bool bell_only_ = false;  // has ended the latest wait
    bool told_ = false;       // of something since MPI had nothing
    int told_messages_ = 0, untold_messages_ = 0;
};

class MpiTransport : public Transport {
public:
    MpiTransport() {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &size_);
        MPI_Comm here = MPI_COMM_NULL;
        int ranks_here = 1;
        MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
        MPI_Comm_size(here, &ranks_here);
        MPI_Comm_free(&here);
        apart_ = ranks_here == 1;
        if (apart_) {
            sockets_.watch_all();
        }
    }

    uint32_t rank() const override { return static_cast<uint32_t>(rank_); }
    uint32_t size() const override { return static_cast<uint32_t>(size_); }

    std::string library() const override {
        char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
        int length = 0;
        MPI_Get_library_version(text, &length);
        const std::string whole(text, static_cast<size_t>(length));
        return whole.substr(0, whole.find_first_of(",\n"));
    }

    void send(uint32_t to, const void* data, size_t bytes) override {
        Sending& one = sending_.emplace_back();
        const char* const from = static_cast<const char*>(data);
        one.bytes.assign(from, from + bytes);
        // all_sent() waits. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        const int result = MPI_Isend(one.bytes.data(), static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to), kTag,
                                     comm_, &one.request);
        if (result != MPI_SUCCESS) {
            sending_.pop_back();
        }
    }

    bool receive(uint32_t& from, std::string& into) override {
        // Open MPI looks at its sockets with every eighth call only. Between two polls of ours there is a sleep.
        constexpr int kCalls = 10;
        int there = 0;
        MPI_Status status;
        for (int call = 0; call < kCalls && there == 0; ++call) {
            if (apart_ && call % (kCalls / 2) == 0 && !sockets_.look()) {
                break;
            }
            if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &there, &status) != MPI_SUCCESS) {
                break;
            }
        }
        if (apart_) {
            sockets_.looked(there != 0);
        }
        if (there == 0) {
            all_sent();
            return false;
        }
        int count = 0;
        MPI_Get_count(&status, MPI_BYTE, &count);
        into.resize(static_cast<size_t>(count));
        from = static_cast<uint32_t>(status.MPI_SOURCE);
        return MPI_Recv(into.data(), count, MPI_BYTE, status.MPI_SOURCE, kTag, comm_, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }

    void wait(int bell, int64_t most_ns) override {
        constexpr int64_t kGoesOn = 100'000;  // what has not left yet leaves in calls of MPI
        sockets_.wait(bell, sending_.empty() ? most_ns : std::min(most_ns, kGoesOn));
    }
    bool hears() const override { return apart_ && sockets_.hear(); }

    bool all_sent() override {
        for (auto one = sending_.begin(); one != sending_.end();) {
            int done = 0;
            const bool gone = MPI_Test(&one->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
            one = gone ? sending_.erase(one) : std::next(one);
        }
        return sending_.empty();
    }

    void finish() override {
        while (!all_sent()) {
        }
        MPI_Comm_free(&comm_);
        MPI_Finalize();
    }

    void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

private:
    struct Sending {
        std::vector<char> bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0, size_ = 1;
    bool apart_ = false;  // no other rank on this host, from which messages would come through memory
    std::list<Sending> sending_;
    Sockets sockets_;
};

}  // namespace
}  // namespace reprise

reprise::Transport* reprise_mpi_transport() { return new reprise::MpiTransport; }
