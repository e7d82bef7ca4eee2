// SPDX-License-Identifier: MIT
#include "replay/plan/shared_places.h"

#include <string>
#include <unordered_map>

#include "formats/support/error.h"

namespace reprise {
namespace {

bool takes_a_place(const FileRow& row) {
    const bool has_bytes = row.type == FileType::unknown && row.size > 0;  // so it is no directory
    const bool of_its_own =
        row.type == FileType::regular || row.type == FileType::symlink || row.type == FileType::fifo;
    return (of_its_own || has_bytes) && row.origin != Origin::absent;
}

bool same_file(const FileRow& a, const FileRow& b) {
    return a.inode != 0 && a.inode == b.inode && a.device == b.device;
}

}  // namespace

void refuse_shared_places(const Tables& tables, const OpFilter& filter, const PathMap& maps) {
    if (maps.rules().empty()) {
        return;
    }
    const PathMap no_rules;
    std::unordered_map<std::string, FileId> taken;
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const FileRow& row = tables.files[id];
        if (!takes_a_place(row) || !filter.keeps_file(tables, id)) {
            continue;
        }
        const auto place = maps.map(tables.path(id));
        if (!place) {
            continue;
        }
        const auto [first, fresh] = taken.try_emplace(*place, id);
        if (fresh || tables.path(first->second) == tables.path(id) || same_file(tables.files[first->second], row) ||
            no_rules.map(tables.path(first->second)) == no_rules.map(tables.path(id))) {
            continue;
        }
        throw usage_error(maps.to_options() + " would place two recorded files at " + escape_line(*place) + ": " +
                              escape_line(std::string(tables.path(first->second))) + " and " +
                              escape_line(std::string(tables.path(id))),
                          "give each a place of its own below the root");
    }
}

}  // namespace reprise
