// SPDX-License-Identifier: MIT
// What can be said of a recording's files only at its end: links, origins, sizes and roles.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "formats/assemble/file_table.h"
#include "formats/assemble/roles.h"
#include "formats/support/path.h"

namespace reprise {
namespace {

std::string_view parent_of(std::string_view path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos || path == "/") {
        return {};
    }
    return slash == 0 ? std::string_view("/") : path.substr(0, slash);
}

}  // namespace

FileRow FileTable::row_of(const FileState& file) const {
    FileRow row;
    row.path = file.path;
    row.device = file.device;
    row.inode = file.inode;
    row.generation = file.generation;
    row.type = file.type;
    row.mode = file.mode;
    if (file.existed) {
        row.origin = Origin::existed;
        if (file.type == FileType::regular || file.type == FileType::unknown) {
            row.size = file.size;
            row.size_exact = file.size_source != FileState::SizeSource::furthest;
        }
    } else if (file.created) {
        row.origin = Origin::created;
        // Nothing was there at first sight; the size it grew to is worth knowing.
        if (file.type != FileType::directory) {
            row.size = std::max(file.greatest, file.written_end);
        }
    } else if (file.presence == FileState::Presence::absent) {
        row.origin = Origin::absent;
    }
    // Nothing but a socket gets its name by a call that importers leave out.
    if (file.made_unseen && row.type == FileType::unknown && !file.read && !file.written) {
        row.type = FileType::socket;
    }
    if (file.is_link && (file.target || !file.followed)) {
        row.type = FileType::symlink;
        row.target = file.target;
        row.size = file.target ? 0 : file.target_bytes;
        row.size_exact = false;
    }
    return row;
}

// Of all that an op refers to: the directories above it.
std::unordered_set<std::string_view> FileTable::parents() const {
    std::unordered_set<std::string_view> parents;
    const StringTable& strings = writer_.tables().strings;
    for (const FileState& file : states_) {
        for (std::string_view p = file.id ? parent_of(strings[file.path]) : ""; !p.empty(); p = parent_of(p)) {
            if (!parents.insert(p).second) {
                break;
            }
        }
    }
    return parents;
}

// What was learnt of a file through a symbolic link belongs to the link's target.
void FileTable::settle_links() {
    const std::unordered_set<std::string_view> parents = this->parents();
    std::unordered_set<StringId> made_directories;
    const StringTable& strings = writer_.tables().strings;
    for (const FileState& file : states_) {
        if (file.created && file.type == FileType::directory) {
            made_directories.insert(file.path);
        }
    }

    const size_t known = states_.size();
    for (size_t i = 0; i < known; ++i) {
        FileState& link = states_[i];
        if (!link.id || !link.is_link || !link.target) {
            continue;
        }
        const std::string path(strings[link.path]);
        if (parents.contains(strings[link.path]) && !made_directories.contains(link.path)) {
            // Files were used by paths that lead through it: here it stands for a directory.
            link.is_link = false;
            link.type = FileType::directory;
            continue;
        }
        if (!link.existed || !link.followed) {
            continue;
        }
        FileState& file = at(clean_path(parent_of(path), strings[link.target]));
        if (&file == &link || file.presence == FileState::Presence::absent) {
            continue;
        }
        was_there(file);
        if (file.type == FileType::unknown) {
            file.type = link.type;
        }
        if (!file.mode) {
            file.mode = link.mode;
        }
        if (file.size_source < link.size_source || (file.size_source == link.size_source && file.size < link.size)) {
            file.size = link.size;
            file.size_source = link.size_source;
        }
        file.read |= link.read;
        file.written |= link.written;
        id(file);
    }
}

std::vector<std::string_view> FileTable::all_paths() const {
    std::vector<std::string_view> paths;
    for (const FileState& file : states_) {
        if (file.id) {
            paths.push_back(writer_.tables().strings[file.path]);
        }
    }
    return paths;
}

