// SPDX-License-Identifier: MIT
#include "cli/links_on_disk.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>

namespace reprise {
namespace {

using Links = std::map<std::string, std::optional<LinkOnDisk>>;

std::optional<LinkOnDisk> link_at(const std::string& path) {
    struct stat status {};
    if (path.starts_with("/proc/") || ::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) {
        return std::nullopt;  // those of /proc are another process's
    }
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) {
        return std::nullopt;
    }
    return LinkOnDisk{target.native(), int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
}

}  // namespace

void ask_for_links(RawAssembleOptions& how) {
    how.link_on_disk = [known = std::make_shared<Links>()](const std::string& path) {
        const auto [at, is_new] = known->try_emplace(path);
        if (is_new) {
            at->second = link_at(path);
        }
        return at->second;
    };
    struct stat own {};
    how.mounts = ::stat("/proc/self/ns/mnt", &own) == 0 ? own.st_ino : 0;
}

}  // namespace reprise
