// SPDX-License-Identifier: MIT
// Symbolic links of a recording: where paths lead through them.
#include <algorithm>

#include "formats/assemble/file_table.h"
#include "formats/support/path.h"

namespace reprise {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

std::string_view directory_of(std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == 0 ? std::string_view("/") : path.substr(0, slash);
}

}  // namespace

// Whether a call of the recording decided what is at a path now, other than by finding it there.
bool FileTable::made_or_removed(std::string_view path) {
    const Slot& here = slot(writer_.intern(path));
    if (!here.state) {
        return here.removed;
    }
    const bool by_a_call = here.state->created && !here.state->made_unseen;
    return by_a_call && (!here.state->moved_from || here.state->type == FileType::directory);
}

std::string FileTable::behind_links(std::string_view path, LastPart last, const LinkOf& link_of) {
    int links = kMostLinks;
    bool sure = true;
    return behind_links(path, last, link_of, links, sure);
}

// `sure`: becomes false where it is not known what a part is.
std::string FileTable::behind_links(std::string_view path, LastPart last, const LinkOf& link_of, int& links,
                                    bool& sure) {
    if (path.size() <= 1) {
        return std::string(path);
    }
    if (last == LastPart::directory) {
        if (const auto known = real_directories_.find(std::string(path)); known != real_directories_.end()) {
            return known->second;
        }
    }
    const std::string_view above = directory_of(path);
    bool all_known = true;
    const std::string directory = behind_links(above, LastPart::directory, link_of, links, all_known);
    std::string out = clean_path(directory, path.substr(path.rfind('/') + 1));
    if (last != LastPart::itself && links > 0) {
        const auto made = made_links_.find(out);
        std::string target;
        if (const auto there = bound_.find(out); there != bound_.end()) {
            target = there->second;
        } else if (made != made_links_.end() && !made->second->gone) {
            target = writer_.tables().strings[made->second->target];
        } else if (last == LastPart::directory) {
            const std::optional<std::string> before = target_of(out, link_of);
            if (before != "" && !made_or_removed(out)) {
                all_known = all_known && before;
                target = before.value_or("");
                if (!target.empty()) {
                    followed_links_.try_emplace(out, target);
                }
            }
        }
        if (!target.empty()) {
            --links;
            out = behind_links(resolved(directory, target, link_of), last, link_of, links, all_known);
        }
    }
    if (last == LastPart::directory && all_known) {
        real_directories_.emplace(path, out);
    }
    sure = sure && all_known;
    return out;
}

std::string FileTable::resolved(std::string_view directory, std::string_view path, const LinkOf& link_of) const {
    int links = kMostLinks;
    return resolved(directory, path, link_of, links);
}

std::string FileTable::resolved(std::string_view directory, std::string_view path, const LinkOf& link_of,
                                int& links) const {
    if (path.find("..") == path.npos) {
        return clean_path(directory, path);
    }
    std::string out = clean_path(path.starts_with('/') ? "/" : directory, "");
    for (std::string_view rest = path; !rest.empty();) {
        const std::string_view part = rest.substr(0, rest.find('/'));
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        if (part == "..") {
            // The directory above what the link leads to, not the one that holds the link.
            for (std::string target; links > 0 && !(target = target_of(out, link_of).value_or("")).empty();) {
                --links;
                out = resolved(directory_of(out), target, link_of, links);
            }
            out = directory_of(out);
        } else if (!part.empty() && part != ".") {
            out += (out.size() > 1 ? "/" : "") + std::string(part);
        }
    }
    return out;
}

// What the link at a clean path holds now; empty: it is none, as far as is known.
std::optional<std::string> FileTable::target_of(const std::string& path, const LinkOf& link_of) const {
    for (const auto* links : {&made_links_, &seen_links_}) {
        if (const auto found = links->find(path); found != links->end() && !found->second->gone) {
            return std::string(writer_.tables().strings[found->second->target]);
        }
    }
    if (const auto told = told_links_.find(path); told != told_links_.end()) {
        return told->second;
    }
    return link_of ? link_of(path) : std::string();
}

// A user knows files by the paths that the job was given.
void FileTable::keep_followed_links() {
    for (const auto& [path, target] : followed_links_) {
        Slot& here = slot(writer_.intern(path));
        if (here.generations != 0) {
            continue;  // the job's calls told what it is
        }
        FileState& link = at(path);
        was_there(link);
        saw_link(link, target);
        id(link);
    }
}

void FileTable::bound(std::string_view target, std::string_view source) {
    bound_.insert_or_assign(std::string(target), std::string(source));
    FileState& place = present(target);
    if (place.type == FileType::unknown) {
        place.type = at(source).type == FileType::unknown ? FileType::directory : at(source).type;
    }
    forget_directories();
}

void FileTable::unbound(std::string_view target) {
    if (bound_.erase(std::string(target)) != 0) {
        forget_directories();
    }
}

void FileTable::saw_directory_link(std::string_view link, std::string_view target) {
    if (told_links_.insert_or_assign(std::string(link), std::string(target)).second) {
        forget_directories();
    }
}

// Of a link whose target is known.
void FileTable::note_link(FileState& file) {
    (file.created ? made_links_ : seen_links_).insert_or_assign(path_of(file), &file);
    forget_directories();
}

void FileTable::saw_link(FileState& file, std::string_view target) {
    file.is_link = true;
    if (!target.empty()) {
        file.target = writer_.intern(target);
        note_link(file);
    }
}

}  // namespace reprise
