// SPDX-License-Identifier: MIT
// The tables of several logs as one: whose rows become which.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Where the rows of one log are in the merged one. Row 0 of each is 0, as is any row that is not in the table.
struct MergedRows {
    std::vector<StringId> strings;
    std::vector<FileId> files;
    uint32_t handles = 0, processes = 0, tasks = 0;  // added to ids
    uint32_t maps = 0, requests = 0;
    size_t handle_rows = 0, process_rows = 0, task_rows = 0;

    FileId file(FileId id) const { return id < files.size() ? files[id] : 0; }
    StringId text(StringId id) const { return id < strings.size() ? strings[id] : 0; }
    HandleId handle(HandleId id) const { return id != 0 && id < handle_rows ? id + handles : 0; }
    ProcessId process(ProcessId id) const { return id != 0 && id < process_rows ? id + processes : 0; }
    TaskId task(TaskId id) const { return id != 0 && id < task_rows ? id + tasks : 0; }
    uint32_t map(uint32_t id) const { return id == 0 ? 0 : id + maps; }
    uint32_t request(uint32_t id) const { return id == 0 ? 0 : id + requests; }

    /// Renumbers an op and its edges; `edges` holds them.
    void change(Op& op, std::vector<Edge>& edges) const;
};

/// Adds the rows of one log after the other. A file that several logs know is one row: of one machine the same device,
/// inode and generation; of several, as they may share storage, the same path and inode. A row that knows no inode is
/// the file of its path.
class MergeTables {
public:
    explicit MergeTables(LogWriter& writer) : writer_(writer) {}
    /// `machine`: logs of equal numbers saw the same devices. `maps`, `requests`: the greatest numbers of its ops.
    MergedRows add(const LogReader& log, size_t machine, uint32_t maps, uint32_t requests);
    uint64_t shared_files() const;
    /// Reads whose writer none of the logs had recorded, which are not counted yet.
    uint64_t messages_unmatched() const { return unmatched_; }

private:
    struct Known {
        FileId file = 0;
        size_t machine = 0;
        size_t log = 0;  // that had it last
    };
    FileId add_file(const FileRow& row, size_t machine, std::string_view path);
    Known* find(const FileRow& row, size_t machine, std::string_view path);
    void join(Known& known, const FileRow& row);

    LogWriter& writer_;
    size_t log_ = 0;  // that is being added, from 1
    uint32_t maps_ = 0, requests_ = 0;
    uint64_t unmatched_ = 0;
    std::map<StringId, std::vector<Known>> by_path_;
    std::vector<bool> shared_{false};
};

}  // namespace reprise
