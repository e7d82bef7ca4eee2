// SPDX-License-Identifier: MIT
// The layout of a root: which paths were there at first, and which ones the log makes.
#include "replay/prepare/layout.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/file_names.h"
#include "formats/support/path.h"
#include "formats/support/text_index.h"
#include "replay/plan/file_systems.h"
#include "replay/plan/reads.h"
#include "replay/plan/scatter.h"
#include "replay/prepare/facts.h"
#include "replay/prepare/listing_names.h"

namespace reprise {

namespace {

constexpr uint32_t kRoot = LayoutEntry::kRoot;

std::string_view parent_of(std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

/// Of entries, for their index.
struct PathOf {
    const std::deque<LayoutEntry>& entries;
    std::string_view operator()(uint32_t entry) const { return entries[entry].path; }
};

class LayoutMaker {
public:
    LayoutMaker(const LogReader& log, const OpFilter& filter, const PathMap& maps, ListingEntries listing)
        : log_(log),
          tables_(log.tables()),
          filter_(filter),
          maps_(maps),
          listing_(listing),
          facts_(gather_facts(log)),
          holes_(holes_at_first(log)) {}

    Layout make() {
        find_renames();
        find_links();
        index_.reserve(tables_.files.size());
        entry_of_.resize(tables_.files.size(), kNowhere);
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            add_row(id);
        }
        add_moved();
        add_growth();
        add_parents();
        find_directories();
        add_blockers();
        add_loops();
        settle();
        add_holes();
        add_hard_links();
        add_attributes();
        find_places();
        if (listing_ != ListingEntries::none) {
            add_listing_entries();
        }
        fill_directories();
        group();
        for (const auto& [what, n] : counted_) {
            reprise::count(out_.counters, what, n);
        }
        return std::move(out_);
    }

private:
    void count(Count what) { ++counted_[what]; }

    struct TimedRename {
        int64_t time;
        std::string from, to;
        bool exchanged = false;
    };

    FileType type_of(FileId id) const {
        const FileType type = tables_.files[id].type;
        return type == FileType::unknown && facts_.files[id].directory ? FileType::directory : type;
    }

    void find_renames() {
        for (const RenameFact& rename : facts_.renames) {
            if (rename.from == 0 || rename.to == 0 || rename.from >= tables_.files.size() ||
                rename.to >= tables_.files.size()) {
                continue;
            }
            if (!rename.exchanged && type_of(rename.from) != FileType::directory &&
                type_of(rename.to) != FileType::directory) {
                continue;
            }
            if (!filter_.keeps_file(tables_, rename.from) || !filter_.keeps_file(tables_, rename.to)) {
                continue;
            }
            auto from = maps_.map(tables_.path(rename.from));
            auto to = maps_.map(tables_.path(rename.to));
            if (!from || !to || *from == "." || *to == "." || *from == *to) {
                continue;
            }
            // After an exchange both names are there, whatever lies where: a reset looks at what they have.
            if (!rename.exchanged) {
                out_.directory_renames.push_back({*from, *to});
            }
            renames_.push_back({rename.time, std::move(*from), std::move(*to), rename.exchanged});
        }
    }

    void find_links() {
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const FileRow& row = tables_.files[id];
            if (row.type != FileType::symlink || row.target == 0 || row.origin == Origin::absent) {
                continue;
            }
            if (!filter_.keeps_file(tables_, id)) {
                continue;
            }
            const auto path = maps_.map(tables_.path(id));
            const auto target = maps_.map_link(tables_.path(id), tables_.strings[row.target]);
            if (!path || !target) {
                continue;
            }
            // The target as a path from the root; map_link saw to it that it stays inside.
            const std::string_view parent = parent_of(*path);
            auto full = clean_path_within(parent.empty() ? *target : std::string(parent) + "/" + *target);
            if (full) {
                links_.emplace(*path, *full == "." ? "" : std::move(*full));
            }
        }
    }

