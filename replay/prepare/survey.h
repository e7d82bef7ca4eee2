// SPDX-License-Identifier: MIT
// The comparison of a layout with what lies below the root now: what is to be made, what stands in the way, and
// whether it fits. Reads only.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "replay/prepare/layout.h"
#include "replay/prepare/root_marker.h"

namespace reprise {

/// What is to be done about an entry.
enum class Action : uint8_t {
    none,    ///< not ours to make, and not there
    keep,    ///< there, as it should be
    make,    ///< not there
    remake,  ///< there, with another size, type or target: remove it and make it
    refill,  ///< there, but bytes or attributes may have been changed
    remove,  ///< the log makes it, so it must not be there
};
inline constexpr size_t kActions = 6;

/// How far `prepare` may go; see docs/prepare.md.
enum class Licence : uint8_t {
    strange,  ///< no marker: only add, and only what no replay would alter
    ours,     ///< marked: only add
    resume,   ///< marked, half laid out: add, and remake what is half made
    reset,    ///< marked, and asked to: put everything back
};

/// What one file system must take, and can.
struct Demand {
    dev_t device = 0;
    std::string where;  ///< a directory on it, for messages
    uint64_t block = 4096;
    uint64_t bytes = 0, inodes = 0;            ///< needed beyond what is there
    uint64_t free_bytes = 0, free_inodes = 0;  ///< what there is; inodes: UINT64_MAX where there is no limit
    uint64_t given_back_bytes = 0, given_back_inodes = 0;  ///< by what is removed first
    uint64_t replay_bytes = 0;   ///< the most that a replay will have written beyond that, at least
    uint64_t replay_inodes = 0;  ///< likewise, files with data

    bool fits() const;
    bool fits_without_replay() const;
    bool has_bytes() const;  ///< for what is laid out and for the replay
};

/// Entries of one kind: how many, and the first few for people.
struct Examples {
    static constexpr size_t kMost = 10;
    uint64_t count = 0;
    std::vector<std::string> paths;
    void add(std::string_view path, std::string_view why);
    void merge(const Examples& other);
};

struct Survey {
    std::vector<Action> actions;  ///< by entry
    std::vector<uint8_t> held;    ///< directories: something is there under that name
    uint64_t count[kActions] = {};
    uint64_t files = 0, directories = 0, links = 0;  ///< to be made or remade
    uint64_t listing_entries = 0;                    ///< likewise, LayoutEntry::listing; not among the files
    uint64_t bytes = 0;                              ///< to be written
    uint64_t bytes_laid_out = 0;                     ///< sizes of all initial files together
    uint64_t largest = 0;                            ///< file to be made
    std::string largest_path;
    std::vector<Demand> demands;
    std::vector<DirectoryRename> renames_back;  ///< directories that must get their old name back: from `from` to `to`
    Examples in_the_way;                        ///< there already, and a replay would alter it or trip over it
    Examples differing;                         ///< there with another size, type or target
    Examples lost;                              ///< there, of their size, with holes where there should be data

    bool nothing_to_do() const {
        return count[size_t(Action::make)] + count[size_t(Action::remake)] + count[size_t(Action::refill)] +
                   count[size_t(Action::remove)] + renames_back.size() ==
               0;
    }
};

struct SurveyOptions {
    Licence licence = Licence::strange;
    Content content = Content::random;
    bool remake_data = false;  ///< reset only: the files there hold another kind of content
    unsigned threads = 1;
};

/// `root` is a directory descriptor, or -1 where the root is still to be made below `parent`. Throws Error (machine)
/// where something cannot be looked at.
Survey survey_root(const Layout& layout, int root, int parent, std::string_view root_name,
                   const SurveyOptions& options);

}  // namespace reprise
