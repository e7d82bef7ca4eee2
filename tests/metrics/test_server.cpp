// SPDX-License-Identifier: MIT
// The metrics server against clients that behave and clients that do not.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"
#include "metrics/server.h"

namespace reprise::test {
namespace {

UniqueFd dial(const MetricsServer& server) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server.address().port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const timeval patience{20, 0};  // a hang ends
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

void put(const UniqueFd& fd, const std::string& text) {
    REQUIRE(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

/// Until the other side closes.
std::string rest(const UniqueFd& fd) {
    std::string out;
    char bytes[4096];
    for (ssize_t n = 0; (n = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0;) {
        out.append(bytes, static_cast<size_t>(n));
    }
    return out;
}

std::string ask(const MetricsServer& server, const std::string& request) {
    const UniqueFd fd = dial(server);
    put(fd, request);
    return rest(fd);
}

std::string get(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Fixture {
    MetricsServer server{{"127.0.0.1", 0}, [] { return std::string("up 1\n"); }};
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the page, and nothing else") {
    CHECK(server.address().port != 0);
    const std::string page = ask(server, get("/metrics"));
    CHECK(page.starts_with("HTTP/1.1 200 "));
    CHECK(has(page, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    CHECK(page.ends_with("\r\n\r\nup 1\n"));
    CHECK(has(ask(server, get("/metrics?x=1")), "up 1"));
    for (const char* target : {"/", "/metrics/", "/metricsx", "/../etc/passwd", "*"}) {
        const std::string none = ask(server, get(target));
        INFO(target);
        CHECK(none.starts_with("HTTP/1.1 404 "));
        CHECK(has(none, "the metrics are at /metrics"));
    }
    const std::string head = ask(server, "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(head.starts_with("HTTP/1.1 200 "));
    CHECK(has(head, "Content-Length: 5\r\n"));
    CHECK(head.ends_with("\r\n\r\n"));
    const std::string other = ask(server, "DELETE /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(other.starts_with("HTTP/1.1 405 "));
    CHECK(has(other, "Allow: GET, HEAD\r\n"));
}

TEST_CASE_FIXTURE(Fixture, "one connection serves many requests") {
    const UniqueFd fd = dial(server);
    for (int turn = 0; turn < 3; ++turn) {
        put(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        std::string answer;
        char bytes[1024];
        while (!answer.ends_with("up 1\n")) {
            const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, 0);
            REQUIRE(n > 0);
            answer.append(bytes, static_cast<size_t>(n));
        }
        CHECK(answer.starts_with("HTTP/1.1 200 "));
    }
    put(fd, get("/metrics") + get("/metrics"));  // the second one comes after the end
    CHECK(has(rest(fd), "up 1"));
}

TEST_CASE_FIXTURE(Fixture, "what is no request is refused, and ends the connection") {
    CHECK(ask(server, "\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
    CHECK(ask(server, "GET /metrics HTTP/1.1\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n")
              .starts_with("HTTP/1.1 431 "));
    CHECK(ask(server, "GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").starts_with("HTTP/1.1 413 "));
    CHECK(has(ask(server, get("/metrics")), "up 1"));
}

TEST_CASE_FIXTURE(Fixture, "clients that are silent, slow or many hold nobody up") {
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 200; ++i) {
        silent.push_back(dial(server));
        if (i % 2 == 0) {
            put(silent.back(), "GET /metr");
        }
    }
    CHECK(has(ask(server, get("/metrics")), "up 1"));
    CHECK(rest(silent.front()).empty());  // the oldest made room
    CHECK(rest(silent.back()).empty());   // and the last ones run out of time
}

TEST_CASE_FIXTURE(Fixture, "a client sees the end although a child process has the connection, too") {
    const UniqueFd fd = dial(server);
    put(fd, "GET /metr");
    CHECK(has(ask(server, get("/metrics")), "up 1"));  // by now the first one was accepted
    int gate[2];
    REQUIRE(::pipe2(gate, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char byte = 0;
        ::close(gate[1]);
        static_cast<void>(!::read(gate[0], &byte, 1));
        ::_exit(0);
    }
    ::close(gate[0]);
    put(fd, "ics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(has(rest(fd), "up 1"));
    CHECK(has(ask(server, get("/metrics")), "up 1"));
    ::close(gate[1]);
    CHECK(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE_FIXTURE(Fixture, "a port that is taken, and an address of another machine") {
    const auto why = [](const ListenAddress& address) -> std::string {
        try {
            const MetricsServer other(address, [] { return std::string(); });
            return "";
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::machine);
            return error.what();
        }
    };
    const std::string taken = why(server.address());
    CHECK(has(taken, "Address already in use"));
    CHECK(has(taken, ":0 for a free one"));
    CHECK(has(why({"192.0.2.1", 0}), "leave it out"));
}

TEST_CASE("an error while the text is made is an answer, too") {
    const MetricsServer server({"127.0.0.1", 0}, []() -> std::string { throw std::runtime_error("no text"); });
    const std::string answer = ask(server, get("/metrics"));
    CHECK(answer.starts_with("HTTP/1.1 500 "));
    CHECK(has(answer, "no text"));
}

TEST_CASE("a process that is forked while a page is made inherits none of the server's locks") {
    std::mutex inner;
    const MetricsServer server({"127.0.0.1", 0}, [&] {
        const std::lock_guard lock(inner);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return std::string("up 1\n");
    });
    std::atomic<bool> enough{false};
    std::thread client([&] {
        while (!enough) {
            ask(server, get("/metrics"));
        }
    });
    int locked = 0;
    for (int i = 0; i < 60; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            const pid_t grandchild = ::fork();  // which stops no server, as there is none
            int status = 0;
            if (grandchild == 0) {
                ::_exit(inner.try_lock() ? 0 : 1);
            }
            ::_exit(::waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 1);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        locked += status == 0 ? 0 : 1;
    }
    enough = true;
    client.join();
    CHECK(locked == 0);
}

TEST_CASE("addresses") {
    const auto read = [](const char* text) { return to_string(parse_listen_address(text, "--metrics")); };
    CHECK(read(":9400") == "127.0.0.1:9400");
    CHECK(read("localhost:1") == "127.0.0.1:1");
    CHECK(read("0.0.0.0:0") == "0.0.0.0:0");
    CHECK(read("[::]:65535") == "[::]:65535");
    CHECK(read("[::1]:9400") == "[::1]:9400");
    for (const char* bad : {"", ":", "9400", "x:9400", ":65536", ":-1", ":+1", ": 1", ":1x", "::1:9400", "[1.2.3.4]:1",
                            "[]:1", "[::1]", "1.2.3:1", "host name:1"}) {
        INFO(bad);
        CHECK_THROWS_AS(parse_listen_address(bad, "--metrics"), Error);
    }
    try {
        parse_listen_address("9400", "--metrics");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::usage);
        CHECK(has(error.what(), "--metrics is '9400', expected [ADDR]:PORT"));
        CHECK(has(error.what(), "give --metrics :9400"));
    }
}

}  // namespace reprise::test
