// SPDX-License-Identifier: MIT
// One op and the op table: the enum, the row type and the lookups made from ops.def.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace reprise {

/// Identifiers are dense and start at 1; 0 means none.
using StringId = uint32_t;
using FileId = uint32_t;
using HandleId = uint32_t;
using ProcessId = uint32_t;
using TaskId = uint32_t;

enum class OpKind : uint8_t {
#define OP(id, name, fields, traits, meaning) name = id,
#include "formats/oplog/ops.def"
};

/// One past the greatest id in the op table.
inline constexpr size_t kOpKindLimit = 0
#define OP(id, name, fields, traits, meaning) +1
#include "formats/oplog/ops.def"
                                       + 1;

enum class Field : uint8_t {
#define FIELD(name, type, meaning) name,
#include "formats/oplog/ops.def"
};
inline constexpr size_t kFieldCount = 0
#define FIELD(name, type, meaning) +1
#include "formats/oplog/ops.def"
    ;

enum class Trait : uint8_t {
#define TRAIT(name, meaning) name,
#include "formats/oplog/ops.def"
};

/// What the op table says about one op.
struct OpInfo {
    OpKind kind;
    std::string_view name;
    uint32_t fields;  // bit per Field
    uint32_t traits;  // bit per Trait
    std::string_view meaning;

    constexpr bool has(Field field) const { return fields >> static_cast<unsigned>(field) & 1u; }
    constexpr bool is(Trait trait) const { return traits >> static_cast<unsigned>(trait) & 1u; }
};

struct FieldInfo {
    Field field;
    std::string_view name;
    std::string_view meaning;
};

struct TraitInfo {
    Trait trait;
    std::string_view name;
    std::string_view meaning;
};

namespace detail {
constexpr uint32_t bit(Field field) { return 1u << static_cast<unsigned>(field); }
constexpr uint32_t bit(Trait trait) { return 1u << static_cast<unsigned>(trait); }
#define F(name) bit(Field::name)
#define T(name) bit(Trait::name)
inline constexpr OpInfo kOps[] = {
#define OP(id, name, fields, traits, meaning) {OpKind::name, #name, fields, traits, meaning},
#include "formats/oplog/ops.def"
};
#undef F
#undef T
}  // namespace detail

/// All rows in the order of their ids.
constexpr std::span<const OpInfo> all_ops() { return detail::kOps; }
std::span<const FieldInfo> all_fields();
std::span<const TraitInfo> all_traits();

/// Row of a kind. `kind` must be in the table (a decoded log guarantees it).
constexpr const OpInfo& info(OpKind kind) { return detail::kOps[static_cast<size_t>(kind) - 1]; }
/// Whether the op reads, writes or syncs the data of files, before it is over.
constexpr bool works_on_data(OpKind kind) {
    const OpInfo& row = info(kind);
    return row.is(Trait::reads) || row.is(Trait::writes) || row.is(Trait::syncs);
}

/// True if a byte read from a file names an op of the table.
bool is_op(uint8_t id);
std::optional<OpKind> op_by_name(std::string_view name);

/// Evidence of a dependency, strongest first (DESIGN: replay causes, not timestamps). Of asynchronous requests, where
/// the edge leads from an op of the same task that reports a result (Trait::completes):
///   resource  the op needs that very request: it writes what the request read
///   reaped    the job had taken that result, and all that its ring gave before: as many requests of the ring,
///   whichever
///             they are, must be done
enum class EdgeKind : uint8_t { marker = 1, message, wake, lifecycle, resource, queue, reaped };
std::string_view edge_name(EdgeKind kind);

/// This op may start only after op number `op` of task `task` is done.
struct Edge {
    TaskId task = 0;
    EdgeKind kind = EdgeKind::marker;
    uint8_t confidence = 100;  // percent; below 100 for inferred edges
    uint64_t op = 0;           // counted from 0 within the source task

    bool operator==(const Edge&) const = default;
};

/// flags of ops that read: the destination buffer was fresh memory, so the call paid its page faults.
inline constexpr int64_t kFreshMemory = int64_t{1} << 32;

/// flags of copy_file_range and splice: the call gave the offset of the source, or of the destination, so that it
/// neither used nor moved that position. Where neither is set, the log does not tell.
inline constexpr int64_t kCopyFromOffset = int64_t{1} << 32;
inline constexpr int64_t kCopyToOffset = int64_t{1} << 33;
/// arg of ioctl: whether a descriptor is a terminal, by the C library's old and new way.
inline constexpr int64_t kAskTerminal = 0x5401, kAskTerminal2 = 0x802c542a;  // TCGETS, TCGETS2
constexpr bool asks_terminal(int64_t request) { return request == kAskTerminal || request == kAskTerminal2; }

/// flags of copy_file_range: the files came to share the blocks (FICLONE, FICLONERANGE), which storage that cannot do
/// so replaces by a copy.
inline constexpr int64_t kCopyClones = int64_t{1} << 34;

