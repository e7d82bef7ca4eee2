// SPDX-License-Identifier: MIT
// Symbolic links of a recording: the names under which a user knows what the log calls by its own.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "formats/oplog/tables.h"

namespace reprise {

/// The links that were there before the job, as the file table has them.
class RecordedLinks {
public:
    explicit RecordedLinks(const Tables& tables);

    /// Where an absolute path leads through them; a path that leads through none is given back as it is.
    std::string behind(std::string_view path) const;
    /// The same of a glob: what stands before the component that has its first wildcard.
    std::string behind_glob(std::string_view glob) const;

private:
    std::map<std::string, std::string, std::less<>> targets_;  // absolute; by path
};

}  // namespace reprise
