// SPDX-License-Identifier: MIT
#include "formats/oplog/recorded_links.h"

#include <algorithm>

#include "formats/support/path.h"

namespace reprise {

RecordedLinks::RecordedLinks(const Tables& tables) {
    for (const FileRow& row : tables.files) {
        const std::string_view path = tables.strings[row.path];
        if (row.type == FileType::symlink && row.origin == Origin::existed && row.target != 0 &&
            path.starts_with('/')) {
            targets_.emplace(path, clean_path(path.substr(0, path.rfind('/') + 1), tables.strings[row.target]));
        }
    }
}

std::string RecordedLinks::behind(std::string_view path) const {
    constexpr int kMostLinks = 40;  // as the kernel
    std::string out(path);
    size_t from = 1;
    for (int links = 0; !targets_.empty() && links < kMostLinks && from <= out.size();) {
        const size_t end = std::min(out.find('/', from), out.size());
        const auto found = targets_.find(std::string_view(out).substr(0, end));
        if (found == targets_.end()) {
            from = end + 1;
            continue;
        }
        out = end < out.size() ? clean_path(found->second, std::string_view(out).substr(end + 1)) : found->second;
        from = 1;
        ++links;
    }
    return out;
}

std::string RecordedLinks::behind_glob(std::string_view glob) const {
    const size_t wildcard = glob.find_first_of("*?[\\");
    if (wildcard == glob.npos) {
        return behind(glob);
    }
    const size_t slash = glob.rfind('/', wildcard);
    if (slash == 0 || slash == glob.npos) {
        return std::string(glob);
    }
    return behind(glob.substr(0, slash)) + std::string(glob.substr(slash));
}

}  // namespace reprise