void FileTable::settle_roles(const RoleOverrides* overrides) {
    const StringTable& strings = writer_.tables().strings;
    if (overrides && overrides->matches_required()) {
        overrides->check_matches(all_paths());
    }
    if (overrides) {
        const auto [unmatched, first] = overrides->unmatched(all_paths());
        writer_.count(Count::roles_unmatched, unmatched, first);
    }
    std::unordered_map<FileId, Role> roles;
    std::unordered_set<std::string_view> with_data;  // directories that hold files of the dataset
    std::unordered_set<std::string_view> with_more;  // that hold files which are neither programs nor the system's
    const auto note_parents = [](std::unordered_set<std::string_view>& parents, std::string_view path) {
        for (std::string_view p = parent_of(path); !p.empty() && parents.insert(p).second; p = parent_of(p)) {
        }
    };
    std::unordered_set<std::string_view> own_repositories;
    for (const FileState& file : states_) {
        const std::string_view repository = file.id && file.written ? repository_of(strings[file.path]) : "";
        if (!repository.empty()) {
            own_repositories.insert(repository);
        }
    }
    const auto facts_of = [&](const FileState& file) {
        RoleFacts facts;
        facts.path = strings[file.path];
        facts.own_repository = !own_repositories.empty() && own_repositories.contains(repository_of(facts.path));
        facts.type = row_of(file).type;
        facts.written = file.written || (file.created && !file.moved_from);
        facts.read = file.read;
        facts.renamed_into = file.renamed_into;
        facts.synced = file.synced;
        facts.bytes_written = file.bytes_written;
        return facts;
    };
    for (const FileState& file : states_) {
        if (!file.id) {
            continue;
        }
        Role role = is_own(file.id) ? Role::system : classify(facts_of(file));
        if (const auto wanted = overrides ? overrides->role_of(strings[file.path]) : std::nullopt) {
            role = *wanted;
        }
        roles[file.id] = role;
        if (role == Role::dataset) {
            note_parents(with_data, strings[file.path]);
        }
        if (role != Role::program && role != Role::system && (file.created || file.existed)) {
            note_parents(with_more, strings[file.path]);
        }
    }
    // A file is one thing under all its names: what is data by one of them is data by the others, or a rename between
    // them would be left out.
    const auto is_program = [](Role role) { return role == Role::program || role == Role::system; };
    const auto first_of = [](const FileState& file) {
        const FileState* first = &file;
        while (first->moved_from) {
            first = first->moved_from;
        }
        return first;
    };
    std::unordered_map<const FileState*, Role> data_by_a_name;
    for (const FileState& file : states_) {
        if (file.id && (file.moved_from || file.moved_to) && !is_program(roles[file.id])) {
            data_by_a_name.try_emplace(first_of(file), roles[file.id]);
        }
    }
    for (const FileState& file : states_) {
        if (!file.id) {
            continue;
        }
        FileRow row = row_of(file);
        row.role = roles[file.id];
        if (is_program(row.role) && !data_by_a_name.empty()) {
            if (const auto data = data_by_a_name.find(first_of(file)); data != data_by_a_name.end()) {
                row.role = data->second;
            }
        }
        // A checkpoint is one also under the name it was written by.
        for (const FileState* next = file.moved_to; next && file.written; next = next->moved_to) {
            if (next->id && roles[next->id] == Role::checkpoint) {
                row.role = Role::checkpoint;
            }
        }
        // What the job made below it could not be made where this is left out.
        if (row.type == FileType::directory && row.origin == Origin::created && row.role == Role::program &&
            with_more.contains(strings[file.path])) {
            row.role = Role::unknown;
        }
        if (row.type == FileType::directory && row.role == Role::unknown && with_data.contains(strings[file.path])) {
            row.role = Role::dataset;
        }
        if (const auto wanted = overrides ? overrides->role_of(strings[file.path]) : std::nullopt) {
            row.role = *wanted;
        }
        writer_.update_file(file.id, row);
    }
}

// Of a file that was only renamed, or only met in passing, the calls tell nothing. What lies above others is a
// directory anyway, and is made where they are.
void FileTable::find_unknown(const FindAtEnd& find) {
    const std::unordered_set<std::string_view> above = parents();
    const size_t known = states_.size();
    for (size_t i = 0; i < known; ++i) {
        FileState& file = states_[i];
        if (!file.id || !file.existed || file.type != FileType::unknown || file.is_link || file.read) {
            continue;
        }
        if (!file.moved_to && above.contains(writer_.tables().strings[file.path])) {
            continue;
        }
        FileState* last = &file;
        bool changed = file.changed || file.written || file.truncated;
        while (last->moved_to && last->moved_to != &file) {
            last = last->moved_to;
            changed = changed || last->changed || last->written || last->truncated;
        }
        const std::optional<FoundAtEnd> found = last->gone ? std::nullopt : find(path_of(*last));
        const FileType type = found ? file_type_of_mode(found->mode) : FileType::unknown;
        if (type == FileType::symlink) {
            saw_link(file, found->target);
            continue;
        }
        if (type != FileType::regular && type != FileType::directory) {
            continue;
        }
        for (FileState* name = &file; name; name = name == last ? nullptr : name->moved_to) {
            name->type = name->type == FileType::unknown ? type : name->type;
        }
        if (type == FileType::regular && !changed && file.size_source == FileState::SizeSource::furthest) {
            file.size = found->size;
            file.size_source = FileState::SizeSource::stat;
        }
    }
}

void FileTable::finish(const RoleOverrides* roles, const FindAtEnd& find) {
    keep_followed_links();
    if (find) {
        find_unknown(find);
    }
    settle_links();
    settle_roles(roles);
    uint64_t guessed = 0, inexact = 0;
    for (const FileState& file : states_) {
        if (!file.id) {
            continue;
        }
        guessed += file.creation_guessed;
        const FileRow row = row_of(file);
        const bool sized = row.type == FileType::regular || row.type == FileType::unknown;
        inexact += row.origin == Origin::existed && sized && !row.size_exact;
    }
    if (guessed) {
        writer_.count(Count::creations_guessed, guessed);
    }
    if (inexact) {
        writer_.count(Count::sizes_inexact, inexact);
    }
}

}  // namespace reprise
