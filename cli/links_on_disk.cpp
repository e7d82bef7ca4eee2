// SPDX-License-Identifier: MIT
#include "cli/links_on_disk.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>

namespace fs = std::filesystem;

namespace reprise {
namespace {

int64_t ns_of(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

using Links = std::map<std::string, std::optional<LinkOnDisk>>;

std::optional<LinkOnDisk> link_at(const std::string& path) {
    struct stat status {};
    if (path.starts_with("/proc/")) {
        return std::nullopt;  // those are another process's
    }
    if (::lstat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? std::optional(LinkOnDisk{}) : std::nullopt;
    }
    if (!S_ISLNK(status.st_mode)) {
        return std::nullopt;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error) {
        return std::nullopt;
    }
    return LinkOnDisk{target.native(), ns_of(status.st_ctim)};
}

constexpr int kMostNeighbours = 4096;  // where a link may have led to

// The directory among those in `beside` below which `rest` is the file of that inode.
std::optional<LinkOnDisk> directory_with(const fs::path& beside, const std::string& rest, uint64_t inode) {
    std::error_code error;
    int tried = 0;
    for (fs::directory_iterator entry(beside, error), end; !error && entry != end && tried < kMostNeighbours;
         entry.increment(error), ++tried) {
        struct stat directory {
        }, file{};
        if (::lstat(entry->path().c_str(), &directory) == 0 && S_ISDIR(directory.st_mode) &&
            ::stat((entry->path() / rest).c_str(), &file) == 0 && file.st_ino == inode) {
            return LinkOnDisk{entry->path().native(), ns_of(directory.st_ctim)};
        }
    }
    return std::nullopt;
}

// Directories that one link leads to after the other mostly lie beside each other, or beside the link.
std::optional<LinkOnDisk> directory_behind(const fs::path& link, const std::string& rest, uint64_t inode) {
    std::error_code error;
    const fs::path now = fs::canonical(link, error);
    for (const fs::path& beside : {error ? fs::path() : now.parent_path(), link.parent_path()}) {
        if (auto found = beside.empty() ? std::nullopt : directory_with(beside, rest, inode)) {
            return found;
        }
    }
    return std::nullopt;
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
    how.directory_was = [tried = std::make_shared<std::map<std::string, int>>()](
                            const std::string& link, std::string_view rest, uint64_t inode) {
        constexpr int kTries = 8;  // files that a link may have led to
        return ++(*tried)[link] > kTries ? std::nullopt : directory_behind(link, std::string(rest), inode);
    };
    how.find_at_end = [](const std::string& path) -> std::optional<FoundAtEnd> {
        struct stat status {};
        if (path.starts_with("/proc/") || ::lstat(path.c_str(), &status) != 0) {
            return std::nullopt;
        }
        FoundAtEnd out{status.st_mode, static_cast<uint64_t>(status.st_size), {}};
        std::error_code error;
        if (S_ISLNK(status.st_mode)) {
            out.target = fs::read_symlink(path, error).native();
        }
        return error ? std::nullopt : std::optional(out);
    };
    struct stat own {};
    how.mounts = ::stat("/proc/self/ns/mnt", &own) == 0 ? own.st_ino : 0;
}

}  // namespace reprise
