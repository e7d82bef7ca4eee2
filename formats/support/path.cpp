// SPDX-License-Identifier: MIT
// Cleaning paths, component by component.
#include "formats/support/path.h"

#include <algorithm>

namespace reprise {
namespace {

/// Appends the components of `path` to `out`, each after a slash; ".." takes one back. False where ".." found none.
bool append_components(std::string& out, std::string_view path) {
    bool inside = true;
    while (!path.empty()) {
        const size_t slash = std::min(path.find('/'), path.size());
        const std::string_view part = path.substr(0, slash);
        path.remove_prefix(std::min(slash + 1, path.size()));
        if (part.empty() || part == ".") {
            continue;
        }
        if (part == "..") {
            inside = inside && !out.empty();
            out.resize(out.empty() ? 0 : out.rfind('/'));
            continue;
        }
        out += '/';
        out += part;
    }
    return inside;
}

}  // namespace

std::string clean_path(std::string_view directory, std::string_view path) {
    std::string out;
    out.reserve(directory.size() + path.size() + 2);
    if (!path.starts_with('/')) {
        append_components(out, directory);
    }
    append_components(out, path);
    return out.empty() ? "/" : out;
}

std::optional<std::string> clean_path_within(std::string_view path) {
    std::string out;
    out.reserve(path.size() + 1);
    if (!append_components(out, path)) {
        return std::nullopt;
    }
    if (path.starts_with('/')) {
        return out.empty() ? "/" : out;
    }
    return out.empty() ? "." : out.substr(1);
}

}  // namespace reprise
