// SPDX-License-Identifier: MIT
// The assembler's state, private to formats/assemble/*.cpp.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/assemble/fd_state.h"
#include "formats/assemble/file_table.h"
#include "formats/support/path.h"

namespace reprise {

inline uint64_t task_key(int32_t pid, int32_t tid) {
    return static_cast<uint64_t>(static_cast<uint32_t>(pid)) << 32 | static_cast<uint32_t>(tid);
}

inline constexpr int64_t kCloneVm = 0x100, kCloneFs = 0x200, kCloneFiles = 0x400, kCloneThread = 0x10000,
                         kCloneNewMounts = 0x20000;

struct Assembler::Impl {
    struct Pending {
        Op op;
        std::vector<int64_t> list;
        std::vector<Edge> edges;
    };
    struct Task {
        TaskId id = 0;
        Process* process = nullptr;
        std::vector<Pending> pending;    // by begin; the oldest are erased many at a time
        int64_t written_to = INT64_MIN;  // begin of the last op the writer has
        uint64_t written = 0;            // ops the writer has
    };
    /// What a call shows about its descriptor.
    enum class Evidence { none, file, directory };

    Impl(LogWriter& w, Options o)
        : writer(w), options(std::move(o)), files(w), first_directory(options.initial_directory) {
        files.set_own(options.own_files);
    }

    // --- assembler.cpp: tasks, writing ops
    Process& process(int32_t pid);
    /// Of one of its threads, which may be apart(); tid 0, or unknown: of the process.
    Process& process(int32_t pid, int32_t tid);
    /// A copy that shares with `from` what `flags` (of unshare) do not take out.
    Process& apart(const Process& from, int64_t flags);
    void unshare(Task& task, int32_t pid, int32_t tid, int64_t flags);
    /// What a new task of `from` lives in, by the CLONE_* flags; a source that does not know them (no CLONE_VM) means
    /// an ordinary thread.
    Process& begun(Process& from, int32_t pid, int64_t flags);
    Task& task(int32_t pid, int32_t tid);
    Process& new_process(int32_t pid, Process* parent);
    Task& new_task(int32_t pid, int32_t tid, Process& process);
    /// The op before is the same look for results that found none: it stands for this one, too.
    static bool looked_again(Task& task, const Op& op);
    void add(Task& task, const Op& op);
    void write_oldest(Task& task, size_t n);
    void count(Count what, uint64_t n = 1, std::string_view detail = {}) { writer.count(what, n, detail); }
    Op op_of(const RawCall& raw);
    void join(Task& task, const RawCall& raw, Op& op);
    void call(const RawCall& raw);
    void finish();

    // --- seen.cpp: instances that the source identifies
    std::shared_ptr<Instance> find_seen(Process& process, int32_t fd, const SeenInstance& seen, int64_t begin);
    std::shared_ptr<Instance> make_seen(Process* owner, int32_t fd, const SeenInstance& seen, std::string_view path,
                                        Came how);
    void remember(const SeenInstance& seen, const std::shared_ptr<Instance>& instance, int64_t since);
    void connect(Instance& instance, const SeenInstance& seen);
    std::shared_ptr<Channel> channel_of_inode(uint64_t inode);
    TaskId begin_task(int32_t parent, int32_t ptid, int32_t pid, int32_t tid, int64_t flags);

    // --- fds.cpp: descriptors
    std::shared_ptr<Instance> find(Process& process, int32_t fd, std::string_view described, Evidence evidence);
    std::shared_ptr<Instance> for_call(Process& process, const RawCall& raw, int32_t fd, std::string_view described,
                                       Evidence evidence, const SeenInstance* seen = nullptr);
    std::shared_ptr<Instance> adopt_unknown(Process& process, int32_t fd, std::string_view described, Evidence evidence,
                                            bool received = false);
    bool still_is(const Instance& instance, std::string_view described);
    void learn_kind(Instance& instance, HandleKind kind, Process& process, int32_t fd);
    std::shared_ptr<Instance> new_instance(HandleKind kind, FileState* file, int64_t flags, const Process* inherited_by,
                                           int32_t fd);
    std::shared_ptr<Channel> channel_of(std::string_view described);
    void update_row(const Instance& instance);
    void put(Process& process, int64_t fd, std::shared_ptr<Instance> instance, bool close_on_exec);
    void open(Task& task, const RawCall& raw, Op& op);
    void close(Task& task, const RawCall& raw, Op& op);
    void close_range(Task& task, const RawCall& raw, Op& op);
    void dup(Task& task, const RawCall& raw, Op& op);
    void fcntl(Task& task, const RawCall& raw, Op& op);
    void pipe(Task& task, const RawCall& raw, Op& op);
    static bool began_after(const Task& task, int64_t time);
    void spawn(Task& task, const RawCall& raw, Op& op);
    void exec(Task& task, const RawCall& raw, Op& op);

