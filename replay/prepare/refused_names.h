// SPDX-License-Identifier: MIT
// What lay at both names of renames and links that failed, where the error says it.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/prepare/facts.h"

namespace reprise {

class RefusedNames {
public:
    /// `files`: by FileId, which this adds to.
    RefusedNames(const Tables& tables, std::vector<FileFacts>& files) : tables_(tables), files_(files) {}

    /// A rename or link whose result is an error. Of ENOENT and ELOOP, nobody knows of which name it tells.
    void add(const Op& op);
    /// What can be told once all ops were seen.
    void finish();

private:
    bool known(FileId id) const { return id != 0 && id < files_.size(); }
    bool is_no_directory(FileId id) const;
    /// Whether a part of the path before its end was no directory.
    bool is_blocked(FileId id, const std::unordered_set<std::string_view>& no_directories) const;

    const Tables& tables_;
    std::vector<FileFacts>& files_;
    std::vector<RenameFact> no_directory_;  // failed with ENOTDIR
};

}  // namespace reprise