    /// Where a path lay before directories were renamed, and once symbolic links on the way are followed.
    std::optional<std::string> locate(std::string path, int64_t first_seen, bool follow_last) {
        for (auto rename = renames_.rbegin(); rename != renames_.rend(); ++rename) {
            if (rename->exchanged) {
                if (rename->time >= first_seen) {
                    continue;  // seen before it, or by it
                }
                if (lies_below(path, rename->from)) {
                    path = rename->to + path.substr(rename->from.size());
                    continue;
                }
            }
            if (rename->time <= first_seen && lies_below(path, rename->to)) {
                path = rename->from + path.substr(rename->to.size());
            }
        }
        if (links_.empty()) {
            return path;
        }
        constexpr int kMostLinks = 40;  // as the kernel
        for (int hops = 0; hops <= kMostLinks; ++hops) {
            bool followed = false;
            for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
                const bool last = end == std::string::npos;
                if (last && !follow_last) {
                    break;
                }
                if (const auto link = links_.find(path.substr(0, end)); link != links_.end()) {
                    const std::string rest = last ? "" : path.substr(end + 1);
                    path = link->second;
                    if (!path.empty() && !rest.empty()) {
                        path += '/';
                    }
                    path += rest;
                    followed = true;
                    break;
                }
                if (last) {
                    break;
                }
            }
            if (!followed) {
                return path;
            }
            if (path.empty()) {
                return ".";
            }
        }
        return std::nullopt;
    }

    void add_row(FileId id) {
        const FileRow& row = tables_.files[id];
        const FileFacts& facts = facts_.files[id];
        switch (row.type) {
            case FileType::unknown:
            case FileType::regular:
            case FileType::directory:
            case FileType::symlink:
            case FileType::fifo: break;
            case FileType::anonymous: return;
            case FileType::socket:
            case FileType::character:
            case FileType::block:
                if (filter_.keeps_file(tables_, id)) {
                    count(Count::special_files);
                }
                return;
        }
        bool initial = row.origin == Origin::existed;
        bool made = row.origin == Origin::created || (row.origin == Origin::unknown && facts.made != FileFacts::kNever);
        if (row.origin == Origin::unknown) {
            initial = facts.used < facts.made;
        }
        if (facts.nameless) {
            // O_TMPFILE names the directory.
            made = row.origin == Origin::created && facts.made != FileFacts::kNever;
            initial = !made;
        }
        if (!initial && !made) {
            return;
        }
        if (!filter_.keeps_file(tables_, id)) {
            ++out_.files_left_out;
            return;
        }
        auto path = maps_.map(tables_.path(id));
        if (!path) {
            return count(Count::paths_outside_root);
        }
        // Looked at on the way to a folder that lies elsewhere here: made where something else lies below it.
        if (type_of(id) == FileType::unknown && maps_.is_above_rule(tables_.path(id))) {
            return;
        }
        const FileType type = facts.nameless ? FileType::directory : type_of(id);
        int64_t named_at = std::min(facts.made, facts.used);
        if (named_at == FileFacts::kNever && row.origin == Origin::existed) {
            named_at = INT64_MIN;  // what it was called before the job
        }
        note_moved(*path, named_at, type);
        path = locate(std::move(*path), named_at, type != FileType::symlink);
        if (!path) {
            return count(Count::links_unresolved);
        }
        if (*path == ".") {
            entry_of_[id] = kRoot;
            return;
        }
        LayoutEntry& entry = entry_at(*path);
        entry_of_[id] = index_at(*path);
        if (type == FileType::regular || type == FileType::unknown) {
            note_disk(id, index_at(*path));
        }
        if (initial && row.generation != 0 && entry.made && !entry.initial) {
            initial = false;  // opened again when another had its name: the job had made it
        }
        entry.made |= made;
        if (!facts.nameless) {
            merge_changes(entry, facts);
        }
        if (!initial) {
            if (entry.type == FileType::unknown) {
                entry.type = type;
            }
            return;
        }
        if (entry.initial && entry.type != FileType::unknown && type != entry.type && type != FileType::unknown) {
            return count(Count::path_conflicts);
        }
        if (entry.initial) {
            count(Count::paths_shared);
        }
        entry.initial = true;
        if (type != FileType::unknown) {
            entry.type = type;
        }
        if (row.mode != 0 && type == row.type) {
            entry.mode = row.mode & 0777;
        }
        if (type == FileType::symlink) {
            return add_link(entry, row, facts);
        }
        entry.runnable |= facts.was_runnable();
        entry.size = std::max(entry.size, row.size);
        if (type != FileType::directory && !row.size_exact && row.origin != Origin::created) {
            count(Count::sizes_guessed);
        }
    }

