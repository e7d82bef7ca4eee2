// SPDX-License-Identifier: MIT
// The resource edges of a plan (DESIGN: replay causes, not timestamps, item 5) and the edges that a log carries.
//
// Every resource (a descriptor of a process, the position of an open instance, a mapping, a path, the content of a
// file) has three kinds of access. An exclusive access makes, moves or ends it and waits for all earlier accesses; a
// use waits for earlier exclusive accesses and for producers; a producer adds content and waits for exclusive accesses
// only. "Earlier" means: ended before this one began in the recording. Accesses that overlapped there stay free.
// A read waits for who wrote its bytes over, a look at attributes for who altered the file, a listing for the names
// that came and went in the directory.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/plan/plan.h"

namespace reprise {

/// What a first pass over the log finds out about who shares what. Fed block by block.
class SharingScan {
public:
    explicit SharingScan(const LogReader& log);
    /// Op `i` of a block, which the filter keeps.
    void see(const OpBlock& block, size_t i, ProcessId process);
    void see_edge_source(const Edge& edge) { edge_sources_.push_back({edge.task, edge.op}); }

    /// Files made by one process of which another has an instance that it never opened, and the processes that do.
    std::vector<PassedFile> passed_files() const;

    /// Once everything has been seen: true where some op may need an edge.
    bool finish();

private:
    /// By whom and when (ns) a process or an instance was made.
    struct Birth {
        ProcessId process = 0;
        int64_t time = 0;
    };
    bool inherits(ProcessId process, const Birth& open) const;
    void find_received();
    friend class EdgePass;
    struct Source {
        TaskId task;
        uint64_t op;
    };
    struct Owner {
        TaskId task = 0;
        ProcessId process = 0;
    };
    /// Renames and links give a content further names, each a file of its own.
    FileId content_of(FileId file) const {
        while (same_content_[file] != file) {
            file = same_content_[file];
        }
        return file;
    }
    enum Flag : uint8_t { kThreads = 1, kProcesses = 2, kSharedPosition = 4 };
    static void share(Owner& owner, uint8_t& flags, TaskId task, ProcessId process);
    void see_handle(HandleId handle, OpKind kind, TaskId task, ProcessId process, int64_t begin);
    void see_content(FileId file, TaskId task, bool altered);
    void see_names(const OpBlock& block, size_t i, OpKind kind);
    void see_listing(const OpBlock& block, size_t i);
    void find_listed(const std::unordered_map<std::string_view, StringId>& changed);

    const LogReader& log_;
    size_t tasks_ = 0;  // that have kept ops
    TaskId last_task_ = 0;
    std::vector<Owner> handle_owner_;
    std::vector<uint8_t> handle_flags_;
    std::vector<TaskId> position_task_;  // by handle: the one task that moved its position
    std::vector<Owner> map_owner_;
    std::vector<uint8_t> map_flags_;
    std::vector<uint8_t> locked_;         // by handle: 1 the log asks for a lock through it
    std::vector<TaskId> content_task_;    // by file: the one task that moved data of it
    std::vector<uint8_t> content_flags_;  // by file: 1 several tasks, 2 altered, 3 both
    std::vector<FileId> same_content_;    // by file: towards the one that stands for all names of its content
    std::vector<uint8_t> path_changed_;   // by StringId
    std::vector<uint8_t> file_by_path_;   // by file: 1 its path or a directory above is changed by the log
    std::vector<uint8_t> listed_;         // by StringId: a directory whose entries are read
    std::unordered_map<StringId, StringId> listed_in_;  // by changed path: the directory it is in, where that is listed
    std::vector<std::vector<StringId>> changed_above_;  // by file: those paths, its own included; filled by finish()
    std::vector<Source> edge_sources_;
    std::vector<ProcessId> maker_;  // by file: the process that opened it, while inherited instances name it
    std::vector<uint8_t> passed_;   // by file: 1 inherited instances name it, 2 and another process makes it
    std::vector<Birth> opened_;     // by handle
    std::vector<Birth> born_;       // by process: its parent
    std::set<std::pair<HandleId, ProcessId>> users_;      // others than who opened it
    std::vector<std::pair<FileId, ProcessId>> received_;  // by processes that did not inherit it
    bool any_path_changed_ = false, any_lock_ = false, any_listed_ = false;
};

/// Second pass: walks the ops that matter in the order of time and fills TaskPlan::waits and ::sources.
/// `spawn_refused` by task: set where a task began before the op that spawns it.
void add_edges(Plan& plan, const SharingScan& scan, const std::vector<SpawnSite>& sites,
               std::vector<uint8_t>& spawn_refused);

}  // namespace reprise
