// SPDX-License-Identifier: MIT
// What the file systems of the recorded files did that no call asked for, and that a replay's own does not do: copying
// a file before its first change, unpacking it, asking a process of the job for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/plan/file_systems.h"

namespace reprise {

struct FileSystemWork {
    uint64_t copied_up_bytes = 0;  ///< by overlayfs, of lower files that the job opened to write or changed
    int64_t copied_up_ns = 0;      ///< in the calls that it did so in
    bool serves_files = false;     ///< a process of the job has opened /dev/fuse
};

/// Fed with all ops.
class FileSystemWorkScan {
public:
    explicit FileSystemWorkScan(const LogReader& log);
    void see(const OpBlock& block, size_t i);
    const FileSystemWork& found() const { return found_; }

private:
    const Tables& tables_;
    RecordedFileSystems types_;
    std::vector<bool> changed_;  // by file: opened to write, or changed
    FileSystemWork found_;
};

/// "overlayfs copied 57.2 MiB of lower files ...", where that is more than a share of what the job read and wrote; else
/// empty.
std::string copied_up(const FileSystemWork& work, uint64_t kept_bytes, double share);
/// "56.1 MiB of the 56.1 MiB lay on squashfs, which compresses: ...", where they are more than a share; else empty.
std::string compressed_by_type(const std::vector<FileSystemUse>& used, double share);
/// "the job serves 28.6 MiB of its files itself (FUSE): ...", likewise.
std::string served_by_job(const FileSystemWork& work, const std::vector<FileSystemUse>& used, double share);

}  // namespace reprise
