// SPDX-License-Identifier: MIT
// Paths as text: what they mean without looking at a file system.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reprise {

/// `path` seen from `directory` (absolute), as an absolute path without ".", ".." and "//". ".." of "/" is "/", as in
/// the kernel.
std::string clean_path(std::string_view directory, std::string_view path);

/// The same for a path that stays what it is, absolute or relative; "/" or "." stand for nothing left. nullopt where
/// ".." would leave the start.
std::optional<std::string> clean_path_within(std::string_view path);

/// Whether `path` lies below `directory`; both clean. No path lies below itself.
inline bool lies_below(std::string_view path, std::string_view directory) {
    if (directory == "/") {
        return path.size() > 1 && path.front() == '/';
    }
    return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}
/// Whether `path` is `directory` or lies below it.
inline bool is_or_lies_below(std::string_view path, std::string_view directory) {
    return path == directory || lies_below(path, directory);
}

}  // namespace reprise
