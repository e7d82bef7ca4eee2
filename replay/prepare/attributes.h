// SPDX-License-Identifier: MIT
// Extended attributes that files had when the recording found them: which ones, as far as the ops tell, and giving
// them to the files of a root. Their values are not in a log, so they get bytes of the same length.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise {

/// What ops tell of one attribute of one file. Times are ns of the log.
struct AttributeFact {
    static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    int64_t found = kNever;  ///< first op that succeeded because it was there
    int64_t set = kNever;    ///< first op that set it
    int64_t sized = kNever;  ///< first op that told the length of its value
    uint64_t size = 0;       ///< then

    bool there_at_first() const { return found < set; }
};

/// By file and attribute name, a string of the log.
using AttributeFacts = std::map<std::pair<FileId, StringId>, AttributeFact>;

/// Learns from an op on attributes of `file`, also from one that failed; others tell nothing.
void note_attribute(const Op& op, FileId file, AttributeFacts& facts);

struct Attribute {
    std::string name;
    uint64_t size = 0;  ///< of its value, bytes

    bool operator==(const Attribute&) const = default;
};
using Attributes = std::vector<Attribute>;

/// Whether files can be given it: others than users' carry privileges, or are the file system's own.
bool can_give(const Attribute& attribute);

/// Whether a file has them all, in that size, or cannot have any.
bool has_attributes(int fd, const Attributes& attributes);
/// 0, or the errno of the first that could not be given; the others are.
int give_attributes(int fd, const Attributes& attributes);

}  // namespace reprise
