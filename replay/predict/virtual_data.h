// SPDX-License-Identifier: MIT
// Which rows of a log's files are one file's data: what is cached by one name is cached by the others.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/tables.h"

namespace reprise {

/// A row is one name in one generation, so that a renamed file has a row for each of its names. Names that one inode
/// had before the recording are one file from the start, others from the call on that gave the name.
class VirtualData {
public:
    explicit VirtualData(const Tables& tables);

    /// The row that stands for the data of `row`.
    FileId of(FileId row) const { return row < data_.size() ? data_[row] : row; }
    /// Also what lies below it, where the log has inodes.
    void renamed(FileId from, FileId to);
    void linked(FileId from, FileId to);
    /// The row that had the name of `to` before; `to` where none did.
    FileId before(FileId to);
    /// True where that was the only name that the data had.
    bool removed(FileId row);

private:
    using Rows = std::vector<FileId>;
    void name(FileId from, FileId to);
    const Rows& by_path();
    std::pair<Rows::const_iterator, Rows::const_iterator> below(FileId directory);

    const Tables& tables_;
    Rows data_;
    Rows by_path_;                                     // made when first needed
    std::unordered_map<FileId, uint32_t> more_names_;  // that data has, beside one
};

}  // namespace reprise
