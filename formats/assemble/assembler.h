// SPDX-License-Identifier: MIT
// Turns calls as a tracer saw them (pid, fd number, path) into ops (task, handle, file, explicit offset).
// Importers and capture feed it; it owns descriptor tables, file generations, positions, sizes and roles.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/assemble/found_at_end.h"
#include "formats/assemble/roles.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// An open instance as described by a source that reads the kernel's structures.
struct SeenInstance {
    uint64_t key = 0;  // names the instance while it lives, and may name another one later; 0: nothing is known
    HandleKind kind = HandleKind::file;
    FileType type = FileType::unknown;
    uint64_t device = 0, inode = 0;  // of the file, not as stat reports them; inode 0: unknown
    uint32_t generation = 0;         // of the inode
    uint64_t peer = 0;  // sockets: inode of the other end, or the name of a connection's (kConnection); 0: unknown
    int64_t flags = 0;  // O_*
    std::optional<uint64_t> size = {};  // bytes, of a regular file that was there before the recording
    std::optional<int64_t> when;        // it was seen then; else when its call began

    /// In `peer`: it is no inode number. The two ends of a connection differ in the last bit.
    static constexpr uint64_t kConnection = uint64_t{1} << 63U;
};

/// One call as its source saw it. Only what the source knows is filled in. Times are ns since the origin of the log.
///
/// Calls by path: `path` empty means the descriptor `fd` itself (AT_EMPTY_PATH). A relative `path` starts at
/// `directory`, else at the directory open as `fd`, else at the process's current directory; `path2` likewise with
/// fd2_path and fd2. Makers of descriptors: open gives the descriptor in `result`; pipe in fd and fd2 (arg as in
/// ops.def). close with fd2 >= 0 is close_range: all descriptors fd..fd2, with its CLOSE_RANGE_* in flags. Copies
/// (sendfile...): from fd at offset to fd2 at offset2. Mappings: `address` is where mmap put it, and the argument of
/// the others; mremap: address, arg old size, size new size, address2 the new place. Asynchronous requests: fd2 where
/// the request names a file by another number than a descriptor's; an open with fd2 >= 0 made such a file and no
/// descriptor.
struct RawCall {
    int32_t pid = 0, tid = 0;
    OpKind kind = OpKind::read;
    int64_t begin = 0, duration = 0;
    int64_t preempted = 0;  // ns of the duration: others had the processor
    int64_t result = 0;     // -errno on failure
    bool result_known = true;
    int32_t fd = -1, fd2 = -1;
    std::string_view fd_path, fd2_path;  // what the source says the descriptor is (strace -y); empty: unknown
    /// Directory of a relative path (AT_FDCWD or a dirfd); empty: the process's current directory as tracked.
    std::string_view directory;
    std::string_view path, path2, text;      // raw bytes as passed to the call
    std::optional<int64_t> offset, offset2;  // unknown: the position is followed per open instance
    std::optional<int64_t> position;         // where a call at the position found it, if the source can tell
    int64_t size = 0, flags = 0, mode = 0, arg = 0;
    uint64_t address = 0, address2 = 0;  // of mappings
    std::span<const int64_t> list;
    /// Attributes of the file, where the call's result shows them.
    std::optional<uint64_t> stat_size;
    std::optional<uint32_t> stat_mode;  // with S_IFMT
    uint64_t device = 0, inode = 0;
    std::string_view link_target;
    std::optional<bool> created;  // open with O_CREAT: whether it made the file (FMODE_CREATED)
    /// What fd and fd2 are (of relative paths: their directories), and what the call made: the instance in `result`, or
    /// those in fd and fd2 of pipe.
    const SeenInstance *seen = nullptr, *seen2 = nullptr, *made = nullptr, *made2 = nullptr;
    TaskId peer = 0;       // spawn: the child, where begin_task made it already; join: who ended
    uint32_t request = 0;  // of asynchronous ones
};