    /// The names that renames of directories give what is called `path` at that time.
    void note_moved(std::string path, int64_t time, FileType type) {
        const std::string first = path;
        bool exchanged = false;
        for (const TimedRename& rename : renames_) {
            const bool from = lies_below(path, rename.from), to = lies_below(path, rename.to);
            exchanged = exchanged || (rename.exchanged && (from || to));
            if (rename.time >= time && from) {
                path = rename.to + path.substr(rename.from.size());
                if (!rename.exchanged) {
                    note_name(path, rename.to.size(), type);
                }
            } else if (rename.time >= time && to && rename.exchanged) {
                path = rename.from + path.substr(rename.to.size());
            } else if (rename.time < time && to && !rename.exchanged) {
                note_name(path, rename.to.size(), type);  // the layout has it where that directory was before
            }
        }
        if (exchanged) {
            note_name(first, first.size(), type);
            note_name(path, path.size(), type);
        }
    }
    /// With the directories that lead to it from the first `above` characters on, which came along.
    void note_name(const std::string& name, size_t above, FileType type) {
        if (leads_through_link(name)) {
            return;
        }
        for (size_t end = name.find('/', above); end != std::string::npos; end = name.find('/', end + 1)) {
            moved_names_[name.substr(0, end)] = FileType::directory;
        }
        FileType& known = moved_names_[name];
        known = known == FileType::unknown ? type : known;
    }
    bool leads_through_link(const std::string& name) const {
        for (size_t end = name.find('/'); !links_.empty() && end != std::string::npos; end = name.find('/', end + 1)) {
            if (links_.contains(name.substr(0, end))) {
                return true;
            }
        }
        return false;
    }
    /// A reset removes what a rename has left where nothing was, and writes anew what has got the name of a file.
    void add_moved() {
        for (const auto& [path, type] : moved_names_) {
            LayoutEntry& entry = entry_at(path);
            entry.type = entry.type == FileType::unknown ? type : entry.type;
            if (!entry.initial) {
                entry.made = true;
            } else if (entry.type == FileType::regular) {
                entry.changed_from = 0;
                entry.changed_to = FileFacts::kEnd;
            }
        }
    }

    /// Files take room of the disk below the root. A replay keeps those of /dev/shm in memory.
    void note_disk(FileId id, uint32_t entry) {
        on_disk_.resize(tables_.files.size(), kRoot);
        if (!lies_below(tables_.path(id), "/dev/shm")) {
            on_disk_[id] = entry;
        }
    }

    /// By path: a file that gets the name of another takes its place, whichever of the path's files that was.
    void add_growth() {
        on_disk_.resize(tables_.files.size(), kRoot);
        std::vector<uint64_t> taken(out_.entries.size());
        for (size_t i = 0; i < taken.size(); ++i) {
            taken[i] = out_.entries[i].initial ? out_.entries[i].size : 0;
        }
        const auto now = [&](uint32_t entry) { return entry == kRoot ? 0 : taken[entry]; };
        const auto set = [&](uint32_t entry, uint64_t size) {
            if (entry == kRoot || taken[entry] == size) {
                return;
            }
            constexpr uint64_t kMost = uint64_t{1} << 62;  // of hostile logs
            const auto change =
                static_cast<int64_t>(std::min(size, kMost)) - static_cast<int64_t>(std::min(taken[entry], kMost));
            out_.growth.push_back({entry, change});
            taken[entry] = size;
        };
        for (const SizeFact& fact : facts_.sizes) {
            const uint32_t entry = on_disk_[fact.file];
            switch (fact.kind) {
                case SizeFact::Kind::grown: set(entry, std::max(now(entry), fact.size)); break;
                case SizeFact::Kind::cut: set(entry, std::min(now(entry), fact.size)); break;
                case SizeFact::Kind::moved: {
                    const uint64_t moves = now(entry);
                    set(entry, 0);
                    set(on_disk_[fact.to], moves);
                    break;
                }
            }
        }
    }

    void merge_changes(LayoutEntry& entry, const FileFacts& facts) {
        entry.gone |= facts.gone;
        entry.attributes |= facts.attributes();
        entry.changed_from = std::min(entry.changed_from, facts.changed_from);
        entry.changed_to = std::max(entry.changed_to, facts.changed_to);
    }

