// SPDX-License-Identifier: MIT
// Roles of files by simple rules (docs/roles.md lists them); the one place that decides them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/tables.h"

namespace reprise {

/// What is known of a file when the recording has been read to its end.
struct RoleFacts {
    std::string_view path;
    FileType type = FileType::unknown;
    bool written = false;       // data written, truncated or created by the recording
    bool read = false;          // data read or mapped
    bool renamed_into = false;  // the target of a rename: how checkpoints are put in place
    bool synced = false;
    uint64_t bytes_written = 0;
    bool own_repository = false;  // in a repository that the recording writes to: its work, and no program's state
};

/// The repository (".../.git") that a path lies in, or is; empty: none.
std::string_view repository_of(std::string_view path);

/// First matching rule wins: /dev/shm and anonymous memory are ipc; /proc /sys /dev /etc /run are system; shared
/// libraries, interpreters, /usr /bin /lib /opt, site-packages, *.py, *.pyc, *.so are program; written files are
/// checkpoint, log or cache by name and size; files that are only read are dataset.
Role classify(const RoleFacts& facts);

/// Roles the user decides: `--role PATTERN=ROLE`. The pattern is a path, or one with * ? [...] as the shell's (* also
/// matches /); a directory stands for all below it. The last one that matches wins.
class RoleOverrides {
public:
    /// Error (usage) for what is no PATTERN=ROLE.
    /// `real_name`: what a path of a pattern is called in the recording, which is then a pattern, too.
    static RoleOverrides parse(const std::vector<std::string>& words,
                               const std::function<std::string(const std::string&)>& real_name = {});
    /// A rule that need not match.
    void also(std::string pattern, Role role) { rules_.push_back({std::move(pattern), role, true}); }
    std::optional<Role> role_of(std::string_view path) const;
    bool empty() const { return rules_.empty(); }
    /// Makes a rule that matches no path of the recording an error.
    void require_matches() { matches_required_ = true; }
    bool matches_required() const { return matches_required_; }
    /// Error (usage) for the first rule that matches none of the paths.
    void check_matches(const std::vector<std::string_view>& paths) const;
    /// How many rules match none of the paths, and the pattern of the first.
    std::pair<uint64_t, std::string> unmatched(const std::vector<std::string_view>& paths) const;

private:
    struct Rule {
        std::string pattern;
        Role role;
        bool may_be_idle = false;
    };
    static bool matches(const Rule& rule, std::string_view path);
    std::vector<Rule> rules_;
    bool matches_required_ = false;
};

}  // namespace reprise
