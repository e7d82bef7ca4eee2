// SPDX-License-Identifier: MIT
#include "transform/shares.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

enum Use : uint8_t { kRead = 1, kMapped = 2, kWritten = 4 };
constexpr int64_t kPage = 4096;
// Files of less are read whole anyway.
constexpr uint64_t kLeastShifted = 64 * 1024;

std::string_view ending(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const size_t point = name.rfind('.');
    return point == name.npos ? std::string_view() : name.substr(point);
}

}  // namespace

Shares::Shares(const LogReader& log, uint32_t copies)
    : log_(log),
      tables_(log.tables()),
      copies_(copies),
      uses_(tables_.files.size()),
      owned_at_(tables_.files.size()),
      place_(tables_.files.size()) {
    scan();
    own_files();
    group_files();
}

FileId Shares::file_of(HandleId handle) const {
    return handle < tables_.handles.size() ? tables_.handles[handle].file : 0;
}

void Shares::write(FileId file) {
    if (file != 0 && file < uses_.size()) {
        uses_[file] |= kWritten;
        written_paths_.emplace(tables_.path(file));
    }
}

void Shares::scan() {
    OpBlock block;
    for (const BlockInfo& where : log_.blocks()) {
        log_.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            see(block, i);
        }
        log_.forget(where);
    }
    for (FileId file = 1; file < tables_.files.size(); ++file) {
        if (tables_.files[file].origin == Origin::created) {
            written_paths_.emplace(tables_.path(file));
        }
    }
}

void Shares::see(const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    map_limit_ = std::max(map_limit_, block.map[i] + 1);
    request_limit_ = std::max(request_limit_, block.request[i] + 1);
    const bool done = block.result[i] >= 0;
    const FileId file = file_of(block.handle[i]);
    const auto reads = [&](FileId of, uint8_t how) {
        if (of != 0 && of < uses_.size()) {
            uses_[of] |= how;
        }
    };
    if (kind == OpKind::mmap && file != 0) {
        maps_[block.map[i]] = file;
        reads(file, kMapped);
        if ((block.flags[i] & MAP_SHARED) != 0) {
            map_shared(block.map[i], file, (block.mode[i] & PROT_WRITE) != 0);
        }
        return;
    }
    if (kind == OpKind::mprotect && done && (block.mode[i] & PROT_WRITE) != 0) {
        made_writable_.insert(block.map[i]);
        if (read_only_maps_.contains(block.map[i])) {
            write(maps_[block.map[i]]);
        }
        return;
    }
    if (row.is(Trait::submits)) {
        if (async_request(block, i).alters()) {
            write(file);
        } else if (file != 0) {
            reads(file, kRead);
            requests_[block.request[i]] = {file, block.offset[i], block.size[i]};
        }
        return;
    }
    if (row.is(Trait::reads)) {
        reads(file, kRead);
    }
    if (!done) {
        return;
    }
    if (kind == OpKind::open) {
        if ((block.flags[i] & (O_CREAT | O_TRUNC)) != 0) {
            write(block.file[i]);
        }
        return;
    }
    if (row.is(Trait::attributes) || (!row.is(Trait::changes) && !row.is(Trait::destroys))) {
        return;
    }
    write(block.file[i]);
    write(block.file2[i]);
    write(row.has(Field::handle2) ? file_of(block.handle2[i]) : file);
}

void Shares::map_shared(uint32_t map, FileId file, bool writable) {
    if (writable || made_writable_.contains(map)) {  // by a task whose ops come first
        write(file);
    } else {
        read_only_maps_.insert(map);
    }
}

void Shares::own_files() {
    for (FileId file = 1; file < tables_.files.size(); ++file) {
        const std::string_view path = tables_.path(file);
        const FileType type = tables_.files[file].type;
        if (path.empty() || type == FileType::character || type == FileType::block) {
            continue;
        }
        // The topmost directory that the job makes takes all below it along.
        for (size_t from = path.front() == '/' ? 1 : 0; from < path.size();) {
            const size_t slash = std::min(path.find('/', from), path.size());
            if (written_paths_.contains(std::string(path.substr(0, slash)))) {
                owned_at_[file] = static_cast<uint32_t>(from) + 1;
                break;
            }
            from = slash + 1;
        }
        written_ += owned_at_[file] != 0 && tables_.files[file].origin == Origin::existed ? 1 : 0;
    }
}