    void add_link(LayoutEntry& entry, const FileRow& row, const FileFacts& facts) {
        if (row.target == 0 && facts.is_loop) {
            entry.target = entry.name();
            return;
        }
        if (row.target == 0) {
            entry.target = "target-not-recorded";
            if (row.size != 0) {
                entry.target.resize(std::min<uint64_t>(row.size, 4095), '-');
            }
            return count(Count::links_without_target);
        }
        const auto target = maps_.map_link(tables_.strings[row.path], tables_.strings[row.target]);
        if (!target) {
            entry.initial = false;
            return count(Count::links_unresolved);
        }
        entry.target = *target;
        if (!facts.opened && !facts.was_runnable()) {
            return;
        }
        // It was opened or checked through the link, so something was there.
        const auto end = locate(entry.path, FileFacts::kNever, true);
        if (!end || *end == "." || *end == entry.path) {
            return count(Count::links_unresolved);
        }
        LayoutEntry& file = entry_at(*end);
        if (!file.initial && !file.made) {
            file.initial = true;
            file.size = facts.reach;
        }
        file.runnable |= facts.was_runnable();
        file.changed_from = std::min(file.changed_from, facts.changed_from);
        file.changed_to = std::max(file.changed_to, facts.changed_to);
        // The link itself is changed only as a name.
        entry.changed_from = FileFacts::kEnd;
        entry.changed_to = 0;
    }

    LayoutEntry& entry_at(std::string_view path) { return out_.entries[index_at(path)]; }

    uint32_t index_at(std::string_view path) {
        const auto fresh = static_cast<uint32_t>(out_.entries.size());
        const uint32_t index = index_.find_or_add(path, fresh);
        if (index == fresh) {
            out_.entries.emplace_back().path = path;
        }
        return index;
    }

    /// Makes sure that what holds an entry is a directory that is there when it must be. Entries appended meanwhile
    /// are directories and are visited in turn.
    void add_parents() {
        uint32_t last = kRoot;
        for (uint32_t i = 0; i < out_.entries.size(); ++i) {
            const std::string_view parent = parent_of(out_.entries[i].path);
            if (parent.empty()) {
                continue;
            }
            // Files of one directory mostly follow each other.
            if (last == kRoot || out_.entries[last].path != parent) {
                last = index_at(parent);
            }
            out_.entries[i].parent = last;
        }
        for (uint32_t i = 0; i < out_.entries.size(); ++i) {
            // Up to the first directory that was needed already: that one has its own turn.
            for (uint32_t at = i; out_.entries[at].parent != kRoot;) {
                const LayoutEntry& entry = out_.entries[at];
                if (!entry.initial && !entry.made) {
                    break;
                }
                LayoutEntry& parent = out_.entries[entry.parent];
                // Made below a directory that the log makes as well: nothing to do in advance.
                if (!entry.initial && parent.made && !parent.initial) {
                    break;
                }
                if (parent.type == FileType::unknown) {
                    parent.type = FileType::directory;
                }
                if (parent.type != FileType::directory || parent.initial) {
                    break;
                }
                parent.initial = true;
                at = entry.parent;
            }
        }
    }

    /// Whether a file lies on the way to a path.
    bool lies_below_file(std::string_view path) const {
        for (path = parent_of(path); !path.empty(); path = parent_of(path)) {
            const uint32_t index = index_.find(path);
            if (index != kRoot && (out_.entries[index].initial || out_.entries[index].made) &&
                out_.entries[index].type != FileType::directory) {
                return true;
            }
        }
        return false;
    }

    /// Names of which only a look is known, such as access(), and below which something else was not found: ENOENT,
    /// where a file would have said ENOTDIR.
    void find_directories() {
        for (const std::string& path : above_missing()) {
            const uint32_t known = index_.find(path);
            if (known != kRoot && out_.entries[known].initial && !out_.entries[known].gone &&
                out_.entries[known].type == FileType::unknown) {
                out_.entries[known].type = FileType::directory;
            }
        }
    }

