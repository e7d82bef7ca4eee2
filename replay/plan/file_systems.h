// SPDX-License-Identifier: MIT
// The file systems that the recorded files lay on: a root is one, or few.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// What was done to a file, or to all files of a file system.
struct FileUse {
    uint64_t calls = 0, bytes = 0, written = 0;
    uint64_t syncs = 0;  // of the calls, those that wait for the device
    uint64_t ns = 0;     // in calls
};

struct FileSystemUse : FileUse {
    uint64_t device = 0;
    std::string type;  // "ext4"; empty: the recording does not say
    uint64_t files = 0;
    FileId file = 0;  // that with most bytes, then most calls
    std::string path;

    bool in_memory() const { return type == "tmpfs" || type == "ramfs" || type == "hugetlbfs"; }
};

/// The types of the file systems that the recorded files lay on.
class RecordedFileSystems {
public:
    explicit RecordedFileSystems(const Header& header);
    /// "ext4"; empty: the recording does not say.
    std::string_view type(uint64_t device) const;
    /// Whether the recording counted what the device was asked for.
    bool is_counted(uint64_t device) const;

private:
    std::map<std::string, std::string, std::less<>> types_;  // by "MAJOR:MINOR"
    std::set<std::string, std::less<>> uncounted_;           // likewise
};

/// Adds up what is done to files, by the file system that they lay on.
class FileSystems {
public:
    explicit FileSystems(const LogReader& log);
    /// Files of unknown device, and those of /dev/shm, which stay in memory, do not count.
    void add(FileId file, const FileUse& more);
    /// Those with most bytes, then most calls, first.
    std::vector<FileSystemUse> sorted() const;

private:
    const Tables& tables_;
    RecordedFileSystems types_;
    std::vector<FileSystemUse> uses_;
    std::vector<FileUse> most_;  // by file system: of its `file`
};

/// "96 MiB of the 240 MiB read and written were of files in memory (tmpfs), such as /tmp/x", where that is
/// more than a share of the bytes and others lay on a device; else empty.
std::string memory_among(const std::vector<FileSystemUse>& uses, double share);

/// "the recorded files lay on 2 file systems, one of them a tmpfs (12 files, 800 KiB written, such as /tmp/x)": of all
/// but the first those that are worth a word, by their shares; empty: none is. A few files with hardly any bytes or
/// time are not. `shares`: whether all of a use is known, not only files and bytes.
std::string several_file_systems(const std::vector<FileSystemUse>& uses, bool shares);

}  // namespace reprise
