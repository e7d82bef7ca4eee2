// SPDX-License-Identifier: MIT
#include "cli/self_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"

namespace reprise::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> noticed{0};
std::atomic<pid_t> child{0};

// A Ctrl-C reaches the child by itself; what was sent to this process alone does not.
void notice(int number) {
    noticed.store(number);
    if (const pid_t pid = child.load(); pid > 0 && number != SIGINT) {
        ::kill(pid, number);
    }
}

std::string first_line(int fd) {
    std::array<char, 1024> text;
    const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
    std::string line(text.data(), n > 0 ? static_cast<size_t>(n) : 0);
    line.resize(std::min(line.find('\n'), line.size()));
    constexpr const char* kName = "reprise: ";
    return line.starts_with(kName) ? line.substr(std::strlen(kName)) : line;
}

}  // namespace

Interrupts::Interrupts() {
    noticed.store(0);
    for (const int number : kSignals) {
        struct sigaction action {};
        action.sa_handler = notice;
        ::sigaction(number, &action, nullptr);
    }
}

Interrupts::~Interrupts() {
    for (const int number : kSignals) {
        ::signal(number, SIG_DFL);
    }
}

bool Interrupts::any() { return noticed.load() != 0; }

SelfRun run_self(const std::vector<std::string>& arguments, bool shown) {
    const UniqueFd errors(::memfd_create("stderr", MFD_CLOEXEC)), nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
    std::vector<std::string> words = {"reprise"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    std::fflush(nullptr);
    const pid_t self = ::getpid(), pid = ::fork();
    if (pid < 0) {
        throw machine_error("cannot start a process: " + std::string(std::strerror(errno)), "");
    }
    if (pid == 0) {
        for (const int number : kSignals) {
            ::signal(number, SIG_DFL);
        }
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        ::dup2(nothing.get(), STDIN_FILENO);
        if (!shown) {
            ::dup2(nothing.get(), STDOUT_FILENO);
            ::dup2(errors.get(), STDERR_FILENO);
        }
        if (::getppid() == self) {
            ::execv("/proc/self/exe", argv.data());
        }
        ::_exit(127);
    }
    child.store(pid);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    child.store(0);
    SelfRun run;
    run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run.message = first_line(errors.get());
    return run;
}

}  // namespace reprise::cli
