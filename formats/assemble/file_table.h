// SPDX-License-Identifier: MIT
// The files of a recording while it is assembled: which row a path means at this moment, what is known of its size, and
// whether it was there before. A row is one name in one generation: a path removed and made anew is another row, and so
// is the new name of a rename or a hard link, because the replay finds files by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/assemble/found_at_end.h"
#include "formats/assemble/roles.h"
#include "formats/oplog/oplog.h"

namespace reprise {

struct FileState {
    enum class Presence : uint8_t { unknown, absent, present };
    enum class SizeSource : uint8_t { furthest, end_of_file, stat };

    FileId id = 0;  // 0 until an op or a handle refers to it
    StringId path = 0;
    uint32_t generation = 0;
    Presence presence = Presence::unknown;
    bool existed = false;           // before the recording touched it
    bool created = false;           // by the recording
    bool creation_guessed = false;  // O_CREAT without O_EXCL on a path never seen before
    bool made_unseen = false;       // by the recording, but by no call of it
    bool gone = false;              // removed or renamed: no path leads here
    FileType type = FileType::unknown;
    uint32_t mode = 0;
    uint64_t device = 0, inode = 0;
    uint32_t inode_generation = 0;

    /// Size at first sight. `changed`: the recording altered the size, so that what is seen from now on is its own
    /// doing.
    SizeSource size_source = SizeSource::furthest;
    uint64_t size = 0;
    bool changed = false;
    bool truncated = false;
    std::optional<uint64_t> current_size;  // bytes, now
    uint64_t greatest = 0;                 // bytes, greatest extent seen at any time
    uint64_t written_end = 0;              // furthest byte written
    uint64_t appended = 0;                 // bytes written at an end that is not known

    bool is_link = false;  // seen by lstat or readlink
    StringId target = 0;
    uint64_t target_bytes = 0;  // where the target itself is not known
    bool followed = false;      // used through the link

    bool written = false, read = false, renamed_into = false, synced = false;
    uint64_t bytes_written = 0;
    FileState* moved_from = nullptr;  // the name it had before a rename, or the other name of a hard link
    FileState* moved_to = nullptr;
};

class FileTable {
public:
    explicit FileTable(LogWriter& writer) : writer_(writer) {}

    /// Paths of the recording's own files.
    void set_own(std::vector<std::string> paths) { own_ = std::move(paths); }
    bool is_own(FileId file) const {
        return !own_ids_.empty() && std::find(own_ids_.begin(), own_ids_.end(), file) != own_ids_.end();
    }
    /// What the absolute, clean path means now.
    FileState& at(std::string_view path);
    /// The row's id; adds the row on first use.
    FileId id(FileState& file);
    std::string path_of(const FileState& file) const;
    /// The same by the name it has now, if it was renamed since.
    std::string present_path_of(const FileState& file) const;
    /// What the link at a clean path holds, which was there before the recording; empty: it is none; nothing: it is not
    /// known what is there. For what the recording's calls do not tell.
    using LinkOf = std::function<std::optional<std::string>(const std::string& path)>;
    /// What becomes of the last part of a path where it is a link: it is meant itself; it is followed; it is followed
    /// and leads to a directory.
    enum class LastPart : uint8_t { itself, followed, directory };
    /// Where a clean path leads through symbolic links: those that the recording made, and those that were there before
    /// and lead to directories. Those that were there before and lead to files stand for what they lead to.
    std::string behind_links(std::string_view path, LastPart last, const LinkOf& link_of);
    /// A link to a directory, by what the source says that an open led to.
    void saw_directory_link(std::string_view link, std::string_view target);
    /// A directory that lies at `target`, too, until it is unmounted there.
    void bound(std::string_view target, std::string_view source);
    void unbound(std::string_view target);
    /// `path` as seen from `directory`, which is absolute: clean, and with links followed where ".." stands behind
    /// them.
    std::string resolved(std::string_view directory, std::string_view path, const LinkOf& link_of) const;

    /// The path was found, or was looked for in vain.
    FileState& present(std::string_view path);
    FileState& absent(std::string_view path);
    /// An open with O_CREAT succeeded. `created`: whether it made the file, where the source knows (O_EXCL,
    /// FMODE_CREATED).
    FileState& opened_to_create(std::string_view path, std::optional<bool> created);
    /// Of an open that made a file, and ended after another had found that very file there: now made. nullptr: not so.
    FileState* found_before_made(std::string_view path, uint64_t device, uint64_t inode, uint32_t inode_generation);
    /// mkdir, symlink, O_TMPFILE: the file is new.
    FileState& made(std::string_view path);
    FileState& removed(std::string_view path);
    struct Names {
        FileState& from;
        FileState& to;
    };
    Names renamed(std::string_view from, std::string_view to, bool exchange);
    Names linked(std::string_view from, std::string_view to);
    /// `other` is a second name for what `file` is (the source resolved a symbolic link).
    void alias(std::string_view other, FileState& file);
    /// The latest file of that name that is gone; a new row where there is none.
    FileState& deleted(std::string_view path);
    /// A file without a name any path leads to.
    FileState& unnamed(std::string_view label);

