// SPDX-License-Identifier: MIT
#include "capture/child.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "formats/support/error.h"
#include "formats/support/limits.h"

namespace reprise {
namespace {

// Environment of the command: ours, or that of the user it runs as.
std::vector<std::string> environment(const std::optional<ChildUser>& user) {
    std::vector<std::string> result;
    for (char** at = environ; *at; ++at) {
        const std::string_view entry = *at;
        const std::string_view name = entry.substr(0, entry.find('='));
        if (user && (name.starts_with("SUDO_") || name == "HOME" || name == "USER" || name == "LOGNAME" ||
                     name == "SHELL" || name == "MAIL")) {
            continue;
        }
        result.emplace_back(entry);
    }
    if (user) {
        result.push_back("HOME=" + user->home);
        result.push_back("USER=" + user->name);
        result.push_back("LOGNAME=" + user->name);
        result.push_back("SHELL=" + user->shell);
    }
    return result;
}

// As execvp would find it; found here, so that the search is not recorded.
std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        return name;
    }
    const char* path = std::getenv("PATH");
    std::string_view left = path ? path : "/usr/local/bin:/usr/bin:/bin";
    while (true) {
        const std::string_view folder = left.substr(0, left.find(':'));
        std::string candidate = (folder.empty() ? "." : std::string(folder)) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) {
            return candidate;
        }
        if (folder.size() == left.size()) {
            break;
        }
        left.remove_prefix(folder.size() + 1);
    }
    throw usage_error("there is no program " + escape_line(name) + " in $PATH",
                      "name the command after --, with its path where it is not in $PATH");
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    result.reserve(words.size() + 1);
    for (std::string& word : words) {
        result.push_back(word.data());
    }
    result.push_back(nullptr);
    return result;
}

// In the child, after the fork: only calls that are safe there.
[[noreturn]] void become(int go, int error, const ChildUser* user, const sigset_t& mask, const char* program,
                         char* const* arguments, char* const* shell_arguments, char* const* variables) {
    int why = 0;
    // Descriptors of the recorder that would vanish at exec anyway are not part of the recording.
    for (int fd = 3; fd < 1024; ++fd) {
        if (fd != go && fd != error && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == FD_CLOEXEC) {
            ::close(fd);
        }
    }
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    restore_limits();
    if (user && (::setgroups(user->groups.size(), user->groups.data()) != 0 || ::setgid(user->gid) != 0 ||
                 ::setuid(user->uid) != 0)) {
        why = errno;
    }
    char word = 0;
    ssize_t n = 0;
    do {
        n = ::read(go, &word, 1);
    } while (n < 0 && errno == EINTR);
    if (n != 1) {
        ::_exit(127);  // the recorder is gone
    }
    if (why == 0) {
        ::execve(program, arguments, variables);
        why = errno;
        if (why == ENOEXEC) {
            ::execve("/bin/sh", shell_arguments, variables);
            why = errno;
        }
    }
    if (::write(error, &why, sizeof why) < 0) {
        ::_exit(126);
    }
    ::_exit(127);
}

}  // namespace

std::optional<ChildUser> child_user(const std::string& name) {
    const passwd* entry = nullptr;
    if (!name.empty()) {
        entry = ::getpwnam(name.c_str());
        char* end = nullptr;
        const unsigned long number = std::strtoul(name.c_str(), &end, 10);
        if (!entry && *end == '\0') {
            entry = ::getpwuid(static_cast<uid_t>(number));
        }
        if (!entry) {
            throw usage_error("there is no user " + escape_line(name), "name a user or its number");
        }
    } else if (const char* sudo = std::getenv("SUDO_UID"); sudo && ::geteuid() == 0) {
        entry = ::getpwuid(static_cast<uid_t>(std::strtoul(sudo, nullptr, 10)));
    }
    if (!entry || entry->pw_uid == ::geteuid()) {
        return std::nullopt;
    }
    ChildUser user{entry->pw_uid, entry->pw_gid, {}, entry->pw_name, entry->pw_dir, entry->pw_shell};
    int count = 64;
    user.groups.resize(64);
    if (::getgrouplist(entry->pw_name, entry->pw_gid, user.groups.data(), &count) < 0) {
        user.groups.resize(static_cast<size_t>(count));
        ::getgrouplist(user.name.c_str(), user.gid, user.groups.data(), &count);
    }
    user.groups.resize(static_cast<size_t>(count));
    return user;
}

Child::Child(const std::vector<std::string>& command, const std::optional<ChildUser>& user, const sigset_t& mask) {
    program_ = find_program(command.at(0));
    std::vector<std::string> arguments = command;
    std::vector<std::string> shell_arguments = {"sh", program_};
    shell_arguments.insert(shell_arguments.end(), command.begin() + 1, command.end());
    std::vector<std::string> variables = environment(user);
    const std::vector<char*> argument_pointers = pointers(arguments);
    const std::vector<char*> shell_pointers = pointers(shell_arguments);
    const std::vector<char*> variable_pointers = pointers(variables);
    int go[2], error[2];
    if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(error, O_CLOEXEC) != 0) {
        throw machine_error(std::string("no pipe can be made: ") + std::strerror(errno), "");
    }
    go_.reset(go[1]);
    error_.reset(error[0]);
    const UniqueFd of_child_go(go[0]), of_child_error(error[1]);
    pid_ = ::fork();
    if (pid_ < 0) {
        throw machine_error(std::string("no process can be made: ") + std::strerror(errno), "");
    }
    if (pid_ == 0) {
        ::close(go[1]);
        ::close(error[0]);
        become(go[0], error[1], user ? &*user : nullptr, mask, program_.c_str(), argument_pointers.data(),
               shell_pointers.data(), variable_pointers.data());
    }
}

Child::~Child() {
    if (go_.valid()) {
        go_.reset();
        // It ends by itself; nobody else will ask for its status.
        if (!status_) {
            ::waitpid(pid_, nullptr, 0);
        }
    }
}

void Child::release() {
    const char word = 1;
    if (::write(go_.get(), &word, 1) != 1) {
        throw machine_error(std::string("the command cannot be let go: ") + std::strerror(errno), "");
    }
    go_.reset();
    int why = 0;
    ssize_t n = 0;
    do {
        n = ::read(error_.get(), &why, sizeof why);
    } while (n < 0 && errno == EINTR);
    error_.reset();
    if (n == sizeof why) {
        ::waitpid(pid_, nullptr, 0);
        throw usage_error(escape_line(program_) + " cannot be started: " + std::strerror(why),
                          "name a program that the user of the command may execute");
    }
}

std::optional<int> Child::poll() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        status_ = status;
    }
    return status_;
}

}  // namespace reprise
