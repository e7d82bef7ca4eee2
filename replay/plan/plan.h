// SPDX-License-Identifier: MIT
// What a replay knows before it starts: who starts whom, which ops wait for which, where recorded files lie below
// the root, and how large buffers must be. Never holds the ops themselves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"
#include "formats/oplog/repeated_looks.h"
#include "formats/support/text_store.h"
#include "replay/plan/computing.h"
#include "replay/plan/guards.h"
#include "replay/plan/helpers.h"
#include "replay/plan/paths.h"
#include "replay/plan/queues.h"
#include "replay/plan/requests.h"
#include "replay/plan/timers.h"

namespace reprise {

/// Before op `op` of a task: wait until `task` has published `count` times, that is, its op `source` is done.
struct WaitFor {
    uint64_t op = 0;
    uint64_t source = 0;
    TaskId task = 0;
    uint32_t count = 0;
    EdgeKind kind = EdgeKind::resource;

    bool operator==(const WaitFor&) const = default;
};

/// Who waits for a source: a task, and which of its waits, counted from 1.
struct Listener {
    TaskId task = 0;
    uint32_t wait = 0;
};

/// Sleeps between looks that are one wait for who changes what is looked at, or for the end of a child. The task looks
/// again only after a sleep.
struct LookGrid {
    uint64_t since = 0;            // op: the first of the sleeps, or before it
    uint64_t first = 0, last = 0;  // ops of the look that saw the change
    std::vector<int64_t> sleeps;   // ns, as recorded; the first of many
    size_t children = 0;           // that slept in the task's place: each takes some time here, too
    bool results = false;          // of requests: the last of the sleeps waits for them, and `first` comes after it
};
inline constexpr size_t kMostLookSleeps = 64;  // of a grid; those after them are like the last

struct TaskPlan {
    ProcessId process = 0;
    uint64_t ops = 0;
    uint64_t spool_first = 0;         // row of op 0 in the spool
    std::vector<BlockInfo> blocks;    // in op order
    std::vector<WaitFor> waits;       // by op
    std::vector<uint64_t> sources;    // ops that others wait for, ascending
    std::vector<uint32_t> listens;    // by source: its first among `listeners`; one more at the end
    std::vector<Listener> listeners;  // by source
    std::vector<uint32_t> told;       // published counts that other ranks wait for, ascending; perform_only()
    std::vector<uint64_t> explained;  // waits that edges of the log explain, ascending; not by inferred ones
    std::vector<Timer> timers;        // by op
    LooksOfTask looks;
    std::vector<LookGrid> look_grids;  // by op
    TaskRequests requests;             // asynchronous ones
    std::vector<uint64_t> spawns;      // ops of kind spawn that start a task, ascending
    TaskId spawner = 0;                // task whose spawn op starts this one; 0: starts with its process
    uint64_t spawn_op = 0;
    int64_t spawn_begin = 0;      // ns, recorded begin of that op
    uint64_t lock_waits = 0;      // in the recording
    uint64_t guarded_waits = 0;   // those with kWaitHeldInCalls
    uint64_t locked_lengths = 0;  // bit by length_of() its duration: computing that holds the lock of its process
    bool serves_ring = false;     // a thread of the kernel's, whose work requests bring along here; find_ring_workers()
    uint32_t guard = 0;           // of Plan::guards, from 1 on; 0: none; find_guards()
    size_t read_bytes = 0;        // largest destination that an op needs
};

struct ProcessPlan {
    TaskId spawner = 0;                  // of another process; 0: the supervisor starts it
    TaskId first_task = 0;               // the one that the spawn op names; 0 where the supervisor starts it
    std::vector<TaskId> tasks_at_start;  // begun with the process, first_task apart
    std::vector<HandleId> inherited;     // open before the recording began
};

/// A recorded path below the root.
struct RootPath {
    const char* relative = nullptr;  // NUL-terminated; nullptr: has no place below the root
    uint32_t directory = 0;          // index in Plan::directories
    uint32_t name = 0;               // offset of the last component in `relative`
};

struct RootDirectory {
    std::string relative;  // "." for the root
    bool lasting = false;  // its path means one directory for as long as there is one: a descriptor may be kept
};

/// Bits of Plan::handle_flags.
enum HandleFlag : uint8_t {
    kHandleLeftOut = 1,     // its file is left out by the filter
    kHandleDuplicated = 2,  // has several descriptors at some time
    kHandleNotFile = 4,     // pipe, socket, eventfd, epoll...: never opened
    kHandleDirect = 8,      // O_DIRECT, at open or by a later F_SETFL
};

/// Bits of Plan::map_flags.
enum MapFlag : uint8_t {
    kMapLeftOut = 1,
    kMapWritesFile = 2,    // shared, of a file, and writable from the begin or by mprotect
    kMapSharesFile = 4,    // shared, of a file
    kMapMadeWritable = 8,  // by mprotect, all or some of it
};

/// How the log uses an instance that was open before the recording began.
struct InheritedUse {
    int64_t position = -1;      // bytes, at the first op that shows it; -1: unknown
    int64_t shown = INT64_MAX;  // ns, begin of that op
    bool written = false;
    /// By descriptor number, when it first appears, and whether a dup makes it there; otherwise it was open at the
    /// start.
    struct FirstSeen {
        int64_t begin = INT64_MAX;  // ns
        bool made = false;
    };
    std::map<int32_t, FirstSeen> descriptors;
    std::vector<ProcessId> users;  // once for each run of ops of one process
    bool shared = false;  // by processes of which none here is forked after one that opens it: they have one position
};

/// A file that one process makes and that reaches others as a descriptor, over a socket (PyTorch hands tensors on that
/// way). By then its name and the maker's own descriptor may be gone, so the maker keeps one until all have taken
/// theirs.
struct PassedFile {
    FileId file = 0;
    std::vector<ProcessId> receivers;
};

struct AccessPlan;
struct VerifyPlan;

struct Plan {
    const LogReader* log = nullptr;
    std::unique_ptr<OpSelector> selector;
    std::vector<TaskPlan> tasks;         // by TaskId; 0 unused
    std::vector<ProcessPlan> processes;  // by ProcessId; 0 unused
    std::vector<uint8_t> elsewhere;      // by ProcessId, not 0: another rank performs it; empty: this one performs all
    std::vector<uint32_t> rank_of;       // by ProcessId: which rank performs it; empty: this one performs all
    std::vector<uint8_t> file_left_out;  // by FileId
    std::vector<uint8_t> handle_flags;   // by HandleId
    std::unordered_map<HandleId, InheritedUse> inherited;
    std::vector<uint8_t> map_flags;  // by mapping; may be shorter than the ids used
    std::vector<RootPath> paths;     // by FileId
    std::vector<RootDirectory> directories;
    TextStore path_texts;  // of paths that are no tail of a recorded one
    PathMap maps;
    std::map<std::pair<int64_t, int64_t>, uint32_t> streams;  // accelerator and stream to DeviceSlot index
    std::vector<PassedFile> passed;                           // each has a PassSlot
    std::unordered_map<FileId, uint32_t> passed_index;        // in `passed`
    /// Files that were opened when another had their name (/proc/self/fd/N), and instances of the same inode, the first
    /// one first: descriptors of those lead to them.
    std::unordered_map<FileId, std::vector<HandleId>> behind_descriptors;
    uint32_t map_limit = 1;                 // one past the greatest mapping
    uint64_t ops = 0;                       // in the log
    uint64_t kept_ops = 0;                  // that the filter keeps
    uint64_t changing_ops = 0;              // kept ones that alter files
    std::string first_change;               // the first of them, in words
    int64_t first_begin = 0, last_end = 0;  // ns, of kept ops
    std::vector<RequestRing> rings;         // of asynchronous requests
    uint32_t async_depth = 0;               // most asynchronous requests in flight at a time
    size_t write_bytes = 0;                 // largest source that an op needs
    uint64_t untimed_calls = 0;             // of which the log does not say how long they took: they have no duration
    bool names_no_files = false;            // some kept name is one of names_no_file(): ops on it are not performed
    bool risky_names = false;  // an op gives existing things new names: no name can be trusted to stay a file
    ComputeLoad compute_load;
    int64_t wait_ns = 0, explained_wait_ns = 0;  // recorded waits; those that edges explain
    int64_t repeated_sleep_ns = 0;               // see Polls, and those of helpers
    HelperPlan helpers;
    std::array<uint64_t, 8> edges_by_kind{};     // by EdgeKind; 0 unused
    QueueInference queues;                       // none unless asked for
    std::vector<std::pair<uint64_t, Edge>> cut;  // by task: the wait that the end of its process cut, and that end; or
                                                 // where it sees that it is to stop, and who tells it (Samplers)
    std::vector<Guard> guards;                   // locks held during calls on files
    uint32_t guard_locks = 0;                    // how many
    std::vector<Counter> counters;               // what the plan dropped or repaired
    std::optional<FetchedPages> fetched;         // of mapped files: what the recording had to read; none: not known
    std::shared_ptr<const AccessPlan> access;    // null: files are got at as recorded (replay/plan/access.h)
    std::shared_ptr<const VerifyPlan> verify;    // null: content is neither told apart nor checked (replay/content)

