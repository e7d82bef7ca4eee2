// SPDX-License-Identifier: MIT
// Processes that share their parent's memory and have descriptors of their own.
#include "replay/run/light_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support.h"

namespace reprise::test {
namespace {

int status_of(pid_t pid) {
    int status = -1;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return status;
}

int threads_here() {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("Threads:")) {
            return std::stoi(line.substr(8));
        }
    }
    return 0;
}

}  // namespace

TEST_CASE("a light process: its own number and descriptors, its parent's memory") {
    if (kSanitized) {
        LightProcesses processes;
        CHECK(processes.start([] { _exit(0); }) == -ENOSYS);
        REPRISE_SKIP("sanitizers do not know processes that share memory");
    }
    const int mine = open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(mine >= 0);
    std::atomic<int> seen{-1}, opened{-1};
    std::string said;
    LightProcesses processes;
    const pid_t pid = processes.start([&] {
        seen = getpid();
        opened = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        said = std::string(100'000, 'x');  // memory of the child is memory of the parent
        close(mine);
        _exit(errno == 0 ? 7 : 8);
    });
    REQUIRE(pid > 0);
    const int status = status_of(pid);
    CHECK(WIFEXITED(status));
    CHECK(pid != getpid());
    CHECK(seen == pid);
    CHECK(said.size() == 100'000);
    CHECK(fcntl(mine, F_GETFD) >= 0);  // the child closed a copy
    CHECK(opened >= 0);
    CHECK(fcntl(opened.load(), F_GETFD) == -1);  // and what it opened was not open here
    CHECK(errno == EBADF);
    close(mine);
}

TEST_CASE("a light process: several at once, one in another, and what they held is freed when they have ended") {
    if (kSanitized) {
        REPRISE_SKIP("sanitizers do not know processes that share memory");
    }
    const int before = threads_here();
    const auto held = std::make_shared<int>(3);
    std::atomic<int> inner{0}, running{0}, most{0};
    std::vector<pid_t> pids;
    pids.reserve(4);
    std::optional<LightProcesses> processes(std::in_place);
    for (int i = 0; i < 4; ++i) {
        pids.push_back(processes->start([&, held] {
            most = std::max(most.load(), ++running);
            int status = 0;
            {
                LightProcesses own;
                const pid_t child = own.start([&, held] {
                    ++inner;
                    _exit(*held);
                });
                while (waitpid(child, &status, 0) < 0) {
                }
            }
            while (inner.load() < 4) {  // all four are there before one ends
                usleep(100);
            }
            --running;
            _exit(WEXITSTATUS(status));
        }));
    }
    for (const pid_t pid : pids) {
        REQUIRE(pid > 0);
        CHECK(WEXITSTATUS(status_of(pid)) == 3);
    }
    CHECK(most == 4);
    processes.reset();
    CHECK(held.use_count() == 1);
    CHECK(threads_here() == before);
}

TEST_CASE("a light process: thousands one after the other take turns with few threads") {
    if (kSanitized) {
        REPRISE_SKIP("sanitizers do not know processes that share memory");
    }
    LightProcesses processes;
    const int before = threads_here();
    for (int i = 0; i < 2000; ++i) {
        const pid_t pid = processes.start([] { _exit(0); });
        REQUIRE(pid > 0);
        REQUIRE(status_of(pid) == 0);
    }
    CHECK(threads_here() - before < 100);
}

TEST_CASE("a light process that dies of a signal takes nothing along") {
    if (kSanitized) {
        REPRISE_SKIP("sanitizers do not know processes that share memory");
    }
    LightProcesses processes;
    const pid_t pid = processes.start([] {
        raise(SIGKILL);
        _exit(0);
    });
    REQUIRE(pid > 0);
    const int status = status_of(pid);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
}

}  // namespace reprise::test
