// SPDX-License-Identifier: MIT
// Which files there should be after which op of a log, of which size, and what each of their bytes should be.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/plan/plan.h"

namespace reprise {

/// What some bytes of a file should be.
struct Source {
    enum class Is : uint8_t {
        zeros,     // never written, or a hole
        prepared,  // fill_random()
        written,   // fill_written()
        unknown,   // not checked
    } is = Is::zeros;
    uint64_t seed = 0;
    uint64_t shift = 0;  // offset in that content less the offset in the file
    TaskId task = 0;     // who wrote them; 0: nobody
    uint64_t op = 0;
    int64_t end = 0;  // ns, when that op ended

    bool same_bytes(const Source& other) const {
        return is == other.is && (is == Is::zeros || (seed == other.seed && shift == other.shift));
    }
};

/// The bytes [from, from + out.size()) of a file as that source has them. Not of unknown ones.
void fill_from(const Source& source, uint64_t from, std::span<std::byte> out);

struct Extent {
    uint64_t from = 0, to = 0;
    Source source;
};

/// The bytes of one file. What was never put is zeros.
class Extents {
public:
    void put(uint64_t from, uint64_t to, const Source& source);
    /// Forgets what lies at or beyond `size`.
    void cut(uint64_t size);
    /// All of [from, to), in order.
    std::vector<Extent> of(uint64_t from, uint64_t to) const;

private:
    void split(uint64_t at);

    struct Rest {
        uint64_t to = 0;
        Source source;
    };
    std::map<uint64_t, Rest> extents_;  // by from; disjoint
};

/// A call that promised that what was written before its begin is on the device from its end on.
struct Sync {
    int64_t begin = 0, end = 0;  // ns
    TaskId task = 0;
    uint64_t op = 0;
};

struct ModelFile {
    FileType type = FileType::regular;
    uint64_t size = 0;
    Extents extents;
    std::string target;                                // of a symbolic link
    bool unordered = false;                            // its size and content depend on what the log cannot tell
    HandleId appends = 0;                              // the instance that appended to it
    TaskId appender = 0;                               // who did so last
    int64_t appended = INT64_MIN;                      // ns, when that ended
    uint32_t names = 0;                                // that it has now
    std::string path;                                  // its latest name
    std::vector<std::pair<std::string, int64_t>> had;  // names, and when it lost them, ns; INT64_MAX: it has it
    std::vector<Sync> syncs;                           // by begin
    int64_t resized = INT64_MIN;                       // ns, when it was last cut
};
using ModelFilePointer = std::shared_ptr<ModelFile>;

/// Follows a log's ops, in the order of their begins.
class FileModel {
public:
    /// The plan outlives this.
    explicit FileModel(const Plan& plan) : plan_(plan) {}

    /// What lies there before the first op. `path` is relative to the root; "." itself is none of it.
    void add(const std::string& path, FileType type, uint64_t size, const std::string& target);
    void add_hole(const std::string& path, uint64_t from, uint64_t to);
    void add_link(const std::string& path, const std::string& first);

    /// Does what the op did: one with a result below 0 did nothing.
    void apply(TaskId task, uint64_t number, const Op& op);

    /// The file of an open instance; null: not known.
    ModelFilePointer of(HandleId handle);
    const std::map<std::string, ModelFilePointer>& names() const { return names_; }
    ModelFilePointer find(const std::string& path) const;
    /// Files that the ops made or opened, in that order; also those without a name.
    const std::vector<ModelFilePointer>& files() const { return files_; }

    /// Files whose content is not checked, by reason.
    const std::map<std::string, uint64_t>& unchecked() const { return unchecked_; }
    void doubt(ModelFile& file, const std::string& reason);
    /// Those of the whole file system.
    const std::vector<Sync>& syncs() const { return syncs_; }

    /// Whether a replay keeps the file in memory, so that it is nowhere in the tree.
    static bool in_memory(const FileRow& file) { return file.role == Role::ipc && file.type != FileType::fifo; }

private:
    std::string path_of(FileId file) const;
    std::string resolved(const std::string& path, bool last) const;
    ModelFilePointer make(const std::string& path, FileType type);
    void name(const std::string& path, const ModelFilePointer& file);
    void unname(const std::string& path, int64_t time);
    void open(const Op& op);
    /// Whether what is written by the instance goes to the end by now.
    bool appends(HandleId handle) const;
    void write(TaskId task, uint64_t number, const Op& op);
    void copy(TaskId task, uint64_t number, const Op& op);
    void request(const Op& op);
    void map(const Op& op);
    /// Bytes stored through a mapping.
    void touch(TaskId task, uint64_t number, const Op& op);
    void allocate(const Op& op);
    void resize(ModelFile& file, uint64_t size, const Op& op);
    void put(ModelFile& file, uint64_t from, uint64_t to, const Source& source, const Op& op);
    void rename(const Op& op);
    ModelFilePointer behind_descriptor(FileId file) const;
    void move(const std::string& from, const std::string& to, int64_t time);
    std::vector<std::string> below(const std::string& directory) const;
    void exchange(const std::string& a, const std::string& b, int64_t time);
    void link(const Op& op);
    void synced(TaskId task, uint64_t number, const Op& op);

    const Plan& plan_;
    std::map<std::string, ModelFilePointer> names_;
    std::vector<ModelFilePointer> files_;
    std::unordered_map<HandleId, ModelFilePointer> handles_;
    std::unordered_map<HandleId, bool> appends_;  // where F_SETFL changed it
    struct Mapped {
        ModelFilePointer file;
        uint64_t begin = 0;  // in the file
    };
    std::unordered_map<uint32_t, Mapped> maps_;              // that may be written to
    std::unordered_map<FileId, ModelFilePointer> nameless_;  // made last in a directory by O_TMPFILE
    std::vector<Sync> syncs_;
    std::map<std::string, uint64_t> unchecked_;
};

}  // namespace reprise