    void count(Count what, uint64_t n = 1) { reprise::count(counters, what, n); }
    uint64_t counted(Count what) const;
    /// The lock that the task holds during the op: kOwnLock that of its process, under which it computes; more: that
    /// number among those of `guards`; 0 none.
    uint32_t lock_of(TaskId task, const OpBlock& block, size_t i) const {
        const TaskPlan& mine = tasks[task];
        if (const uint32_t lock = mine.guard == 0 ? 0 : guards[mine.guard - 1].of(block, i)) {
            return kOwnLock + lock;
        }
        const bool computes = (mine.locked_lengths >> length_of(block.duration[i]) & 1) != 0 &&
                              Computing::surely(static_cast<OpKind>(block.kind[i]), block.flags[i]);
        return computes ? kOwnLock : 0;
    }
    static constexpr uint32_t kOwnLock = 1;
    bool performs(ProcessId process) const { return process >= elsewhere.size() || elsewhere[process] == 0; }
    /// Its file is read and written directly (O_DIRECT).
    bool is_direct(HandleId handle) const {
        return handle < handle_flags.size() && (handle_flags[handle] & kHandleDirect) != 0;
    }
    bool keeps_file(FileId file) const { return file >= file_left_out.size() || file_left_out[file] == 0; }
};

/// Whether an op would alter something below the root, so that it needs the marker file of `prepare`.
bool alters_files(const Plan& plan, const OpBlock& block, size_t i);
/// Whether the filter keeps the op. Agrees with OpSelector::keeps.
bool keeps(const Plan& plan, const OpBlock& block, size_t i);
/// Whether a name is of something that no replay makes or opens: a socket, a device, what the kernel shows below /proc
/// and /sys.
bool names_no_file(const Tables& tables, FileId file);

/// Largest number of bytes that one read or write moves in Linux.
inline constexpr int64_t kMostBytes = 0x7ffff000;

/// Reads the whole log, once or twice, one block at a time. `log` outlives the plan. `infer`: add edges where queues
/// left no trace (replay/plan/queues.h), which costs a third pass where the log does not hold them already.
Plan make_plan(const LogReader& log, const OpFilter& filter, const PathMap& maps, bool infer = false);

// The steps of make_plan, apart for tests.

/// Decides who starts whom, so that every task starts: whatever no spawn op reaches starts with its process.
/// `spawn_refused[task]`: do not start it by its spawn op.
struct SpawnSite {
    TaskId spawner = 0;
    uint64_t op = 0;
    TaskId peer = 0;
    int64_t begin = 0;  // ns
};
void plan_starts(Plan& plan, const std::vector<SpawnSite>& sites, const std::vector<uint8_t>& spawn_refused);

/// Puts all waits in the order of their ops, and from them fills in `sources`, `listens`, `listeners` and
/// WaitFor::count.
void number_sources(Plan& plan);

}  // namespace reprise
