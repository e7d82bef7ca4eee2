// SPDX-License-Identifier: MIT
#include "capture/stacked_disks.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostStacked = 500;  // the meta record has room for so many

std::string line_of(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

/// "254:0" of a device's directory in /sys, a partition's disk for a partition; empty where there is none.
std::string disk_at(const fs::path& entry) {
    std::error_code error;
    fs::path device = fs::canonical(entry, error);
    if (error) {
        return {};
    }
    if (fs::exists(device / "partition", error)) {
        device = device.parent_path();
    }
    return line_of(device / "dev");
}

/// Octal \040 and the like of /proc/self/mountinfo.
std::string unescaped(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// What is mounted where a path lies, e.g. "/dev/sda1".
std::string source_of(const fs::path& path) {
    std::error_code error;
    const std::string place = fs::canonical(path, error).string();
    std::ifstream in("/proc/self/mountinfo");
    std::string source;
    size_t longest = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string word, at, type, what;
        words >> word >> word >> word >> word >> at;
        at = unescaped(at);
        const bool holds =
            at == "/" || (place.starts_with(at) && (place.size() == at.size() || place[at.size()] == '/'));
        if (!holds || at.size() < longest) {
            continue;
        }
        while (words >> word && word != "-") {
        }
        if (words >> type >> what) {
            longest = at.size();
            source = unescaped(what);
        }
    }
    return source;
}

}  // namespace

std::optional<dev_t> device_of_file(const fs::path& path) {
    struct stat st {};
    if (path.empty() || ::stat(path.c_str(), &st) != 0) {
        return std::nullopt;
    }
    if (major(st.st_dev) != 0) {
        return st.st_dev;
    }
    // btrfs has numbers of its own.
    const std::string source = source_of(path);
    if (!source.starts_with('/') || ::stat(source.c_str(), &st) != 0 || !S_ISBLK(st.st_mode)) {
        return std::nullopt;
    }
    return st.st_rdev;
}

StackedDisks stacked_disks(const fs::path& sys, const std::function<std::optional<dev_t>(const fs::path&)>& device_of) {
    StackedDisks out;
    std::error_code error;
    for (fs::directory_iterator at(sys / "block", error), end; !error && at != end; at.increment(error)) {
        std::set<std::string> below;
        std::error_code none;
        for (fs::directory_iterator slave(at->path() / "slaves", none), last; !none && slave != last;
             slave.increment(none)) {
            below.insert(disk_at(slave->path()));
        }
        if (fs::path file = line_of(at->path() / "loop" / "backing_file"); !file.empty()) {
            constexpr std::string_view kDeleted = " (deleted)";
            std::optional<dev_t> device = device_of(file);
            if (!device && file.native().ends_with(kDeleted)) {
                device = device_of(file.parent_path());
            }
            if (device) {
                below.insert(disk_at(sys / "dev" / "block" /
                                     (std::to_string(major(*device)) + ":" + std::to_string(minor(*device)))));
            }
        }
        const std::string own = line_of(at->path() / "dev");
        below.erase("");
        below.erase(own);
        if (!own.empty() && !below.empty() && out.size() < kMostStacked) {
            out[own] = {below.begin(), below.end()};
        }
    }
    return out;
}

}  // namespace reprise
