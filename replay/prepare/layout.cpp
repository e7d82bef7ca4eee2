// SPDX-License-Identifier: MIT
// The layout of a root: which paths were there at first, and which ones the log makes.
#include "replay/prepare/layout.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "formats/support/path.h"
#include "replay/prepare/facts.h"

namespace reprise {

namespace {

constexpr uint32_t kRoot = LayoutEntry::kRoot;

std::string_view parent_of(std::string_view path) {
    const size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

/// Finds entries by path. Open addressing with part of the hash in the slot: one cache miss per file of a log with
/// millions of them, where a table of nodes takes several.
class PathIndex {
public:
    explicit PathIndex(const std::deque<LayoutEntry>& entries) : entries_(entries) {}

    void reserve(size_t entries) {
        size_t slots = 64;
        while (slots < entries * 2) {
            slots *= 2;
        }
        if (slots > slots_.size()) {
            rehash(slots);
        }
    }
    /// The entry of that path, or `fresh` after noting that it is about to be the entry of that path.
    uint32_t find_or_add(std::string_view path, uint32_t fresh) {
        reserve(++used_);
        const size_t hash = std::hash<std::string_view>()(path);
        const auto tag = static_cast<uint32_t>(hash >> 32);
        for (size_t at = hash & mask();; at = (at + 1) & mask()) {
            Slot& slot = slots_[at];
            if (slot.entry == kFree) {
                slot = {tag, fresh};
                return fresh;
            }
            if (slot.tag == tag && entries_[slot.entry].path == path) {
                --used_;
                return slot.entry;
            }
        }
    }

private:
    static constexpr uint32_t kFree = kRoot;
    struct Slot {
        uint32_t tag = 0;
        uint32_t entry = kFree;
    };
    size_t mask() const { return slots_.size() - 1; }
    void rehash(size_t slots) {
        std::vector<Slot> old(slots);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.entry == kFree) {
                continue;
            }
            size_t at = std::hash<std::string_view>()(entries_[slot.entry].path) & mask();
            while (slots_[at].entry != kFree) {
                at = (at + 1) & mask();
            }
            slots_[at] = slot;
        }
    }

    const std::deque<LayoutEntry>& entries_;
    std::vector<Slot> slots_;
    size_t used_ = 0;
};

class LayoutMaker {
public:
    LayoutMaker(const LogReader& log, const OpFilter& filter, const PathMap& maps)
        : tables_(log.tables()), filter_(filter), maps_(maps), facts_(gather_facts(log)) {}

    Layout make() {
        find_renames();
        find_links();
        index_.reserve(tables_.files.size());
        for (FileId id = 1; id < tables_.files.size(); ++id) {
            add_row(id);
        }
        add_growth();
        add_parents();
        settle();
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
            if (type_of(rename.from) != FileType::directory && type_of(rename.to) != FileType::directory) {
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
            out_.directory_renames.push_back({*from, *to});
            renames_.push_back({rename.time, std::move(*from), std::move(*to)});
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
            initial = true;
            made = false;
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
        const FileType type = facts.nameless ? FileType::directory : type_of(id);
        path = locate(std::move(*path), std::min(facts.made, facts.used), type != FileType::symlink);
        if (!path) {
            return count(Count::links_unresolved);
        }
        if (*path == ".") {
            return;
        }
        LayoutEntry& entry = entry_at(*path);
        if (type == FileType::regular || type == FileType::unknown) {
            note_disk(id, index_at(*path));
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
        entry.size = std::max(entry.size, row.size);
        if (type != FileType::directory && !row.size_exact && row.origin != Origin::created) {
            count(Count::sizes_guessed);
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
        entry.attributes |= facts.attributes;
        entry.changed_from = std::min(entry.changed_from, facts.changed_from);
        entry.changed_to = std::max(entry.changed_to, facts.changed_to);
    }

    void add_link(LayoutEntry& entry, const FileRow& row, const FileFacts& facts) {
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
        if (!facts.opened) {
            return;
        }
        // It was opened through the link, so something was there.
        const auto end = locate(entry.path, FileFacts::kNever, true);
        if (!end || *end == "." || *end == entry.path) {
            return count(Count::links_unresolved);
        }
        LayoutEntry& file = entry_at(*end);
        if (!file.initial && !file.made) {
            file.initial = true;
            file.size = facts.reach;
        }
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
    }

    const Tables& tables_;
    const OpFilter& filter_;
    const PathMap& maps_;
    const LogFacts facts_;
    std::vector<uint32_t> on_disk_;  // by FileId: the entry that takes room; kRoot: none does
    std::map<Count, uint64_t> counted_;
    std::vector<TimedRename> renames_;
    std::unordered_map<std::string, std::string> links_;  // path to target, both from the root
    Layout out_;
    PathIndex index_{out_.entries};
};

}  // namespace

Layout make_layout(const LogReader& log, const OpFilter& filter, const PathMap& maps) {
    return LayoutMaker(log, filter, maps).make();
}

}  // namespace reprise
