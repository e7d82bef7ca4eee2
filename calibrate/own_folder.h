// SPDX-License-Identifier: MIT
// A folder for a measurement: nobody else's, gone afterwards, also where the process was killed.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/unique_fd.h"

namespace reprise {

/// A directory of this process, locked for as long as it lives: one that is not locked was left by a killed process.
class OwnFolder {
public:
    explicit OwnFolder(const std::filesystem::path& directory) {
        remove_left(directory);
        constexpr int kTries = 3;  // another process may take a new one for left
        for (int i = 0; i < kTries && !lock_.valid(); ++i) {
            path_ = (directory / (std::string(kFolder) += kUnique)).string();
            if (mkdtemp(path_.data()) == nullptr) {
                throw machine_error(
                    escape_line(directory.string()) + ": no folder can be made there: " + std::strerror(errno),
                    "name a writable directory on that storage system");
            }
            lock_ = locked(path_);
        }
    }
    ~OwnFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    const std::string& path() const { return path_; }

private:
    static constexpr std::string_view kFolder = "reprise-storage-", kUnique = "XXXXXX";
    /// Not valid where it is another user's, in use, or gone.
    static UniqueFd locked(const std::filesystem::path& path) {
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        struct stat st {};
        const bool mine = fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(fd.get(), &st) == 0 &&
                          st.st_uid == ::geteuid() && st.st_nlink != 0;
        return mine ? std::move(fd) : UniqueFd();
    }
    static void remove_left(const std::filesystem::path& directory) {
        std::error_code ignored;
        std::vector<std::filesystem::path> left;
        for (std::filesystem::directory_iterator at(directory, ignored), end; at != end; at.increment(ignored)) {
            const std::string name = at->path().filename().string();
            if (name.starts_with(kFolder) && name.size() == kFolder.size() + kUnique.size()) {
                left.push_back(at->path());
            }
        }
        for (const std::filesystem::path& path : left) {
            if (const UniqueFd lock = locked(path); lock.valid()) {
                std::filesystem::remove_all(path, ignored);
            }
        }
    }

    std::string path_;
    UniqueFd lock_;
};

}  // namespace reprise