    void saw_attributes(FileState& file, std::optional<uint64_t> size, std::optional<uint32_t> stat_mode,
                        bool no_follow);
    void saw_inode(FileState& file, uint64_t device, uint64_t inode, uint32_t inode_generation);
    /// Whether the file is known to be another one than that of this inode.
    static bool is_another(const FileState& file, uint64_t device, uint64_t inode, uint32_t inode_generation);
    /// The path leads to another file than before, though no call of the recording made it so.
    FileState& replaced(std::string_view path);
    /// A row of its own for a file that is open and has lost its name; nullptr: it has one.
    FileState* without_name(FileState& file);
    /// The latest file seen with that inode; nullptr: none.
    FileState* by_inode(uint64_t device, uint64_t inode, uint32_t inode_generation);
    void saw_link(FileState& file, std::string_view target);
    /// `asked` and `got`: bytes; `certain`: the offset is not a guess.
    void did_read(FileState& file, int64_t offset, int64_t asked, int64_t got, bool certain);
    /// Where an append goes: the end of the file, if known.
    std::optional<int64_t> end_of(const FileState& file) const;
    void did_write(FileState& file, int64_t offset, int64_t bytes, bool at_unknown_end);
    void did_truncate(FileState& file, int64_t size);
    void did_map(FileState& file, int64_t offset, int64_t size);

    /// Settles sizes, origins, links and roles, and rewrites all rows. `roles`: what the user decided; may be null.
    /// `find`: for files that were there before and of which no call told what they are; may be empty.
    void finish(const RoleOverrides* roles = nullptr, const FindAtEnd& find = {});

private:
    struct Slot {
        FileState* state = nullptr;
        FileState* last_gone = nullptr;
        uint32_t generations = 0;
        bool removed = false;  // the next generation is known to be absent
    };
    struct Move {
        std::string from, to;
    };
    Slot& slot(StringId path);
    FileState& make(StringId path, Slot& at);
    void retire(StringId path);
    bool has_name(const FileState& file, std::string_view path);
    FileState& move(FileState& from, std::string_view to);
    static FileState* first_name(const FileState& file);
    void move_children(std::string_view from, std::string_view to);
    FileState* from_moved_directory(std::string_view path);
    bool came_along(std::string_view path);
    bool parent_is_new(std::string_view path);
    void was_there(FileState& file);
    void note_link(FileState& file);
    std::string resolved(std::string_view directory, std::string_view path, const LinkOf& link_of, int& links) const;
    std::string behind_links(std::string_view path, LastPart last, const LinkOf& link_of, int& links, bool& sure);
    std::optional<std::string> target_of(const std::string& path, const LinkOf& link_of) const;
    bool made_or_removed(std::string_view path);
    void forget_directories() { real_directories_.clear(); }
    void settle_links();
    void keep_followed_links();
    void find_unknown(const FindAtEnd& find);
    std::vector<std::string_view> all_paths() const;
    std::unordered_set<std::string_view> parents() const;
    void settle_roles(const RoleOverrides* overrides);
    FileRow row_of(const FileState& file) const;

    LogWriter& writer_;
    std::deque<FileState> states_;
    std::deque<Slot> slots_;  // by StringId of the path; growing keeps references
    std::vector<Move> moved_directories_;
    /// Links by path, those that are gone among them: that the recording made, and that it read.
    std::map<std::string, const FileState*, std::less<>> made_links_, seen_links_;
    std::unordered_map<std::string, std::string> told_links_;        // directories by link (saw_directory_link())
    std::unordered_map<std::string, std::string> bound_;             // directories by where they are mounted, too
    std::unordered_map<std::string, std::string> real_directories_;  // where paths lead as long as no link changes
    std::map<std::string, std::string> followed_links_;  // that were there before and that paths led through; targets
    std::vector<std::string> own_;
    std::vector<FileId> own_ids_;
    std::map<std::pair<uint64_t, uint64_t>, FileState*> of_inode_;  // by device and inode
    std::map<const FileState*, FileState*> without_name_;           // what without_name() made, itself included
};

}  // namespace reprise
