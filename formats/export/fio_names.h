// SPDX-License-Identifier: MIT
// What files are called in an iolog of fio, which renames nothing: each has the name under which it lay first.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

class FioNames {
public:
    /// Reads `log`, and once more in the order of time where it renames or links; that outlives this.
    explicit FioNames(const LogReader& log);

    /// Of the file of an op, which has one: the same number for the same name.
    uint32_t of(const Op& op);
    /// Relative to the root.
    const std::string& text(uint32_t name) const { return names_[name].text; }

    /// Whether files had other names when they were opened.
    bool renames() const { return !at_first_.empty(); }
    /// Names that fio cannot read, with the paths that they stand for.
    const std::vector<std::pair<std::string, std::string>>& replaced() const { return replaced_; }
    /// Directories, relative to the root, of files that lie in one that the job made: fio makes none.
    std::set<std::string> missing() const;

private:
    struct Name {
        std::string path, text;
    };
    using Moved = std::map<std::string, std::string>;  // what has another name than at first: now, and at first

    uint32_t number_of(const std::string& path, FileId file);
    void see(const Op& op);
    std::string first_place(const std::string& path) const;
    void rename(const std::string& from, const std::string& to, bool exchange);
    Moved take(const std::string& from, const std::string& to);
    std::string path_of(FileId file) const;

    const Tables& tables_;
    Moved moved_;                                         // while the log is read
    std::unordered_map<HandleId, std::string> at_first_;  // of instances whose file had another name when it was opened
    std::set<std::string> made_;                          // directories, where they lay first
    std::unordered_map<StringId, uint32_t> by_path_;      // for speed
    std::unordered_map<std::string, uint32_t> known_;     // by path
    std::vector<Name> names_;
    std::vector<std::pair<std::string, std::string>> replaced_;
};

}  // namespace reprise