/// flags of the extended-attribute ops: the call does not follow a symbolic link (lgetxattr...).
inline constexpr int64_t kXattrNoFollow = 1;

/// arg of dup: the call that made it.
enum DupCall : int64_t { kDup = 1, kDup2, kDup3, kDupFd };  // the last: fcntl's F_DUPFD and F_DUPFD_CLOEXEC

/// arg of pipe: what was made.
enum PipeKind : int64_t { kPipe = 1, kSocketPair, kEventFd, kMemFd };

/// arg of wait: what kind of wait it was (formats/oplog/ops.def).
enum WaitClass : int64_t {
    kWaitUnknown = 0,
    kWaitFutex,
    kWaitPoll,
    kWaitSleep,
    kWaitChild,
    kWaitLock,
    kWaitWokeOthers,  // a call that woke others
    kWaitEpoll,
    kWaitUntil,  // a point in time: what comes before it does not move it
};

/// The WaitClass in an arg of wait.
constexpr int64_t wait_class(int64_t arg) { return arg & 0xff; }
/// Added to an arg of kWaitFutex or kWaitLock: who ended the wait was in calls on files for most of it, and both wait
/// for and wake others on the same word. So the word may be a lock that is held during such calls.
inline constexpr int64_t kWaitHeldInCalls = 256;
/// Added to kWaitChild: the task did not wait, but looked whether somebody has ended, who had not.
inline constexpr int64_t kWaitLooked = 256;
constexpr bool is_lock_wait(int64_t arg) { return wait_class(arg) == kWaitLock; }
constexpr bool held_in_calls(int64_t arg) {
    return (wait_class(arg) == kWaitLock || wait_class(arg) == kWaitFutex) && (arg & kWaitHeldInCalls) != 0;
}
/// arg of a wait of kWaitEpoll. `timeout_ms`: 0 or less: without end, or not known.
constexpr int64_t epoll_arg(int64_t timeout_ms) {
    constexpr int64_t kMost = INT64_C(1) << 40;
    const int64_t known = timeout_ms < 0 ? 0 : timeout_ms;
    return kWaitEpoll + ((known < kMost ? known : kMost) << 8);
}
/// Its time-out in ms; 0: without end, or not known.
constexpr int64_t epoll_timeout(int64_t arg) { return arg >> 8; }

/// arg of a wait of kWaitUntil: until `since_ns` after the task's last such wait with 0, where its open loop began.
/// Where a task has none, that is its start.
constexpr int64_t until_arg(int64_t since_ns) {
    constexpr int64_t kMost = (INT64_C(1) << 54) - 1;
    const int64_t known = since_ns < 0 ? 0 : since_ns;
    return kWaitUntil + ((known < kMost ? known : kMost) << 8);
}
constexpr bool waits_until(OpKind kind, int64_t arg) {
    return kind == OpKind::wait && arg >= 0 && wait_class(arg) == kWaitUntil;
}
/// ns since the loop began; 0: it begins.
constexpr int64_t until_ns(int64_t arg) { return arg >> 8; }

/// Whether a wait ended because its time was over: a sleep, or a call with a time-out for which nothing came.
constexpr bool ended_by_time(int64_t arg, int64_t result) {
    const bool polls = arg == kWaitPoll || (wait_class(arg) == kWaitEpoll && epoll_timeout(arg) > 0);
    return arg == kWaitSleep || wait_class(arg) == kWaitUntil || (arg == kWaitFutex && result == -ETIMEDOUT) ||
           (polls && result == 0);
}

/// flags of compute: how the thread passed the time.
enum ComputeClass : int64_t { kComputeUnknown = 0, kComputeSleeps, kComputeSpins, kComputeWorks };

/// marker: how an instant relates to a span.
enum class MarkerPhase : int64_t { instant = 0, begin = 1, end = 2 };

/// One op. Times are nanoseconds since the origin of the log. Fields outside the op's schema are ignored by the writer
/// and read back as 0 (fd, fd2: -1).
struct Op {
    OpKind kind = OpKind::compute;
    int64_t begin = 0;
    int64_t duration = 0;  // ns inside the call
    int64_t result = 0;    // the call's result, or -errno
    uint32_t handle = 0;
    int32_t fd = -1;
    uint32_t handle2 = 0;
    int32_t fd2 = -1;
    uint32_t file = 0;
    uint32_t file2 = 0;
    int64_t offset = 0;
    int64_t offset2 = 0;
    int64_t size = 0;
    int64_t flags = 0;
    int64_t mode = 0;
    int64_t arg = 0;
    uint32_t map = 0;
    uint32_t peer = 0;
    uint32_t text = 0;
    uint32_t request = 0;
    std::span<const int64_t> list{};  // field `list`
    std::span<const Edge> edges{};

    int64_t end() const { return begin + duration; }
};

/// Bytes of file data the op moved: its result for data ops that succeeded, else 0.
int64_t data_bytes(const Op& op);

}  // namespace reprise