    /// All above what was not found: no files.
    std::set<std::string> above_missing() {
        std::set<std::string> above;
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            if (!facts_.files[id].missing) {
                continue;
            }
            const auto path = maps_.map(tables_.path(id));
            for (std::string_view at = path ? parent_of(*path) : ""; !at.empty(); at = parent_of(at)) {
                if (!above.emplace(at).second) {
                    break;
                }
            }
        }
        return above;
    }

    /// What no op names, and what was no directory, as ENOTDIR says of a path below it.
    void add_blockers() {
        std::set<std::string> blocked;
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const int64_t time = facts_.files[id].blocked;
            if (time == FileFacts::kNever || !filter_.keeps_file(tables_, id)) {
                continue;
            }
            auto path = maps_.map(tables_.path(id));
            path = path ? locate(std::move(*path), time, false) : std::nullopt;
            if (path && *path != ".") {
                blocked.insert(std::move(*path));
            }
        }
        std::set<std::string> blockers;  // what is above comes first
        for (const std::string& path : blocked) {
            std::string blocker(parent_of(path));
            while (blocked.contains(blocker)) {
                blocker = parent_of(blocker);
            }
            if (!blocker.empty()) {
                blockers.insert(std::move(blocker));
            }
        }
        const std::set<std::string> directories = blockers.empty() ? std::set<std::string>() : above_missing();
        for (const std::string& path : blockers) {
            const uint32_t known = index_.find(path);
            const bool taken = known != kRoot && (out_.entries[known].initial || out_.entries[known].made ||
                                                  out_.entries[known].type != FileType::unknown);
            if (taken || directories.contains(path) || lies_below_file(path)) {
                continue;
            }
            LayoutEntry& entry = entry_at(path);
            entry.initial = true;
            entry.type = FileType::regular;
        }
        if (!blockers.empty()) {
            add_parents();
        }
    }

    /// What no op names, and what was a loop of symbolic links, as ELOOP says: a link to itself.
    void add_loops() {
        std::set<std::string> loops;  // what is above comes first
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const FileFacts& facts = facts_.files[id];
            const bool above = facts.looped_above != FileFacts::kNever;
            const int64_t time = above ? facts.looped_above : facts.looped;
            if (time == FileFacts::kNever || !filter_.keeps_file(tables_, id)) {
                continue;
            }
            auto path = maps_.map(tables_.path(id));
            path = path ? locate(std::move(*path), time, false) : std::nullopt;
            if (!path) {
                continue;  // the links of the loop are known
            }
            if (std::string place(above ? parent_of(*path) : *path); !place.empty() && place != ".") {
                loops.insert(std::move(place));
            }
        }
        std::set<std::string> made;
        for (const std::string& path : loops) {
            std::string above(parent_of(path));
            while (!above.empty() && !made.contains(above)) {
                above = parent_of(above);
            }
            if (!above.empty()) {
                continue;  // leads through one of them
            }
            const uint32_t known = index_.find(path);
            const bool taken = known != kRoot && (out_.entries[known].initial || out_.entries[known].made ||
                                                  out_.entries[known].type != FileType::unknown);
            if (taken || lies_below_file(path)) {
                const bool is_link = taken && out_.entries[known].type == FileType::symlink;
                counted_[Count::link_loops_left_out] += is_link ? 0 : 1;
                continue;
            }
            LayoutEntry& entry = entry_at(path);
            entry.initial = true;
            entry.type = FileType::symlink;
            entry.target = entry.name();
            made.insert(path);
        }
        if (!made.empty()) {
            add_parents();
        }
    }

    /// Decides what is still open and drops what cannot be. From the top down, as what is dropped takes all below
    /// along.
    void settle() {
        std::vector<uint8_t> state(out_.entries.size(), 0);  // 0: not visited, 1: good, 2: dropped
        std::vector<uint32_t> chain;
        for (uint32_t start = 0; start < state.size(); ++start) {
            chain.clear();
            for (uint32_t i = start; i != kRoot && state[i] == 0; i = out_.entries[i].parent) {
                chain.push_back(i);
            }
            for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
                LayoutEntry& entry = out_.entries[*it];
                const bool lost = entry.parent != kRoot &&
                                  (state[entry.parent] == 2 || out_.entries[entry.parent].type != FileType::directory);
                state[*it] = lost ? 2 : 1;
                if (lost) {
                    if (entry.initial || entry.made) {
                        count(Count::path_conflicts);
                    }
                    entry.initial = entry.made = false;
                }
                if (entry.type == FileType::unknown) {
                    entry.type = FileType::regular;
                }
                if (entry.type == FileType::directory) {
                    entry.size = 0;
                }
                // A name made anew may hold anything where a file was at first.
                if (entry.initial && entry.made) {
                    entry.changed_from = 0;
                    entry.changed_to = FileFacts::kEnd;
                }
            }
        }
    }

    /// Of a file that was there at first and keeps its place; kNowhere: it did not, or it is no such file.
    uint32_t initial_file(FileId id) const {
        const FileRow& row = tables_.files[id];
        const uint32_t at = entry_of_[id];
        if (at == kNowhere || at == kRoot || row.origin != Origin::existed || on_disk_[id] != at) {
            return kNowhere;
        }
        const LayoutEntry& entry = out_.entries[at];
        return entry.initial && !entry.made && entry.type == FileType::regular ? at : kNowhere;
    }

    void add_holes() {
        for (auto& [id, holes] : holes_) {
            const uint32_t at = initial_file(id);
            if (at == kNowhere || out_.entries[at].size != tables_.files[id].size) {
                continue;
            }
            holes.clip(out_.entries[at].size);
            out_.holes.emplace(at, std::move(holes));
        }
    }

    /// Names of one inode. What is done to it by one name is done by all.
    void add_hard_links() {
        each_further_name(
            tables_, [&](FileId id) { return initial_file(id) != kNowhere; },
            [&](FileId first, FileId id) {
                const uint32_t at = initial_file(id), one = initial_file(first);
                if (one != at) {
                    out_.hard_links.emplace(at, one);
                }
            });
        const auto merge = [](const LayoutEntry& from, LayoutEntry& to) {
            to.changed_from = std::min(to.changed_from, from.changed_from);
            to.changed_to = std::max(to.changed_to, from.changed_to);
            to.attributes |= from.attributes;
        };
        for (const auto& [name, one] : out_.hard_links) {
            merge(out_.entries[name], out_.entries[one]);
        }
        for (const auto& [name, one] : out_.hard_links) {
            merge(out_.entries[one], out_.entries[name]);
            out_.entries[name].size = out_.entries[one].size;
        }
    }

    void add_attributes() {
        for (const auto& [key, fact] : facts_.attributes) {
            const auto& [id, name] = key;
            if (!fact.there_at_first() || id >= tables_.files.size() || name >= tables_.strings.size() ||
                !filter_.keeps_file(tables_, id)) {
                continue;
            }
            uint32_t at = entry_of_[id];
            if (at == kNowhere || (at != kRoot && !out_.entries[at].initial)) {
                continue;
            }
            Attribute attribute{std::string(tables_.strings[name]), fact.size};
            const FileType type = at == kRoot ? FileType::unknown : out_.entries[at].type;
            if (!can_give(attribute) || (type != FileType::regular && type != FileType::directory)) {
                count(Count::attributes_left_out);
                continue;
            }
            if (const auto first = out_.hard_links.find(at); first != out_.hard_links.end()) {
                at = first->second;
            }
            Attributes& all = out_.attributes[at];
            const auto same = [&](const Attribute& one) { return one.name == attribute.name; };
            if (std::none_of(all.begin(), all.end(), same)) {
                all.push_back(std::move(attribute));
            }
        }
    }

    struct Listed {
        uint64_t bytes = 0;  // that the listing returned
        int64_t time = 0;
        uint64_t known_bytes = 0, known = 0;  // of entries that were there then
    };

    /// By entry, kRoot for the root.
    std::map<uint32_t, Listed> listed_directories() const {
        std::map<uint32_t, Listed> listed;
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const FileFacts& facts = facts_.files[id];
            const uint32_t at = entry_of_[id];
            if (facts.listed == 0 || at == kNowhere || lies_below(tables_.path(id), "/dev/shm")) {
                continue;
            }
            if (!can_have_others(at)) {
                continue;
            }
            Listed& directory = listed[at];
            if (facts.listed > directory.bytes) {
                directory.bytes = facts.listed;
                directory.time = facts.listed_at;
            }
        }
        return listed;
    }

    /// Which of the entries were there when their directory was listed.
    void add_known(std::map<uint32_t, Listed>& listed) const {
        enum : uint8_t { unnamed, absent, there };
        std::vector<uint8_t> state(out_.entries.size(), unnamed);
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const uint32_t at = entry_of_[id];
            if (at == kNowhere || at == kRoot || state[at] == there) {
                continue;
            }
            const auto directory = listed.find(out_.entries[at].parent);
            if (directory == listed.end()) {
                continue;
            }
            const FileFacts& facts = facts_.files[id];
            const int64_t time = directory->second.time;
            const bool made_before = facts.made == FileFacts::kNever || facts.made <= time || facts.used < facts.made;
            const bool was_there = (tables_.files[id].origin == Origin::existed || made_before) && facts.removed > time;
            state[at] = was_there ? there : absent;
        }
        for (uint32_t i = 0; i < out_.entries.size(); ++i) {
            const LayoutEntry& entry = out_.entries[i];
            const auto directory = listed.find(entry.parent);
            if (directory == listed.end() || !(state[i] == there || (state[i] == unnamed && entry.initial))) {
                continue;
            }
            directory->second.known_bytes += listed_bytes(entry.name().size());
            ++directory->second.known;
        }
    }

    /// Where files lay among those of their directory.
    void find_places() {
        constexpr uint64_t kUnknown = UINT64_MAX;  // after the others
        place_.assign(out_.entries.size(), kUnknown);
        std::vector<RecordedInode> inodes;
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const FileRow& row = tables_.files[id];
            const uint32_t at = row.inode == 0 ? kNowhere : initial_file(id);
            if (at != kNowhere && place_[at] == kUnknown) {
                place_[at] = row.inode;
                inodes.push_back({row.device, row.inode, out_.entries[at].parent, at});
            }
        }
        const RecordedFileSystems systems(log_.header());
        scatter_ = find_scatter(std::move(inodes), [&](uint64_t device) { return systems.type(device); });
    }

    /// What was there at first and stays. What the log removes must be empty by then.
    bool can_have_others(uint32_t directory) const {
        if (directory == kRoot) {
            return true;
        }
        const LayoutEntry& entry = out_.entries[directory];
        return entry.initial && !entry.made && !entry.gone && entry.type == FileType::directory;
    }

    void add_listing_entries() {
        std::map<uint32_t, Listed> listed = listed_directories();
        if (!listed.empty()) {
            add_known(listed);
        }
        for (const auto& [directory, found] : listed) {
            const uint64_t own = 2 * listed_bytes(1) + (directory == kRoot ? listed_bytes(kMarkerName.size()) : 0);
            const uint64_t known = found.known_bytes + own;
            if (found.bytes > known) {
                const uint64_t average = found.known == 0 ? 0 : found.known_bytes / found.known;
                add_others(directory, ListingNames::that_take(found.bytes - known, average));
            }
        }
        // Others of directories that were not listed: their number follows from where the files lay.
        for (const auto& [directory, scatter] : scatter_) {
            if (!scatter.tells_count() || listed.contains(directory) || !can_have_others(directory)) {
                continue;
            }
            uint64_t lengths = 0;
            for (const uint32_t entry : scatter.entries) {
                lengths += out_.entries[entry].name().size();
            }
            const uint64_t before = others_added_;
            add_others(directory, ListingNames::so_many(scatter.all_others, lengths / scatter.entries.size()));
            out_.unnamed_files += others_added_ - before;
        }
    }

    /// Empty files beside those of a directory, between them where it is known how they lay.
    void add_others(uint32_t directory, const ListingNames& names) {
        constexpr uint64_t kMost = uint64_t{1} << 21;  // of a log; each is an inode
        const uint64_t here = std::min(names.count(), kMost - others_added_);
        others_added_ += here;
        counted_[Count::listing_entries_left_out] += names.count() - here;
        const auto found = scatter_.find(directory);
        if (found == scatter_.end() || !found->second.dense) {
            for (uint64_t i = 0; i < here; ++i) {
                add_listing_entry(directory, names.name(i), UINT64_MAX);
            }
            return;
        }
        const InodeScatter& scatter = found->second;
        const std::vector<uint64_t> others = scatter.spread(here);
        uint64_t number = 0;
        for (size_t slot = 0; slot < others.size(); ++slot) {
            // Of entries with one place, that made last here comes last.
            const uint64_t place = slot == 0 ? 0 : place_[scatter.entries[slot - 1]];
            for (uint64_t i = 0; i < others[slot]; ++i) {
                add_listing_entry(directory, names.name(number++), place);
            }
        }
        out_.in_order.insert(directory);
    }

    void add_listing_entry(uint32_t directory, const std::string& name, uint64_t place) {
        const std::string path = directory == kRoot ? name : out_.entries[directory].path + "/" + name;
        const auto fresh = static_cast<uint32_t>(out_.entries.size());
        if (index_at(path) != fresh) {
            return;
        }
        LayoutEntry& entry = out_.entries[fresh];
        entry.parent = directory;
        entry.type = FileType::regular;
        entry.listing = true;
        entry.initial = listing_ == ListingEntries::add;
        entry.made = !entry.initial;
        place_.push_back(place);
    }

    /// A file in what an op found not to be empty, where nothing is known to be in it.
    void fill_directories() {
        std::set<uint32_t> empty;
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            const uint32_t at = entry_of_[id];
            if (facts_.files[id].not_empty && at != kNowhere && at != kRoot && can_have_others(at)) {
                empty.insert(at);
            }
        }
        for (size_t i = 0; i < out_.entries.size() && !empty.empty(); ++i) {
            empty.erase(out_.entries[i].parent);
        }
        for (const uint32_t directory : empty) {
            LayoutEntry& entry = entry_at(out_.entries[directory].path + "/.reprise-something");
            entry.parent = directory;
            entry.type = FileType::regular;
            entry.initial = true;
            place_.push_back(UINT64_MAX);
        }
    }

    void group() {
        out_.first.assign(out_.entries.size() + 2, 0);
        const auto slot = [](uint32_t parent) { return parent == kRoot ? size_t{0} : size_t{parent} + 1; };
        for (const LayoutEntry& entry : out_.entries) {
            ++out_.first[slot(entry.parent) + 1];
        }
        for (size_t i = 1; i < out_.first.size(); ++i) {
            out_.first[i] += out_.first[i - 1];
        }
        out_.children.resize(out_.entries.size());
        auto next = out_.first;
        for (uint32_t i = 0; i < out_.entries.size(); ++i) {
            out_.children[next[slot(out_.entries[i].parent)]++] = i;
        }
        const auto before = [&](uint32_t a, uint32_t b) { return std::pair(place_[a], a) < std::pair(place_[b], b); };
        for (size_t i = 0; i + 1 < out_.first.size(); ++i) {
            const auto at = [&](uint64_t n) { return out_.children.begin() + static_cast<ptrdiff_t>(n); };
            if (!std::is_sorted(at(out_.first[i]), at(out_.first[i + 1]), before)) {
                std::sort(at(out_.first[i]), at(out_.first[i + 1]), before);
            }
        }
    }

    const LogReader& log_;
    const Tables& tables_;
    const OpFilter& filter_;
    const PathMap& maps_;
    const ListingEntries listing_;
    const LogFacts facts_;
    Holes holes_;
    static constexpr uint32_t kNowhere = kRoot - 1;
    std::vector<uint32_t> entry_of_;  // by FileId; kRoot: the root itself
    std::vector<uint32_t> on_disk_;   // by FileId: the entry that takes room; kRoot: none does
    std::vector<uint64_t> place_;     // by entry: among those of its directory
    std::map<uint32_t, InodeScatter> scatter_;
    uint64_t others_added_ = 0;
    std::map<Count, uint64_t> counted_;
    std::vector<TimedRename> renames_;
    std::map<std::string, FileType> moved_names_;         // see note_moved()
    std::unordered_map<std::string, std::string> links_;  // path to target, both from the root
    Layout out_;
    TextIndex<PathOf> index_{PathOf{out_.entries}};
};

}  // namespace

RangeSet Layout::data_of(uint32_t entry, uint64_t from, uint64_t to) const {
    RangeSet data;
    data.add(from, to);
    data.clip(to);
    const auto found = holes.find(entry);
    return found == holes.end() ? data : data.without(found->second);
}

Layout make_layout(const LogReader& log, const OpFilter& filter, const PathMap& maps, ListingEntries listing) {
    return LayoutMaker(log, filter, maps, listing).make();
}

}  // namespace reprise
