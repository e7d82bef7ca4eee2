// SPDX-License-Identifier: MIT
// What a device reads to find names for the first time: blocks of inodes and of directories, which hold those of many
// files, also of such that no op names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

class ColdNames {
public:
    /// `file_system`: on which the job is to run.
    ColdNames(const LogReader& log, std::string_view file_system);

    /// Requests of `bytes` each, sent at once. The name is found once the first `needed` of them are there.
    struct Requests {
        uint32_t count = 0, needed = 0;
        int64_t bytes = 0;
    };
    /// Those that are missing for a file. None: nothing is known of what lies around it.
    std::optional<Requests> look(FileId file);

private:
    /// How a file system reads what it knows of files.
    struct Unit {
        uint64_t inodes = 0;    // that it reads together
        uint32_t requests = 0;  // for them
        int64_t bytes = 0;      // of each
    };
    struct Directory {
        uint64_t names = 0, blocks = 0;
        std::vector<bool> inodes_read, blocks_read;
    };
    struct Place {
        uint32_t directory = 0;
        uint64_t among = 0;  // the directory's files
    };
    static Unit unit_of(std::string_view file_system);
    void add(const Tables& tables, const std::vector<FileId>& files, const std::vector<uint64_t>& others, uint64_t all);

    Unit unit_;
    std::vector<Directory> directories_;
    std::unordered_map<FileId, Place> places_;
};

}  // namespace reprise
