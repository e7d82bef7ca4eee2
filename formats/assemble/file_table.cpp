// SPDX-License-Identifier: MIT
#include "formats/assemble/file_table.h"

#include <algorithm>

#include "formats/support/path.h"

namespace reprise {
namespace {

// Files whose reads may be short before their end.
bool is_stream(std::string_view path) {
    return path.starts_with("/proc/") || path.starts_with("/sys/") ||
           (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"));
}

// The kernel moves at most this many bytes in one call (MAX_RW_COUNT).
constexpr int64_t kMostBytesOfACall = 0x7ffff000;

}  // namespace

FileTable::Slot& FileTable::slot(StringId path) {
    if (slots_.size() <= path) {
        slots_.resize(std::max<size_t>(path + 1, slots_.size() * 2));
    }
    return slots_[path];
}

FileState& FileTable::make(StringId path, Slot& at) {
    FileState& file = states_.emplace_back();
    file.path = path;
    file.generation = at.generations++;
    at.state = &file;
    return file;
}

FileState& FileTable::at(std::string_view path) {
    const StringId id = writer_.intern(path);
    Slot& here = slot(id);
    if (here.state && !here.state->gone) {
        return *here.state;
    }
    FileState& file = make(id, here);
    if (here.removed) {
        file.presence = FileState::Presence::absent;
    }
    return file;
}

FileId FileTable::id(FileState& file) {
    if (!file.id) {
        file.id = writer_.add_file(row_of(file));
        if (!own_.empty() && std::find(own_.begin(), own_.end(), writer_.tables().strings[file.path]) != own_.end()) {
            own_ids_.push_back(file.id);
        }
        if (file.moved_from) {
            id(*file.moved_from);
        }
    }
    return file.id;
}

std::string FileTable::path_of(const FileState& file) const { return std::string(writer_.tables().strings[file.path]); }

std::string FileTable::present_path_of(const FileState& file) const {
    const FileState* named = &file;
    while (named->gone && named->moved_to != nullptr) {
        named = named->moved_to;
    }
    return path_of(*named);
}

void FileTable::was_there(FileState& file) {
    const bool first_seen = file.presence == FileState::Presence::unknown;
    file.presence = FileState::Presence::present;
    if (file.created) {
        return;
    }
    const std::string path = path_of(file);
    if (parent_is_new(path)) {
        file.created = file.made_unseen = true;
        writer_.count(Count::files_made_unseen);
        return;
    }
    if (FileState* const before = first_seen && !file.gone ? from_moved_directory(path) : nullptr) {
        // It came along when its directory was renamed.
        file.created = true;
        file.moved_from = before;
        before->moved_to = &file;
        return;
    }
    file.existed = true;
}

FileState& FileTable::present(std::string_view path) {
    FileState& file = at(path);
    if (file.presence == FileState::Presence::absent) {
        writer_.count(Count::files_appeared_unseen);
    }
    if (file.presence != FileState::Presence::present) {
        was_there(file);
    }
    return file;
}

void FileTable::retire(StringId path) {
    Slot& at = slot(path);
    if (at.state) {
        at.state->gone = true;
        at.last_gone = at.state;
    }
    if (!at.state || at.state->type != FileType::regular) {
        forget_directories();
        told_links_.erase(std::string(writer_.tables().strings[path]));
    }
    at.state = nullptr;
    at.removed = true;
}

FileState& FileTable::absent(std::string_view path) {
    const StringId id = writer_.intern(path);
    Slot& here = slot(id);
    if (here.state && !here.state->gone && here.state->presence == FileState::Presence::present) {
        // A dangling link answers to lstat and not to stat.
        if (here.state->is_link) {
            return *here.state;
        }
        writer_.count(Count::files_vanished_unseen);
        retire(id);
    }
    FileState& file = at(path);
    file.presence = FileState::Presence::absent;
    return file;
}

bool FileTable::parent_is_new(std::string_view path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos || slash == 0) {
        return false;
    }
    const StringId id = writer_.intern(path.substr(0, slash));
    const FileState* parent = slot(id).state;
    while (parent && parent->moved_from) {
        parent = parent->moved_from;  // renamed since, itself or with one above
    }
    return parent && parent->created && parent->type == FileType::directory;
}

FileState& FileTable::opened_to_create(std::string_view path, std::optional<bool> created) {
    FileState* file = &at(path);
    if (created == false || (path.starts_with("/dev/") && !path.starts_with("/dev/shm/")) ||
        path.starts_with("/proc/")) {
        was_there(*file);
        return *file;
    }
    if (!created && file->presence == FileState::Presence::unknown && came_along(path)) {
        was_there(*file);
        return *file;
    }
    if (file->presence == FileState::Presence::present) {
        if (!created) {
            return *file;
        }
        retire(writer_.intern(path));  // removed by somebody else before it was made again
        file = &at(path);
    }
    file->creation_guessed = !created && file->presence == FileState::Presence::unknown && !parent_is_new(path);
    file->presence = FileState::Presence::present;
    file->created = true;
    file->current_size = 0;
    return *file;
}

FileState* FileTable::found_before_made(std::string_view path, uint64_t device, uint64_t inode,
                                        uint32_t inode_generation) {
    FileState* const file = slot(writer_.intern(path)).state;
    // Numbers of inodes are used again; only with their generation they tell one file.
    if (file == nullptr || file->gone || file->created || inode == 0 || inode_generation == 0 || file->inode != inode ||
        file->device != device || file->inode_generation != inode_generation) {
        return nullptr;
    }
    file->existed = false;
    file->created = true;
    return file;
}

FileState& FileTable::made(std::string_view path) { return opened_to_create(path, true); }

FileState& FileTable::removed(std::string_view path) {
    FileState& file = at(path);
    if (file.presence == FileState::Presence::absent && !file.existed && !file.created) {
        file.created = file.made_unseen = true;  // a socket by bind, a FIFO by mkfifo, or another process's file
        writer_.count(Count::files_appeared_unseen);
    } else if (file.presence != FileState::Presence::present) {
        was_there(file);
    }
    retire(writer_.intern(path));
    file.gone = true;
    return file;
}

FileState& FileTable::move(FileState& from, std::string_view to) {
    const StringId name = writer_.intern(to);
    retire(name);
    FileState& file = make(name, slot(name));
    file.presence = FileState::Presence::present;
    file.created = true;
    file.type = from.type;
    file.mode = from.mode;
    file.device = from.device;
    file.inode = from.inode;
    file.inode_generation = from.inode_generation;
    if (file.inode) {
        of_inode_[{file.device, file.inode}] = &file;
    }
    file.current_size = from.current_size;
    file.greatest = std::max(from.greatest, from.existed ? from.size : 0);
    file.written_end = from.written_end;
    file.is_link = from.is_link;
    file.target = from.target;
    file.written = from.written;
    file.read = from.read;
    file.synced = from.synced;
    file.bytes_written = from.bytes_written;
    file.moved_from = &from;
    from.moved_to = &file;
    if (file.target && file.is_link) {
        note_link(file);
    }
    return file;
}

// Whether another path is a hard link of the file.
bool FileTable::has_name(const FileState& file, std::string_view path) {
    const FileState* there = slot(writer_.intern(path)).state;
    if (!there || there == &file || there->gone || there->presence != FileState::Presence::present) {
        return false;
    }
    const FileState& other = *there;
    const auto first = [](const FileState* name) {
        while (name->moved_from != nullptr) {
            name = name->moved_from;
        }
        return name;
    };
    const bool same_inode = file.inode != 0 && file.inode == other.inode && file.device == other.device;
    return same_inode ? !is_another(file, other.device, other.inode, other.inode_generation)
                      : first(&file) == first(&other);
}

FileTable::Names FileTable::renamed(std::string_view from, std::string_view to, bool exchange) {
    FileState& source = present(from);
    // Of two names of one file the kernel takes away neither: as if they were the same name.
    if (from == to || has_name(source, to)) {
        return {source, source};
    }
    if (exchange) {
        FileState& other = present(to);
        const StringId name = source.path;
        move(source, to);
        source.gone = true;
        FileState& back = move(other, from);
        slot(name).state = &back;
        return {source, other};
    }
    retire(writer_.intern(from));
    FileState& target = move(source, to);
    source.gone = true;
    target.renamed_into = true;
    if (source.type == FileType::directory || source.type == FileType::unknown) {
        move_children(from, to);
    }
    return {source, target};
}

// Files below a renamed directory get new names, too.
void FileTable::move_children(std::string_view from, std::string_view to) {
    const std::string old_name(from), new_name(to);
    const size_t known = states_.size();
    for (size_t i = 0; i < known; ++i) {
        FileState& file = states_[i];
        if (file.gone) {
            continue;
        }
        const std::string_view path = writer_.tables().strings[file.path];
        if (!lies_below(path, old_name)) {
            continue;
        }
        const std::string name = new_name + std::string(path.substr(old_name.size()));
        retire(file.path);
        if (file.presence == FileState::Presence::present) {
            move(file, name);
        }
        file.gone = true;
    }
    moved_directories_.push_back({old_name, new_name});
}

// A file seen for the first time below a renamed directory existed before below the directory's first name.
FileState* FileTable::from_moved_directory(std::string_view path) {
    std::string first(path);
    for (auto it = moved_directories_.rbegin(); it != moved_directories_.rend(); ++it) {
        if (lies_below(first, it->to)) {
            first = it->from + first.substr(it->to.size());
        }
    }
    if (first == path) {
        return nullptr;
    }
    FileState& file = states_.emplace_back();
    file.path = writer_.intern(first);
    file.presence = FileState::Presence::present;
    file.existed = file.gone = true;
    return &file;
}

/// Whether a name that was not used yet may have been there before its directory was renamed.
bool FileTable::came_along(std::string_view path) {
    return !parent_is_new(path) && std::any_of(moved_directories_.begin(), moved_directories_.end(),
                                               [&](const auto& moved) { return lies_below(path, moved.to); });
}

FileTable::Names FileTable::linked(std::string_view from, std::string_view to) {
    FileState& source = present(from);
    if (source.type == FileType::directory) {  // which has no links: it is where O_TMPFILE made a file without a name
        FileState& target = made(to);
        target.type = FileType::regular;
        target.current_size = source.current_size;
        return {source, target};
    }
    return {source, move(source, to)};
}

void FileTable::alias(std::string_view other, FileState& file) {
    Slot& there = slot(writer_.intern(other));
    if (!there.state || (there.state->gone && there.state != &file)) {
        there.state = &file;
    }
}

FileState& FileTable::deleted(std::string_view path) {
    const StringId name = writer_.intern(path);
    Slot& here = slot(name);
    if (here.last_gone) {
        return *here.last_gone;
    }
    FileState& file = states_.emplace_back();
    file.path = name;
    file.generation = here.generations++;
    was_there(file);
    file.gone = true;
    here.last_gone = &file;
    return file;
}

FileState& FileTable::unnamed(std::string_view label) {
    FileState& file = at(label);
    was_there(file);
    return file;
}

// The name a renamed or linked file had at first sight, as long as it still has the size it had then.
FileState* FileTable::first_name(const FileState& file) {
    FileState* name = file.moved_from;
    if (!name || file.changed) {
        return nullptr;
    }
    while (name->moved_from && !name->changed) {
        name = name->moved_from;
    }
    return name->existed && !name->changed ? name : nullptr;
}

void FileTable::saw_attributes(FileState& file, std::optional<uint64_t> size, std::optional<uint32_t> stat_mode,
                               bool no_follow) {
    FileType type = file.type;
    if (stat_mode) {
        type = file_type_of_mode(*stat_mode);
        if (type == FileType::symlink && no_follow) {
            file.is_link = true;
            return;
        }
        file.type = type;
        if (file.mode == 0) {  // as it was at first: the job may change it
            file.mode = *stat_mode & 07777;
        }
    }
    file.followed = true;
    if (!size || (type != FileType::regular && type != FileType::unknown)) {
        return;
    }
    const uint64_t now = *size;
    if (FileState* first = first_name(file)) {
        saw_attributes(*first, size, std::nullopt, no_follow);
    }
    if (file.creation_guessed && !file.changed && now > file.written_end) {
        file.creation_guessed = file.created = false;
        file.existed = true;
    }
    if (file.size_source != FileState::SizeSource::stat && !file.created) {
        const bool ours_alone = file.changed && now <= file.written_end && file.appended == 0;
        if (!file.truncated && !ours_alone) {
            file.size = now - std::min(now, file.appended);
            file.size_source = FileState::SizeSource::stat;
        }
    }
    file.current_size = now;
    file.greatest = std::max(file.greatest, now);
}

void FileTable::saw_inode(FileState& file, uint64_t device, uint64_t inode, uint32_t inode_generation) {
    if (!inode) {
        return;
    }
    file.device = device;
    if (inode_generation || file.inode != inode) {
        file.inode_generation = inode_generation;
    }
    file.inode = inode;
    of_inode_[{device, inode}] = &file;
    // A rename looks at no inode.
    for (FileState* before = file.moved_from; before && before->inode == 0; before = before->moved_from) {
        before->device = device;
        before->inode = inode;
        before->inode_generation = inode_generation;
    }
}

bool FileTable::is_another(const FileState& file, uint64_t device, uint64_t inode, uint32_t inode_generation) {
    if (!inode || !file.inode) {
        return false;
    }
    // Generations are not told by everything that tells inodes; 0 is unknown.
    const bool reborn = file.inode_generation && inode_generation && file.inode_generation != inode_generation;
    return file.inode != inode || file.device != device || reborn;
}

FileState& FileTable::replaced(std::string_view path) {
    writer_.count(Count::files_replaced_unseen);
    retire(writer_.intern(path));
    slot(writer_.intern(path)).removed = false;
    FileState& file = at(path);
    was_there(file);
    return file;
}

FileState* FileTable::without_name(FileState& file) {
    const FileState* named = &file;
    while (named->gone && named->moved_to != nullptr) {
        named = named->moved_to;
    }
    if (const auto made = without_name_.find(&file); made != without_name_.end()) {
        return made->second;
    }
    if (!named->gone) {
        return nullptr;
    }
    FileState& nameless = states_.emplace_back();
    nameless.path = file.path;
    nameless.generation = slot(file.path).generations++;
    nameless.presence = FileState::Presence::present;
    nameless.existed = nameless.gone = true;
    nameless.type = file.type;
    nameless.mode = file.mode;
    nameless.device = file.device;
    nameless.inode = file.inode;
    nameless.inode_generation = file.inode_generation;
    nameless.current_size = named->current_size;
    nameless.size = nameless.greatest = named->current_size.value_or(0);
    without_name_[&file] = without_name_[&nameless] = &nameless;
    return &nameless;
}

FileState* FileTable::by_inode(uint64_t device, uint64_t inode, uint32_t inode_generation) {
    const auto it = of_inode_.find({device, inode});
    if (it == of_inode_.end() || is_another(*it->second, device, inode, inode_generation)) {
        return nullptr;
    }
    return it->second;
}

void FileTable::did_read(FileState& file, int64_t offset, int64_t asked, int64_t got, bool certain) {
    file.read = file.followed = true;
    if (got < 0 || offset < 0 || got > INT64_MAX - offset) {
        return;
    }
    if (FileState* first = first_name(file)) {
        did_read(*first, offset, asked, got, certain);
    }
    const uint64_t end = static_cast<uint64_t>(offset) + static_cast<uint64_t>(got);
    file.greatest = std::max(file.greatest, got > 0 ? end : 0);
    if (got > 0 && end > file.written_end) {
        if (file.creation_guessed && !file.truncated) {
            file.creation_guessed = file.created = false;
            file.existed = true;
        }
        if (file.size_source == FileState::SizeSource::furthest && !file.created) {
            file.size = std::max(file.size, end);
        }
    }
    if (got >= asked || asked > kMostBytesOfACall || file.changed || file.created || !certain) {
        return;
    }
    if (file.size_source != FileState::SizeSource::furthest || end != file.size) {
        return;
    }
    if (file.type != FileType::regular && file.type != FileType::unknown) {
        return;
    }
    if (is_stream(writer_.tables().strings[file.path])) {
        return;
    }
    file.size_source = FileState::SizeSource::end_of_file;
}

std::optional<int64_t> FileTable::end_of(const FileState& file) const {
    if (file.current_size) {
        return static_cast<int64_t>(std::min<uint64_t>(*file.current_size, INT64_MAX));
    }
    return std::nullopt;
}

void FileTable::did_write(FileState& file, int64_t offset, int64_t bytes, bool at_unknown_end) {
    file.written = file.followed = true;
    if (bytes <= 0 || offset < 0 || bytes > INT64_MAX - offset) {
        return;
    }
    const auto count = static_cast<uint64_t>(bytes);
    file.bytes_written += count;
    if (at_unknown_end) {
        file.appended += count;
        file.changed = true;
        return;
    }
    const uint64_t end = static_cast<uint64_t>(offset) + count;
    if (file.size_source == FileState::SizeSource::furthest || end > file.size) {
        file.changed = true;
    }
    file.written_end = std::max(file.written_end, end);
    for (FileState* name = file.moved_from; name; name = name->moved_from) {
        name->changed = true;
        name->written_end = std::max(name->written_end, end);
    }
    file.greatest = std::max(file.greatest, end);
    if (file.current_size) {
        file.current_size = std::max(*file.current_size, end);
    }
}

void FileTable::did_truncate(FileState& file, int64_t size) {
    if (size < 0) {
        return;
    }
    file.written = file.changed = file.truncated = true;
    for (FileState* name = file.moved_from; name; name = name->moved_from) {
        name->changed = true;
    }
    file.current_size = static_cast<uint64_t>(size);
    file.greatest = std::max(file.greatest, static_cast<uint64_t>(size));
}

void FileTable::did_map(FileState& file, int64_t offset, int64_t size) {
    file.read = file.followed = true;
    if (offset < 0 || size <= 0 || size > INT64_MAX - offset || file.created) {
        return;
    }
    if (file.size_source == FileState::SizeSource::furthest && !file.changed) {
        file.size = std::max(file.size, static_cast<uint64_t>(offset) + static_cast<uint64_t>(size));
    }
}

}  // namespace reprise
