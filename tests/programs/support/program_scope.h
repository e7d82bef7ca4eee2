// SPDX-License-Identifier: MIT
// Which ops of a log belong to what a program did below its root. Shared by check_program and same_ops.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise::test {

class ProgramScope {
public:
    // `kinds`: names of kinds that belong wherever they occur; "memfd": what is done with anonymous memory.
    ProgramScope(const LogReader& log, std::string root, std::set<std::string> kinds);
    bool has(const Op& op) const;
    bool file_inside(FileId file) const;
    // The file behind a mapping; 0: none.
    FileId file_of_map(uint32_t map) const { return map < file_of_map_.size() ? file_of_map_[map] : 0; }

private:
    bool handle_inside(HandleId handle) const;

    const Tables& tables_;
    std::string root_;
    std::set<std::string> kinds_;
    std::vector<FileId> file_of_map_;
};

// One line: the kind and its fields, paths without the root.
std::string op_text(const Tables& tables, const Op& op, const std::string& root);

}  // namespace reprise::test
