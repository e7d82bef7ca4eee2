// SPDX-License-Identifier: MIT
#include "metrics/server.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/quiet_thread.h"
#include "formats/support/unique_fd.h"
#include "metrics/session.h"

namespace reprise {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr size_t kMostSessions = 64;
constexpr int kBacklog = 64;

[[noreturn]] void refuse(const ListenAddress& address, int error) {
    std::string todo = "choose another port, or :0 for a free one";
    if (error == EADDRNOTAVAIL) {
        todo = "give an address of this machine, or leave it out: :" + std::to_string(address.port);
    } else if (error == EACCES) {
        todo = "choose a port from 1024 on";
    }
    throw machine_error("cannot serve metrics on " + to_string(address) + ": " + std::strerror(error), todo);
}

/// A listening socket, and which port it got. Neither Asio's own way of making one nor its accept sets close-on-exec.
tcp::acceptor listen_on(asio::io_context& io, ListenAddress& address) {
    const tcp::endpoint wanted(asio::ip::make_address(address.host), address.port);
    const int family = wanted.protocol().family();
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(fd.get(), wanted.data(), static_cast<socklen_t>(wanted.size())) != 0 ||
        ::listen(fd.get(), kBacklog) != 0) {
        refuse(address, errno);
    }
    tcp::acceptor acceptor(io);
    acceptor.assign(wanted.protocol(), fd.release());
    address.port = acceptor.local_endpoint().port();
    return acceptor;
}

/// Stops a server's thread between two of its handlers while a process is forked. A child that was forked while that
/// thread held a lock (an allocator's, a stream's) would wait for it for ever: nobody is left who could release it.
class ForkStop {
public:
    explicit ForkStop(asio::io_context& io) : io_(io) {
        static const int registered = ::pthread_atfork(stop_all, go_on_all, forget_all);
        static_cast<void>(registered);
        const std::lock_guard lock(list_mutex);
        list.push_back(this);
    }
    ~ForkStop() {
        const std::lock_guard lock(list_mutex);
        list.erase(std::remove(list.begin(), list.end(), this), list.end());
    }
    ForkStop(const ForkStop&) = delete;
    ForkStop& operator=(const ForkStop&) = delete;

private:
    // A handler writes a page; a server that takes longer does not hold up the fork.
    static constexpr auto kPatience = 2s;

    static void stop_all() {
        list_mutex.lock();
        for (ForkStop* each : list) {
            each->stop();
        }
    }
    static void go_on_all() {
        for (ForkStop* each : list) {
            each->go_on();
        }
        list_mutex.unlock();
    }
    static void forget_all() {  // the child has no such thread, and may fork, too
        list.clear();
        list_mutex.unlock();
    }

    void stop() {
        std::unique_lock lock(mutex_);
        wanted_ = true;
        asio::post(io_, [this] {
            std::unique_lock inside(mutex_);
            stopped_ = true;
            changed_.notify_all();
            changed_.wait(inside, [this] { return !wanted_; });
            stopped_ = false;
        });
        changed_.wait_for(lock, kPatience, [this] { return stopped_; });
    }
    void go_on() {
        const std::lock_guard lock(mutex_);
        wanted_ = false;
        changed_.notify_all();
    }

    static inline std::mutex list_mutex;  // held from the beginning of a fork to its end
    static inline std::vector<ForkStop*> list;

    asio::io_context& io_;
    std::mutex mutex_;  // of all below
    std::condition_variable changed_;
    bool wanted_ = false, stopped_ = false;
};

}  // namespace

class MetricsServer::Listener {
public:
    Listener(ListenAddress address, std::function<std::string()> text)
        : address_(std::move(address)),
          text_(std::move(text)),
          acceptor_(listen_on(io_, address_)),
          pause_(io_),
          thread_(quiet_thread("metrics", [this] {
              wait();
              io_.run();
          })) {}

    ~Listener() {
        asio::post(io_, [this] {
            for (const std::weak_ptr<MetricsSession>& each : sessions_) {
                if (const auto session = each.lock()) {
                    session->end();
                }
            }
            io_.stop();
        });
        thread_.join();
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    const ListenAddress& address() const { return address_; }

private:
    void wait() {
        acceptor_.async_wait(tcp::acceptor::wait_read, [this](const auto& error) {
            if (!error) {
                accept();
            }
        });
    }

    void accept() {
        const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            pause_.expires_after(100ms);
            pause_.async_wait([this](const auto&) { wait(); });
            return;
        }
        if (fd >= 0) {
            make_room();
            const auto protocol = address_.host.find(':') == std::string::npos ? tcp::v4() : tcp::v6();
            const auto session = std::make_shared<MetricsSession>(tcp::socket(io_, protocol, fd), text_);
            sessions_.push_back(session);
            session->start();
        }
        wait();
    }

    /// Whoever holds many connections loses the oldest, so that others get in.
    void make_room() {
        sessions_.erase(
            std::remove_if(sessions_.begin(), sessions_.end(), [](const auto& each) { return each.expired(); }),
            sessions_.end());
        if (sessions_.size() >= kMostSessions) {
            if (const auto oldest = sessions_.front().lock()) {
                oldest->end();
            }
            sessions_.erase(sessions_.begin());
        }
    }

    ListenAddress address_;
    const std::function<std::string()> text_;
    asio::io_context io_{1};
    tcp::acceptor acceptor_;
    asio::steady_timer pause_;
    std::vector<std::weak_ptr<MetricsSession>> sessions_;  // the oldest first
    std::thread thread_;
    ForkStop fork_stop_{io_};
};

MetricsServer::MetricsServer(const ListenAddress& address, std::function<std::string()> text)
    : listener_(std::make_unique<Listener>(address, std::move(text))) {}
MetricsServer::~MetricsServer() = default;
const ListenAddress& MetricsServer::address() const { return listener_->address(); }

}  // namespace reprise