    // --- data.cpp: data, positions, mappings
    void data(Task& task, const RawCall& raw, Op& op, bool explicit_offset);
    void message(Task& task, const RawCall& raw, Op& op);
    void copy(Task& task, const RawCall& raw, Op& op);
    void lseek(Task& task, const RawCall& raw, Op& op);
    void on_descriptor(Task& task, const RawCall& raw, Op& op, Evidence evidence);
    void mmap(Task& task, const RawCall& raw, Op& op);
    void on_memory(Task& task, const RawCall& raw, Op& op);
    void mremap(Task& task, const RawCall& raw, Op& op);
    void pass(Instance& instance, bool reads, int64_t result, int64_t& offset);
    int64_t place(Instance& instance, const std::optional<int64_t>& given, bool appends, bool& at_unknown_end);
    void moved_data(Instance& instance, int64_t offset, int64_t asked, int64_t result, bool reads, bool at_unknown_end,
                    bool certain);

    // --- requests.cpp: asynchronous requests
    void request(Task& task, const RawCall& raw, Op& op);
    void completed(Task& task, const RawCall& raw, Op& op);

    /// The file that an open found at `path`, where a rename under way has put it there.
    FileState* renamed_meanwhile(const std::string& path, const RawCall& raw);
    /// What the renames did that were so found, by their paths: rows before and after.
    std::map<std::pair<std::string, std::string>, std::pair<FileState*, FileState*>> done_renames;

    // --- links.cpp: where a path leads
    using LastPart = FileTable::LastPart;
    static LastPart last_part(const RawCall& raw);
    /// The first path of a call; or any. `inode`: of what it leads to; 0: unknown.
    std::string absolute(Process& process, const RawCall& raw, LastPart last);
    std::string absolute(Process& process, std::string_view path, std::string_view directory, int32_t dirfd,
                         const SeenInstance* seen, LastPart last, uint64_t inode = 0);
    std::string directory_at(const Process& process, std::string_view path);
    std::string from_start(Process& process, std::string_view path, std::string_view directory, int32_t dirfd,
                           const SeenInstance* seen);
    std::string resolved(const Process& process, std::string_view directory, std::string_view path) const;
    FileTable::LinkOf links_to(const Process& process, const std::string& path, uint64_t inode);
    std::string behind_magic_link(const Process& process, std::string path, bool follow) const;
    FileState* opened_without_name(const Process& process, const RawCall& raw);
    std::string behind_told_link(std::string path, const RawCall& raw);
    std::string opened_name(std::string path, const RawCall& raw);
    void ask_for_target(const Process& process, const std::string& path, FileState& file);

    // --- paths.cpp: calls by path
    void move_directories(std::string_view from, std::string_view to, bool exchange);
    FileState& named(std::string_view path, const RawCall& raw);
    static bool names_nothing(std::string_view path, const RawCall& raw);
    void by_path(Task& task, const RawCall& raw, Op& op);
    void by_path_or_descriptor(Task& task, const RawCall& raw, Op& op);
    void by_two_paths(Task& task, const RawCall& raw, Op& op);
    void note_attributes(FileState& file, const RawCall& raw, bool no_follow);

    LogWriter& writer;
    Options options;
    FileTable files;
    std::string first_directory;
    std::deque<Process> processes;  // stable addresses
    std::deque<Task> tasks;
    std::unordered_map<int32_t, Process*> process_of;  // by pid; a reused pid means the newest process
    std::unordered_map<uint64_t, Task*> task_of;       // by (pid, tid)
    Task* last_task = nullptr;
    uint64_t last_key = 0;
    std::unordered_map<std::string, std::shared_ptr<Channel>> channels;  // by the source's name of a pipe or socket
    /// By SeenInstance::key, the oldest first: a key names another instance once its file is gone.
    struct Bearer {
        std::shared_ptr<Instance> instance;
        int64_t since = INT64_MIN;
    };
    std::unordered_map<uint64_t, std::vector<Bearer>> bearers;
    std::unordered_map<uint64_t, std::weak_ptr<Channel>> channels_of_inodes;
    size_t channels_checked = 1024;
    std::map<HandleId, Assembler::SocketSeen> sockets;
    std::vector<Task*> task_by_id{nullptr};
    int64_t released = INT64_MIN;
    CallEffect effect;                 // of the current call
    std::vector<Op>* taken = nullptr;  // if set, ops go here and not to their task
    uint32_t maps = 0;
    struct MapOrigin {
        uint64_t device = 0, inode = 0;  // inode 0: unknown
        int64_t offset = 0;
        bool writes_file = false;  // shared and writable, of a file that is not in /dev/shm
    };
    std::vector<MapOrigin> origins;  // by map
    struct ReadInFlight {
        FileState* file = nullptr;
        int64_t offset = 0, size = 0;
    };
    std::unordered_map<uint32_t, ReadInFlight> reads_in_flight;  // by request
    size_t pending_ops = 0;
    uint64_t offsets_followed = 0, offsets_from_unknown_position = 0;
    uint32_t unnamed_files = 0;
};

}  // namespace reprise
