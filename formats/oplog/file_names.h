// SPDX-License-Identifier: MIT
// Files that have several names (hard links) are several rows of the file table.
#pragma once

#include <functional>

#include "formats/oplog/tables.h"

namespace reprise {

/// Of the files that `wanted` takes, calls visit(first, further) for each whose inode one before it has, in the order
/// of their rows. Rows without an inode have one name.
void each_further_name(const Tables& tables, const std::function<bool(FileId)>& wanted,
                       const std::function<void(FileId first, FileId further)>& visit);

}  // namespace reprise
