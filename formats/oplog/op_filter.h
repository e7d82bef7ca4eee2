// SPDX-License-Identifier: MIT
// Which ops of a log a replay performs and an export or a comparison looks at: by role and path of the files they use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/op.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/tables.h"

namespace reprise {

/// A file is kept where its role is not left out or a glob of also_paths matches its path, its role is none of
/// not_roles, a glob of only_paths matches (or there are none), and none of not_paths does. Globs are fnmatch(3)
/// without flags: `*` also matches "/". Files without a path match no glob.
struct OpFilter {
    std::vector<Role> leave_out = default_left_out();  // program and system
    std::vector<std::string> also_paths = {};
    std::vector<Role> not_roles = {};
    std::vector<std::string> only_paths, not_paths;

    static std::vector<Role> default_left_out();
    /// A filter that keeps everything.
    static OpFilter all();
    /// From what was given to --only and --not: words apart by commas ("\\," is a comma), each a role's name, a path or
    /// glob, or "all" (every role). A path stands for what lies below it, too. `only`
    /// selects what has one of the roles or one of the paths, `leave` takes that from it. Without `only` the default
    /// holds, too. Throws Error (usage) where a word is empty,
    /// and where one without "/" and "*" is not a role.
    static OpFilter from_words(const std::vector<std::string>& only, const std::vector<std::string>& leave);

    /// File 0 (none) is kept.
    bool keeps_file(const Tables& tables, FileId file) const;
    /// By its file. A memfd has none: it is kept where ipc is and no path is asked for.
    bool keeps_handle(const Tables& tables, HandleId handle) const;
    /// By the files and instances the op itself names; all of them must be kept, but of a copy to a file
    /// (copies_to_file()) only that: what is written is part of the job, wherever it came from. Ops of trait `cause`
    /// (spawn, exec, exit, messages, ...) are kept whatever they name: tasks and descriptors depend on them. An op that
    /// names only a mapping or an asynchronous request is kept: use OpSelector, which knows what they belong to.
    bool keeps(const Tables& tables, const Op& op) const;

    /// One line of printable ASCII, e.g. "leave=program,system;only=/data/*": `parse` gives the same filter back.
    std::string to_string() const;
    /// Throws Error (bad_input).
    static OpFilter parse(std::string_view text);

    bool operator==(const OpFilter&) const = default;
};

/// Whether the op copies data inside the kernel to instance `to`, which is of a file.
inline bool copies_to_file(const Tables& tables, OpKind kind, HandleId to) {
    const bool copies = kind == OpKind::copy_file_range || kind == OpKind::sendfile || kind == OpKind::splice;
    return copies && to != 0 && to < tables.handles.size() && tables.handles[to].file != 0;
}

/// The words in what was given to --only or --not.
std::vector<std::string> split_words(const std::vector<std::string>& given);
/// Whether a file of the log has that role, or a path that the glob matches.
bool selects_any(const std::string& word, const Tables& tables);

/// A filter applied to one log: one decision per file, made once, and ops on mappings and requests decided by the mmap
/// or submission they come from. Replay, export and compare use it, so that they agree. The log outlives the selector.
class OpSelector {
public:
    /// Reads the mmap and submission ops of the log where the filter leaves out any of its files; else nothing.
    OpSelector(const LogReader& log, OpFilter filter);

    const OpFilter& filter() const { return filter_; }
    bool keeps_everything() const { return keeps_everything_; }
    bool keeps_file(FileId file) const { return file >= kept_.size() || kept_[file] != 0; }
    bool keeps(const Op& op) const;
    bool keeps_mapping(uint32_t map) const { return map >= map_dropped_.size() || !map_dropped_[map]; }
    /// Whether some request is of a file that is left out.
    bool drops_requests() const { return drops_requests_; }
    bool keeps_request(uint32_t request) const {
        return request >= request_dropped_.size() || !request_dropped_[request];
    }

    bool keeps_handle(HandleId handle) const;

private:
    void follow(const LogReader& log);

    const Tables* tables_;
    OpFilter filter_;
    bool keeps_everything_ = true;
    std::vector<uint8_t> kept_;          // per file
    bool keeps_memory_ = true;           // of memfds
    std::vector<bool> map_dropped_;      // per mapping; shorter: kept
    std::vector<bool> request_dropped_;  // per request; shorter: kept
    bool drops_requests_ = false;
};

}  // namespace reprise
