// SPDX-License-Identifier: MIT
// Which files and which parts of them the copies of a data-parallel job use: every copy another share of the
// dataset, and files of its own where the job writes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Made from one pass over a log. A dataset file that is only read changes places with others of about its size (at
/// most a tenth apart; the very same size where it is mapped) and ending. Where there are fewer of those than copies,
/// what is read of it moves by k/N of its size instead.
class Shares {
public:
    Shares(const LogReader& log, uint32_t copies);

    /// The row of file `file` as copy `copy` has it, where that is another file than any of the log.
    bool own(FileId file) const { return file < owned_at_.size() && owned_at_[file] != 0; }
    std::string own_path(FileId file, uint32_t copy) const;
    /// A dataset file that another one stands in for.
    FileId rotated(FileId file, uint32_t copy) const;
    /// Reads of the file are for other offsets or of another file in the copies.
    bool moves(FileId file) const { return file < place_.size() && place_[file].group != 0; }
    /// Whether the copy's offsets differ from the recorded ones.
    bool shifts(FileId file) const { return moves(file) && groups_[place_[file].group].size() < copies_; }
    int64_t offset(FileId file, uint32_t copy, int64_t offset, int64_t size) const;
    /// What a read gets of the file that stands in for it; `offset` as moved.
    int64_t bytes(FileId file, uint32_t copy, int64_t offset, int64_t size) const;

    FileId file_of_map(uint32_t map) const;
    struct Request {
        FileId file = 0;
        int64_t offset = 0, size = 0;
    };
    const Request* request(uint32_t request) const;

    uint64_t files_rotated() const { return rotated_; }
    uint64_t files_shifted() const { return shifted_; }
    uint64_t files_shared() const { return shared_; }
    uint64_t files_written() const { return written_; }  // that existed before, and so must be prepared for each copy
    uint32_t map_limit() const { return map_limit_; }
    uint32_t request_limit() const { return request_limit_; }

private:
    struct Place {
        uint32_t group = 0, index = 0;  // group 0: none
    };
    void scan();
    void see(const OpBlock& block, size_t i);
    void map_shared(uint32_t map, FileId file, bool writable);
    void own_files();
    void group_files();
    FileId file_of(HandleId handle) const;
    void write(FileId file);

    const LogReader& log_;
    const Tables& tables_;
    uint32_t copies_;
    std::unordered_set<std::string> written_paths_;
    std::vector<uint8_t> uses_;       // by FileId: kRead, kMapped, kWritten
    std::vector<uint32_t> owned_at_;  // by FileId: where in the path the name of the copy goes; 0: not its own
    std::vector<Place> place_;
    std::vector<std::vector<FileId>> groups_{1};
    std::unordered_map<uint32_t, FileId> maps_;
    std::unordered_set<uint32_t> read_only_maps_, made_writable_;  // shared, of a file; by mprotect
    std::unordered_map<uint32_t, Request> requests_;
    uint32_t map_limit_ = 1, request_limit_ = 1;
    uint64_t rotated_ = 0, shifted_ = 0, shared_ = 0, written_ = 0;
};

}  // namespace reprise
