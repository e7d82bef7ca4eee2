// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_data.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace reprise {

VirtualData::VirtualData(const Tables& tables) : tables_(tables), data_(tables.files.size()) {
    std::iota(data_.begin(), data_.end(), FileId{0});
    std::map<std::pair<uint64_t, uint64_t>, FileId> first;
    for (FileId i = 0; i < data_.size(); ++i) {
        const FileRow& row = tables.files[i];
        if (row.inode != 0 && row.origin == Origin::existed) {  // inodes of removed files are used again
            data_[i] = first.try_emplace({row.device, row.inode}, i).first->second;
        }
    }
}

void VirtualData::name(FileId from, FileId to) {
    if (to < data_.size()) {
        data_[to] = of(from);
    }
}

const VirtualData::Rows& VirtualData::by_path() {
    if (by_path_.empty()) {
        by_path_.resize(data_.size());
        std::iota(by_path_.begin(), by_path_.end(), FileId{0});
        std::sort(by_path_.begin(), by_path_.end(),
                  [&](FileId a, FileId b) { return std::pair(tables_.path(a), a) < std::pair(tables_.path(b), b); });
    }
    return by_path_;
}

FileId VirtualData::before(FileId to) {
    const Rows& rows = by_path();
    const auto before = [&](FileId a, FileId b) {
        return std::pair(tables_.path(a), a) < std::pair(tables_.path(b), b);
    };
    const auto found = std::lower_bound(rows.begin(), rows.end(), to, before);
    const bool any = to < data_.size() && found != rows.begin();
    return any && tables_.path(*std::prev(found)) == tables_.path(to) ? *std::prev(found) : to;
}

std::pair<VirtualData::Rows::const_iterator, VirtualData::Rows::const_iterator> VirtualData::below(FileId directory) {
    const Rows& rows = by_path();
    const auto before = [&](FileId row, const std::string& path) { return tables_.path(row) < path; };
    const std::string path(tables_.path(directory));
    return {std::lower_bound(rows.begin(), rows.end(), path + "/", before),
            std::lower_bound(rows.begin(), rows.end(), path + "0", before)};  // '0' follows '/'
}

void VirtualData::renamed(FileId from, FileId to) {
    name(from, to);
    if (from >= data_.size() || to >= data_.size() || tables_.files[from].type != FileType::directory) {
        return;
    }
    std::map<std::pair<uint64_t, uint64_t>, FileId> moved;  // the latest row of each inode
    const auto [old_begin, old_end] = below(from);
    for (auto at = old_begin; at != old_end; ++at) {
        const FileRow& row = tables_.files[*at];
        if (row.inode != 0) {
            FileId& latest = moved[{row.device, row.inode}];
            latest = std::max(latest, *at);
        }
    }
    const auto [new_begin, new_end] = below(to);
    for (auto at = new_begin; at != new_end && !moved.empty(); ++at) {
        const FileRow& row = tables_.files[*at];
        const auto found = moved.find({row.device, row.inode});
        if (found != moved.end() && found->second < *at) {
            name(found->second, *at);
        }
    }
}

void VirtualData::linked(FileId from, FileId to) {
    name(from, to);
    ++more_names_[of(from)];
}

bool VirtualData::removed(FileId row) {
    const auto more = more_names_.find(of(row));
    if (more == more_names_.end()) {
        return true;
    }
    if (--more->second == 0) {
        more_names_.erase(more);
    }
    return false;
}

}  // namespace reprise
