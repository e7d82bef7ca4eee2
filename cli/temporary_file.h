// SPDX-License-Identifier: MIT
// A log that is only needed while a command runs.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace reprise::cli {

/// A name in the temporary directory that no file has; removed at the end, with what a writer leaves beside it.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& name)
        : path_(std::filesystem::temp_directory_path() /
                ("reprise-" + name + "-" + std::to_string(getpid()) + ".oplog")) {}
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
        std::filesystem::remove(path_.string() + ".partial", ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace reprise::cli
