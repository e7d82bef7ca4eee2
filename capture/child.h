// SPDX-License-Identifier: MIT
// The command being recorded as a process: made stopped, let go once everything watches it, waited for.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "formats/support/unique_fd.h"

namespace reprise {

/// Who the command runs as.
struct ChildUser {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    std::string name, home, shell;
};
/// `name` or number; empty: who called sudo, or nothing where we stay who we are. Throws Error (usage) for nobody.
std::optional<ChildUser> child_user(const std::string& name);

class Child {
public:
    /// Forks; the child waits. It stays in our process group, so that the terminal is its own. Throws Error (usage)
    /// where there is no such program. Call before other threads hold locks: what it does then is safe after a fork.
    /// `mask`: the signals it holds back, as the caller of the recorder had it.
    Child(const std::vector<std::string>& command, const std::optional<ChildUser>& user, const sigset_t& mask);
    /// Not let go: it ends without having done anything.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Begins the program. Throws Error (usage) where the kernel refuses it.
    void release();
    /// Its status once it has ended; does not wait.
    std::optional<int> poll();

private:
    pid_t pid_ = -1;
    UniqueFd go_, error_;
    std::string program_;
    std::optional<int> status_;
};

}  // namespace reprise
