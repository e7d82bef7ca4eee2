// SPDX-License-Identifier: MIT
// The larger data set of a scaled job: its further files, and which of them each access is to.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "transform/scale_cuts.h"

namespace reprise {

/// Each sample once an epoch, whichever recorded access stands for it. Files keep the sizes of the recorded ones: a
/// further file is as large as the one whose accesses are played again for it.
class LargerSet {
public:
    LargerSet(const ScaleRecording& recording, const Score& score, double factor, uint64_t seed);

    /// A file that the recording does not have; its id follows those of the recording.
    struct Added {
        FileId like = 0;
        std::string path;
    };
    const std::vector<Added>& added() const { return added_; }
    /// A file of the recording that a smaller set does not have.
    bool gone(FileId file) const { return file < members_.size() && in_set_[file] && members_[file].empty(); }
    /// Files of the larger set that have the size of a recorded one, itself among them.
    const std::vector<FileId>& members(FileId file) const { return members_[file]; }
    bool sample(FileId file) const { return file < in_set_.size() && in_set_[file]; }
    /// The recorded file that has its size.
    FileId like(FileId file) const { return file < in_set_.size() ? file : added_[file - in_set_.size()].like; }
    /// Which file access `unit` of a passage is to; 0: to none.
    FileId file_of(size_t passage, uint32_t unit) const;
    /// Of a look that reads nothing and is none of those that are made for every file at once.
    bool walks(uint32_t unit) const { return walks_[unit]; }
    /// Whether each epoch has an order of its own.
    bool shuffled() const { return shuffled_; }
    /// Accesses in a piece, by time.
    const std::vector<std::vector<uint32_t>>& units_in() const { return units_in_; }

private:
    struct Play {
        uint32_t passage, place;  // in units_in of its piece
        FileId file;
    };
    void sort_units();
    void find_order();
    void make_members(double factor);
    void assign(uint32_t epoch, uint64_t seed);
    void find_sequence();
    void add(FileId like);
    std::string further_name(FileId like);

    const ScaleRecording& recording_;
    const Score& score_;
    const Tables& tables_;
    std::vector<std::vector<uint32_t>> units_in_;  // by piece
    std::vector<std::vector<Play>> plays_;         // by epoch
    std::vector<std::vector<FileId>> assigned_;    // by passage, as units_in_
    std::vector<std::vector<FileId>> members_;     // by recorded file
    std::vector<uint8_t> in_set_;
    std::vector<uint8_t> walks_;  // by unit
    std::vector<Added> added_;
    bool shuffled_ = true;
    std::vector<FileId> sequence_;  // of an epoch, where they are not shuffled
    struct Numbers {
        uint64_t next = 0;
        size_t digits = 0;
    };
    std::unordered_map<std::string, Numbers> numbers_;  // by the name around the number
    std::unordered_set<std::string> names_;
};

}  // namespace reprise