/// What a call that makes two files share blocks asks for; makes it a copy.
struct CloneRange {
    int64_t offset = 0, to = 0;  // bytes, in the source and in the destination
    int64_t bytes = 0;           // 0: to the end of the source
    int64_t end = 0;             // of the source; bytes
    void fill(RawCall& call) const;
};

/// What mlock, mlock2, mlockall and munlockall do besides locking: false where the call, which shall be an madvise,
/// brings no pages in. `locks_all`: whether mappings that the process makes from now on are populated.
bool lock_memory(int nr, RawCall& call, bool& locks_all);

/// What the assembler made of a call.
struct CallEffect {
    TaskId task = 0;
    uint64_t first = 0;  // number of its first op, where Options::in_order is set
    uint64_t ops = 0;
    OpKind kind = OpKind::wait;  // of the last of them
    /// Bytes moved through a pipe, socket or eventfd.
    struct Moved {
        uint64_t channel = 0;  // 0: none
        int64_t from = 0, to = 0;
        bool counts_bytes = false;  // else an eventfd, whose writes add up
    };
    Moved received, sent;
};

/// Feed calls in the order of their effect: opens (and whatever makes a descriptor) by their end, closes by their
/// begin, anything else by its begin. Ops reach the writer sorted by begin within each task.
class Assembler {
public:
    struct Options {
        bool explicit_offsets = false;  // the source knows offsets itself; do not follow positions
        /// Data ops on descriptors the source never opened make an inherited instance (counted).
        bool adopt_unknown_fds = true;
        std::string_view initial_directory = "/";
        /// The ops of a task come in their final order, so that their numbers are known at once; an op that begins
        /// before its predecessor is moved. Ops are held until release().
        bool in_order = false;
        const RoleOverrides* roles = nullptr;  // outlives the assembler
        /// Paths of the recording itself: calls on them are counted, and the files get the role system.
        std::vector<std::string> own_files = {};
        /// What the symbolic link at a clean path held before the recording, as a process sees it; empty: it was none;
        /// nothing: it is not known. Asked where the calls so far do not tell.
        std::function<std::optional<std::string>(int32_t pid, const std::string& path)> link_of = {};
        /// What is at a path as the recording ends, where that can be asked for.
        FindAtEnd find_at_end = {};
        /// Whether a rename from one path to the other, that has begun, has not been fed yet, as its call had not
        /// returned: others may see its effect by then.
        std::function<bool(std::string_view from, std::string_view to)> renames_now = {};
        /// The directory that a link which the job changed led to, if `rest` below it is the file of that inode; empty:
        /// it is not known.
        std::function<std::string(const std::string& link, std::string_view rest, uint64_t inode)> directory_was = {};
    };
    /// The writer outlives the assembler.
    Assembler(LogWriter& writer, Options options);
    explicit Assembler(LogWriter& writer);
    ~Assembler();

    /// Task of (pid, tid), made on first use.
    TaskId task(int32_t pid, int32_t tid);
    void set_command(int32_t pid, std::string_view command);
    void set_host(int32_t pid, std::string_view host);
    /// chdir: where relative paths of the process start from now on. A relative `directory` starts at the old one.
    /// `tid` here and below: the thread that asked, as it may have taken its own out of what is shared (unshare()).
    /// 0: unknown, the process's first one.
    void set_directory(int32_t pid, std::string_view directory, int32_t tid = 0);
    /// umask: what it makes from now on lacks these permissions.
    void set_umask(int32_t pid, int64_t mask, int32_t tid = 0);
    /// A bind mount: the directory `source` is at `target`, too, for all processes; until it is unmounted there.
    void bound(int32_t pid, std::string_view source, std::string_view target, int32_t tid = 0);
    void unbound(int32_t pid, std::string_view target, int32_t tid = 0);
    /// unshare: from now on the thread has its own copy of what the CLONE_* flags name: CLONE_FS (and CLONE_NEWNS) of
    /// current directory and umask, CLONE_FILES of the descriptor table.
    void unshare(int32_t pid, int32_t tid, int64_t flags);
    /// A descriptor made by a call outside the op table (socket, epoll_create, SCM_RIGHTS...). `description` as in
    /// fd_path.
    void adopt(int32_t pid, int32_t fd, HandleKind kind, int64_t flags = 0, std::string_view description = {},
               int32_t tid = 0);

