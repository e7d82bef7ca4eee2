// SPDX-License-Identifier: MIT
#include "cli/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <sstream>
#include <thread>

#include "disk/logged_disk.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/nearest.h"
#include "formats/support/unique_fd.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

std::vector<char*> arguments_of(std::vector<std::string>& words) {
    std::vector<char*> out;
    out.reserve(words.size() + 1);
    for (std::string& word : words) {
        out.push_back(word.data());
    }
    out.push_back(nullptr);
    return out;
}

/// Ctrl-C is for this process, which ends these ones itself, after what they are needed for.
pid_t start(std::vector<std::string> words, const char* program, int output) {
    const std::vector<char*> arguments = arguments_of(words);
    const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const pid_t self = ::getpid(), pid = ::fork();
    if (pid < 0) {
        throw machine_error("cannot start a process: " + reason(errno), "");
    }
    if (pid == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        ::dup2(nothing.get(), STDIN_FILENO);
        ::dup2(output, STDOUT_FILENO);
        ::dup2(output, STDERR_FILENO);
        if (::getppid() == self) {
            ::execvp(program, arguments.data());
        }
        ::_exit(127);
    }
    return pid;
}

int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool soon(const std::function<bool()>& done) {
    constexpr int kTries = 500;
    for (int tries = 0; tries < kTries; ++tries) {
        if (done()) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

void unmount(const fs::path& folder) {
    // What just closed its files may still hold it.
    if (!soon([&] { return ::umount2(folder.c_str(), 0) == 0 || errno != EBUSY; })) {
        ::umount2(folder.c_str(), MNT_DETACH);
    }
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& words) {
    const UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
    ProgramRun out;
    out.code = wait_for(start(words, words.front().c_str(), output.get()));
    char text[4096];
    ssize_t n = 0;
    for (off_t at = 0; (n = ::pread(output.get(), text, sizeof text, at)) > 0; at += n) {
        out.output.append(text, static_cast<size_t>(n));
    }
    while (out.output.ends_with('\n')) {
        out.output.pop_back();
    }
    return out;
}

std::string must_run(const std::vector<std::string>& words) {
    ProgramRun run = run_program(words);
    if (run.code != 0) {
        const std::string why = run.code == 127 ? "it is not installed" : escape_line(run.output);
        throw machine_error("`" + escape_line(join(words, " ")) + "` failed: " + why, "");
    }
    return std::move(run.output);
}

LoopDevice::LoopDevice(const fs::path& file) : name_(must_run({"losetup", "--find", "--show", file.string()})) {}
LoopDevice::~LoopDevice() { run_program({"losetup", "--detach", name_}); }

MountedDevice::MountedDevice(const std::string& device, fs::path folder, const std::string& options)
    : folder_(std::move(folder)) {
    std::vector<std::string> words = {"mount"};
    if (!options.empty()) {
        words.insert(words.end(), {"-o", options});
    }
    words.insert(words.end(), {device, folder_.string()});
    must_run(words);
}
MountedDevice::~MountedDevice() { unmount(folder_); }

DiskServer::DiskServer(const fs::path& image, const fs::path& log, fs::path folder) : folder_(std::move(folder)) {
    const UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
    pid_ = start({"reprise", "disk", image.string(), log.string(), folder_.string()}, "/proc/self/exe", output.get());
    int code = 0;
    const bool up = soon([&] {
        int status = 0;
        code = ::waitpid(pid_, &status, WNOHANG) == pid_ ? 1 : 0;
        std::error_code ignored;
        return code != 0 || fs::exists(folder_ / kDiskName, ignored);
    });
    if (up && code == 0) {
        return;
    }
    char text[512];
    const ssize_t n = ::pread(output.get(), text, sizeof text, 0);
    if (code == 0) {
        ::kill(pid_, SIGKILL);
        wait_for(pid_);
    }
    throw machine_error("the disk that logs its writes does not come up: " +
                            escape_line(std::string(text, n > 0 ? static_cast<size_t>(n) : 0)),
                        "FUSE requires /dev/fuse, and root");
}

DiskServer::~DiskServer() {
    unmount(folder_);
    wait_for(pid_);
}

void unmount_left(const fs::path& folder) { ::umount2(folder.c_str(), MNT_DETACH); }

void detach_left(const fs::path& file) {
    std::istringstream lines(run_program({"losetup", "--associated", file.string()}).output);
    for (std::string line; std::getline(lines, line);) {
        run_program({"losetup", "--detach", line.substr(0, line.find(':'))});
    }
}

}  // namespace reprise::cli
