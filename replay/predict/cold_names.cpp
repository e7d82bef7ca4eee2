// SPDX-License-Identifier: MIT
#include "replay/predict/cold_names.h"

#include <algorithm>
#include <set>

#include "replay/plan/file_systems.h"
#include "replay/plan/scatter.h"

namespace reprise {

namespace {

constexpr int64_t kBlock = 4096;
/// A few others among the files make no difference to what was measured of files side by side.
constexpr size_t kFew = 4;
/// Of a block of a directory that grew; beside a name in it.
constexpr uint64_t kFilled = kBlock * 3 / 4, kBesideName = 8;

std::string_view folder_of(std::string_view path) { return path.substr(0, std::min(path.rfind('/'), path.size())); }
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

ColdNames::Unit ColdNames::unit_of(std::string_view file_system) {
    if (file_system.starts_with("ext")) {
        return {.inodes = 512, .requests = 32, .bytes = kBlock};  // reads ahead, each block by itself
    }
    if (file_system == "xfs") {
        return {.inodes = 32, .requests = 1, .bytes = 4 * kBlock};  // a cluster
    }
    if (file_system == "btrfs") {
        return {.inodes = 64, .requests = 1, .bytes = 4 * kBlock};  // a leaf, about
    }
    return {};
}

ColdNames::ColdNames(const LogReader& log, std::string_view file_system) : unit_(unit_of(file_system)) {
    if (unit_.inodes == 0) {
        return;
    }
    const Tables& tables = log.tables();
    // Where a directory was listed, the listing says how many files there were, and has read their names.
    std::set<std::string_view> listed;
    for (const HandleRow& handle : tables.handles) {
        if (handle.kind == HandleKind::directory) {
            listed.insert(tables.path(handle.file));
        }
    }
    std::unordered_map<std::string_view, uint32_t> folders;
    std::vector<RecordedInode> inodes;
    for (FileId id = 1; id < tables.files.size(); ++id) {
        const FileRow& row = tables.files[id];
        if (row.inode != 0 && row.origin == Origin::existed && row.type == FileType::regular &&
            !listed.contains(folder_of(tables.path(id)))) {
            const auto folder =
                folders.try_emplace(folder_of(tables.path(id)), static_cast<uint32_t>(folders.size())).first->second;
            inodes.push_back({row.device, row.inode, folder, id});
        }
    }
    const RecordedFileSystems systems(log.header());
    for (const auto& [folder, scatter] :
         find_scatter(std::move(inodes), [&](uint64_t device) { return systems.type(device); })) {
        if (scatter.tells_count() && scatter.all_others >= scatter.entries.size() / kFew) {
            add(tables, scatter.entries, scatter.others, scatter.all_others);
        }
    }
}

void ColdNames::add(const Tables& tables, const std::vector<FileId>& files, const std::vector<uint64_t>& others,
                    uint64_t all) {
    const auto number = static_cast<uint32_t>(directories_.size());
    Directory& directory = directories_.emplace_back();
    directory.names = all + files.size();
    uint64_t lengths = 0, at = 0;
    for (size_t i = 0; i < files.size(); ++i, ++at) {
        lengths += name_of(tables.path(files[i])).size();
        at += others[i];
        places_.emplace(files[i], Place{number, at});
    }
    directory.blocks = directory.names * (lengths / files.size() + kBesideName) / kFilled + 1;
    directory.inodes_read.resize(directory.names / unit_.inodes + 1);
    directory.blocks_read.resize(directory.blocks);
}

std::optional<ColdNames::Requests> ColdNames::look(FileId file) {
    const auto found = places_.find(file);
    if (found == places_.end()) {
        return std::nullopt;
    }
    const Place place = found->second;
    Directory& directory = directories_[place.directory];
    Requests out{.bytes = unit_.bytes};
    // The order of names in a directory is that of a hash.
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    if (const uint64_t block = (file * kGolden >> 32) % directory.blocks; !directory.blocks_read[block]) {
        directory.blocks_read[block] = true;
        out.count = out.needed = 1;
    }
    if (const uint64_t unit = place.among / unit_.inodes; !directory.inodes_read[unit]) {
        directory.inodes_read[unit] = true;
        const auto of = [&](uint64_t inodes) { return static_cast<uint32_t>(inodes * unit_.requests / unit_.inodes); };
        const uint64_t there = std::min(unit_.inodes, directory.names - unit * unit_.inodes);
        out.needed += of(place.among % unit_.inodes) + 1;
        out.count += std::max(of(there - 1) + 1, out.needed - out.count);
    }
    return out;
}

}  // namespace reprise