    /// kind spawn: `arg` is the child's pid/tid, flags the CLONE_* flags (CLONE_FILES shares the descriptor table,
    /// CLONE_FS current directory and umask, else they are copied; CLONE_THREAD makes a thread). exec closes
    /// close-on-exec descriptors. exit ends the task.
    CallEffect call(const RawCall& call);
    /// As call(), for a call whose ops get their place later: the effects happen now, and the ops are returned, to be
    /// passed to op() later. Not for calls with lists.
    std::vector<Op> effects_of(const RawCall& call);

    /// A task that begins now: thread of pid, or another process (by `flags` as of spawn), a child of (parent, ptid).
    TaskId begin_task(int32_t parent, int32_t ptid, int32_t pid, int32_t tid, int64_t flags);
    /// A descriptor (-1: only the instance) that no call of the op table made. `path`: of its file, empty:
    /// unknown.
    enum class Came : uint8_t { inherited, received, made };
    void adopt(int32_t pid, int32_t fd, const SeenInstance& seen, std::string_view path, Came how, int32_t tid = 0);
    /// A thread that called exec continues under the number of its process's first thread.
    void rename_task(int32_t pid, int32_t old_tid, int32_t tid);
    void name_task(TaskId task, std::string_view name);
    /// Where relative paths of the process start.
    std::string directory_of(int32_t pid);
    /// A path of the process, absolute and clean.
    std::string resolved(int32_t pid, std::string_view path, int32_t tid = 0);
    /// The present path of an open instance's file; empty: unknown.
    std::string path_of(int32_t pid, int32_t fd, const SeenInstance* seen, int32_t tid = 0);
    /// The mapping at an address of a process; map 0: none.
    struct Mapped {
        uint32_t map = 0;
        int64_t offset = 0;  // bytes from the start of the mapping
    };
    Mapped mapped_at(int32_t pid, uint64_t address) const;
    /// Size of the file of a descriptor, bytes; where the calls so far do not tell, the furthest offset used, which is
    /// counted as an assumed result.
    int64_t size_of(int32_t pid, int32_t fd, int32_t tid = 0);
    /// Any mapping of a process that holds the byte at `offset` of a file; map 0: none.
    Mapped mapping_of(int32_t pid, uint64_t device, uint64_t inode, int64_t offset) const;
    /// Whether writes to a mapping alter a file; not one of /dev/shm, which a replay keeps in memory.
    bool writes_file(uint32_t map) const;

    /// With Options::in_order: ops of the task so far, which is the number of the next one.
    uint64_t op_count(TaskId task) const;
    /// Adds an edge to an op that is still held; false: it is written.
    bool add_edge(TaskId task, uint64_t op, const Edge& edge);
    /// Ops that ended before this time may be written.
    void release(int64_t before);

    /// A file's size, known from elsewhere.
    void note_file(std::string_view path, std::optional<uint64_t> size, std::optional<uint32_t> stat_mode);

    /// Ops without descriptors (marker, gpu_*, compute, wait, idle): passed through, sorted with the rest.
    void op(int32_t pid, int32_t tid, const Op& op);

    /// The sockets among the open instances, as the source told them last (SeenInstance).
    struct SocketSeen {
        uint64_t inode = 0, peer = 0;
        bool made = false;  // by a recorded call, so that its bytes are counted from the first one on
    };
    const std::map<HandleId, SocketSeen>& sockets() const;

    /// Writes what is pending, sets sizes, origins and roles of all files. Call once, before LogWriter::finish.
    void finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
