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

std::string FileTable::behind_links(std::string path, bool follow) const {
    if (made_links_.empty()) {
        return path;
    }
    size_t from = 1;
    for (int links = 0; links < kMostLinks && from <= path.size();) {
        const size_t end = std::min(path.find('/', from), path.size());
        const auto found =
            end < path.size() || follow ? made_links_.find(std::string_view(path).substr(0, end)) : made_links_.end();
        if (found == made_links_.end() || found->second->gone) {
            from = end + 1;
            continue;
        }
        std::string target = resolved(directory_of(std::string_view(path).substr(0, end)),
                                      writer_.tables().strings[found->second->target], {});
        if (end < path.size()) {
            target = clean_path(target, std::string_view(path).substr(end + 1));
        }
        path = std::move(target);
        from = 1;
        ++links;
    }
    return path;
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
            for (std::string target; links > 0 && !(target = target_of(out, link_of)).empty();) {
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
std::string FileTable::target_of(const std::string& path, const LinkOf& link_of) const {
    for (const auto* links : {&made_links_, &seen_links_}) {
        if (const auto found = links->find(path); found != links->end() && !found->second->gone) {
            return std::string(writer_.tables().strings[found->second->target]);
        }
    }
    return link_of ? link_of(path) : std::string();
}

// Of a link whose target is known.
void FileTable::note_link(FileState& file) {
    (file.created ? made_links_ : seen_links_).insert_or_assign(path_of(file), &file);
}

void FileTable::saw_link(FileState& file, std::string_view target) {
    file.is_link = true;
    if (!target.empty()) {
        file.target = writer_.intern(target);
        note_link(file);
    }
}

}  // namespace reprise