void Shares::group_files() {
    std::map<std::string, std::vector<FileId>> groups;
    for (FileId file = 1; file < tables_.files.size(); ++file) {
        const FileRow& row = tables_.files[file];
        const bool plain = row.type == FileType::regular || row.type == FileType::unknown;
        if (row.role != Role::dataset || !plain || row.origin != Origin::existed || row.size == 0 || own(file) ||
            (uses_[file] & (kRead | kMapped)) == 0) {
            continue;
        }
        const bool mapped = (uses_[file] & kMapped) != 0;
        const auto step = static_cast<int64_t>(std::log(static_cast<double>(row.size)) / std::log(1.1));
        groups[std::string(ending(tables_.path(file))) + (mapped ? "=" : "~") +
               std::to_string(mapped ? static_cast<int64_t>(row.size) : step)]
            .push_back(file);
    }
    for (auto& [key, files] : groups) {
        const bool enough = files.size() >= copies_;
        const auto end = std::partition(files.begin(), files.end(), [&](FileId file) {
            return enough || tables_.files[file].size >= kLeastShifted;
        });
        shared_ += static_cast<uint64_t>(files.end() - end);
        files.erase(end, files.end());
        if (files.empty()) {
            continue;
        }
        std::sort(files.begin(), files.end());
        (enough ? rotated_ : shifted_) += files.size();
        for (size_t i = 0; i < files.size(); ++i) {
            place_[files[i]] = {static_cast<uint32_t>(groups_.size()), static_cast<uint32_t>(i)};
        }
        groups_.push_back(std::move(files));
    }
}

std::string Shares::own_path(FileId file, uint32_t copy) const {
    std::string path(tables_.path(file));
    return path.insert(owned_at_[file] - 1, "gpu" + std::to_string(copy) + ".");
}

FileId Shares::rotated(FileId file, uint32_t copy) const {
    if (!moves(file) || shifts(file)) {
        return file;
    }
    const auto& group = groups_[place_[file].group];
    return group[(place_[file].index + group.size() * copy / copies_) % group.size()];
}

int64_t Shares::offset(FileId file, uint32_t copy, int64_t offset, int64_t size) const {
    if (!shifts(file)) {
        return offset;
    }
    const auto end = static_cast<int64_t>(std::min<uint64_t>(tables_.files[file].size, INT64_MAX / 2));
    if (offset < 0 || size < 0 || offset >= end) {
        return offset;
    }
    const auto by = static_cast<int64_t>(static_cast<double>(end) * copy / copies_);
    const int64_t whole = end / kPage * kPage;
    int64_t moved = offset + by / kPage * kPage;
    if (moved >= whole) {
        moved -= whole;
    }
    // What does not fit before the end of the file moves in front of it.
    return size <= end - moved ? moved : std::max<int64_t>((end - std::min(size, end)) / kPage * kPage, 0);
}

int64_t Shares::bytes(FileId file, uint32_t copy, int64_t offset, int64_t size) const {
    const FileId there = rotated(file, copy);
    const auto end = static_cast<int64_t>(std::min<uint64_t>(tables_.files[there].size, INT64_MAX));
    return std::clamp<int64_t>(end - std::max<int64_t>(offset, 0), 0, std::max<int64_t>(size, 0));
}

FileId Shares::file_of_map(uint32_t map) const {
    const auto found = maps_.find(map);
    return found == maps_.end() ? 0 : found->second;
}

const Shares::Request* Shares::request(uint32_t request) const {
    const auto found = requests_.find(request);
    return found == requests_.end() ? nullptr : &found->second;
}

}  // namespace reprise
