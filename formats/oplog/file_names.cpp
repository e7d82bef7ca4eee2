// SPDX-License-Identifier: MIT
#include "formats/oplog/file_names.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace reprise {

void each_further_name(const Tables& tables, const std::function<bool(FileId)>& wanted,
                       const std::function<void(FileId first, FileId further)>& visit) {
    // Sorted numbers rather than a table by inode, which takes twenty times as much of a million files.
    std::vector<FileId> named;
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (tables.files[file].inode != 0 && wanted(file)) {
            named.push_back(file);
        }
    }
    const auto inode = [&](FileId file) { return std::pair(tables.files[file].device, tables.files[file].inode); };
    std::sort(named.begin(), named.end(),
              [&](FileId a, FileId b) { return std::pair(inode(a), a) < std::pair(inode(b), b); });
    std::vector<std::pair<FileId, FileId>> further;  // and the first
    for (size_t first = 0, i = 1; i < named.size(); ++i) {
        if (inode(named[i]) == inode(named[first])) {
            further.emplace_back(named[i], named[first]);
        } else {
            first = i;
        }
    }
    std::sort(further.begin(), further.end());
    for (const auto& [file, first] : further) {
        visit(first, file);
    }
}

}  // namespace reprise
