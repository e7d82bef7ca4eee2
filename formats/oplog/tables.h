// SPDX-License-Identifier: MIT
// The tables beside the ops: strings, files, handles, processes, tasks, counters, header. Row 0 of each is "none".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/oplog/op.h"
#include "formats/support/counters.h"
#include "formats/support/text_store.h"

namespace reprise {

enum class FileType : uint8_t { unknown, regular, directory, symlink, fifo, socket, character, block, anonymous };
std::string_view file_type_name(FileType type);
/// Of st_mode; logs may come from another system than the one that reads them.
FileType file_type_of_mode(uint32_t stat_mode);

/// What a file is for; decided by formats/assemble/roles.h.
enum class Role : uint8_t { unknown, dataset, checkpoint, log, cache, ipc, program, system };
std::string_view role_name(Role role);
std::optional<Role> role_by_name(std::string_view name);

/// Whether the file was there before the recording touched it.
enum class Origin : uint8_t {
    unknown,
    existed,  // `prepare` makes it
    created,  // an op of the log makes it
    absent,   // only ever looked for in vain
};
std::string_view origin_name(Origin origin);

/// A file is (device, inode, generation). A path deleted and made anew is another row.
struct FileRow {
    StringId path = 0;  // absolute and lexically clean where the source allows
    uint32_t generation = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t size = 0;  // bytes: from stat or the inode when first seen, else the furthest offset used
    bool size_exact = false;
    FileType type = FileType::unknown;
    Role role = Role::unknown;
    Origin origin = Origin::unknown;
    uint32_t mode = 0;    // permission bits; 0: unknown
    StringId target = 0;  // of a symbolic link

    bool operator==(const FileRow&) const = default;
};
static_assert(sizeof(FileRow) == 48, "a log may have millions");

enum class HandleKind : uint8_t { file, directory, pipe, socket, eventfd, memfd, epoll, other };
std::string_view handle_kind_name(HandleKind kind);

/// An open instance (open file description).
struct HandleRow {
    FileId file = 0;
    int64_t flags = 0;  // O_*
    HandleKind kind = HandleKind::file;
    bool inherited = false;  // open before the recording began: no op of the log makes it
    /// For inherited instances: where they were first seen.
    ProcessId process = 0;
    int32_t fd = -1;

    bool operator==(const HandleRow&) const = default;
};

struct ProcessRow {
    int32_t pid = 0;
    ProcessId parent = 0;  // 0: not recorded
    StringId command = 0;
    StringId host = 0;

    bool operator==(const ProcessRow&) const = default;
};

struct TaskRow {
    ProcessId process = 0;
    int32_t tid = 0;
    StringId name = 0;

    bool operator==(const TaskRow&) const = default;
};

/// What a log says of itself. `extra` holds the facts of header_facts.h; unknown keys of newer versions are kept.
struct Header {
    uint32_t time_unit_ns = 1;   // resolution of the stored times
    int64_t origin_unix_ns = 0;  // wall clock at log time 0; 0: unknown
    std::string clock;           // e.g. "monotonic", "realtime", "virtual"
    std::string source;          // e.g. "strace", "dftracer", "replay", "capture"
    std::string tool;            // name and version of the writer
    std::string host;
    std::string kernel;
    std::string command;
    std::map<std::string, std::string> extra;

    bool operator==(const Header&) const = default;
};

/// Interned byte strings; equal strings have equal ids. Not only UTF-8.
class StringTable {
public:
    StringTable();
    StringId intern(std::string_view text);
    /// Appends without looking for an equal one (the reader's way); returns its id.
    StringId append(std::string_view text);
    /// Followed by a NUL. Empty for 0 and for ids that are not in the table.
    std::string_view operator[](StringId id) const { return id < views_.size() ? views_[id] : ""; }
    size_t size() const { return views_.size(); }  // with row 0

private:
    TextStore texts_;
    std::vector<std::string_view> views_;
    std::unordered_map<std::string_view, StringId> ids_;
};

struct Tables {
    Tables();
    StringTable strings;
    std::vector<FileRow> files;
    std::vector<HandleRow> handles;
    std::vector<ProcessRow> processes;
    std::vector<TaskRow> tasks;
    std::vector<Counter> counters;  // no row 0

    std::string_view path(FileId file) const {
        return file < files.size() ? strings[files[file].path] : std::string_view{};
    }
    /// File of an op: the one it names, else that of its handle; 0 if neither.
    FileId file_of(const Op& op) const {
        if (op.file) {
            return op.file;
        }
        return op.handle < handles.size() ? handles[op.handle].file : 0;
    }
    /// The second file of an op, likewise.
    FileId file2_of(const Op& op) const {
        if (op.file2) {
            return op.file2;
        }
        return op.handle2 < handles.size() ? handles[op.handle2].file : 0;
    }
    /// See formats/support/counters.h.
    void count(Count what, uint64_t n = 1, std::string_view detail = {}) { reprise::count(counters, what, n, detail); }
    void count(const Counter& other) { reprise::count(counters, other); }
    /// Sum of the counters of severity `loss`.
    uint64_t losses() const;
};

}  // namespace reprise
