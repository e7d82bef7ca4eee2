// SPDX-License-Identifier: MIT
// The rules of which op accesses which resource, and how. Shared by the two passes of the edge planner.
#pragma once

#include <fcntl.h>

#include <cstdint>

#include "formats/oplog/oplog.h"

namespace reprise {

/// Mappings beyond this number are not followed: a hostile log could name any.
inline constexpr uint32_t kMostMaps = 1u << 26;

/// The fields of an op that decide its accesses.
struct OpRef {
    OpKind kind = OpKind::read;
    uint32_t handle = 0, handle2 = 0, file = 0, file2 = 0, map = 0, peer = 0;
    int64_t begin = 0, end = 0, result = 0, flags = 0, arg = 0, offset = 0, offset2 = 0;
    uint64_t op = 0;  // number within its task
    int32_t fd = -1;

    static OpRef of(const OpBlock& b, size_t i) {
        return {static_cast<OpKind>(b.kind[i]),
                b.handle[i],
                b.handle2[i],
                b.file[i],
                b.file2[i],
                b.map[i],
                b.peer[i],
                b.begin[i],
                end_of(b.begin[i], b.duration[i]),
                b.result[i],
                b.flags[i],
                b.arg[i],
                b.offset[i],
                b.offset2[i],
                b.first + i,
                b.fd[i]};
    }
    static int64_t end_of(int64_t begin, int64_t duration) {
        int64_t end = begin;
        if (duration > 0 && __builtin_add_overflow(begin, duration, &end)) {
            end = INT64_MAX;
        }
        return end;
    }
};

/// Whether the replay opens such an instance at all.
inline bool opens_in_replay(HandleKind kind) {
    return kind == HandleKind::file || kind == HandleKind::directory || kind == HandleKind::memfd;
}

/// Ops that block until something happens elsewhere: their edges hold at their end, not at their begin.
inline bool blocks_until_edge(OpKind kind) { return info(kind).is(Trait::waits) || kind == OpKind::gpu_wait; }

/// Locks are not causes: they come and go with contention, so that a recorded wait for one takes no time here.
inline bool waits_for_lock(OpKind kind, int64_t arg) { return kind == OpKind::wait && is_lock_wait(arg); }

/// Whether the op's time is among the recorded waits that edges explain or do not.
inline bool counts_as_wait(OpKind kind, int64_t arg) {
    return info(kind).is(Trait::waits) && !waits_for_lock(kind, arg);
}

/// A wait that its own time-out ended: a known cause, without an edge.
inline bool is_sleep(OpKind kind, int64_t arg, int64_t result) {
    return kind == OpKind::wait && ended_by_time(arg, result);
}

/// Ops that only tell others something: those go on while the op, which is not made, still takes its recorded time.
/// That time has what waking them took.
inline bool tells_others(OpKind kind, int64_t arg) {
    return kind == OpKind::send || (kind == OpKind::wait && arg == kWaitWokeOthers);
}

/// Whether the op moves an instance's position, or depends on it.
inline bool uses_position(OpKind kind) { return kind == OpKind::lseek || info(kind).is(Trait::moves); }

/// Files whose data an op reads, adds to or cuts.
struct DataUse {
    FileId read = 0, written = 0, cut = 0;
    int64_t written_from = 0, written_to = 0;  // bytes; to: one past the last
    int64_t read_from = 0, read_to = 0;
};

inline DataUse data_use(const Tables& tables, const OpRef& op) {
    const auto file_of = [&](uint32_t handle) {
        return handle < tables.handles.size() ? tables.handles[handle].file : FileId{0};
    };
    const OpInfo& row = info(op.kind);
    DataUse use;
    if (op.kind == OpKind::open) {
        // A file that the log makes starts empty.
        const bool makes = (op.flags & O_CREAT) != 0 && op.file < tables.files.size() &&
                           tables.files[op.file].origin == Origin::created;
        if (((op.flags & O_TRUNC) != 0 || makes) && op.result >= 0) {
            use.cut = op.file;
        }
    } else if (op.kind == OpKind::truncate || op.kind == OpKind::ftruncate) {
        if (op.result == 0) {
            use.cut = op.kind == OpKind::truncate ? op.file : file_of(op.handle);
        }
    } else if (row.is(Trait::reads) && row.is(Trait::writes)) {
        if (op.result > 0) {
            use.read = file_of(op.handle);
            use.read_from = op.offset;
            use.read_to = OpRef::end_of(op.offset, op.result);
            use.written = file_of(op.handle2);
            use.written_from = op.offset2;
            use.written_to = OpRef::end_of(op.offset2, op.result);
        }
    } else if (row.is(Trait::reads) && op.result > 0) {
        use.read = file_of(op.handle);
        use.read_from = op.offset;
        use.read_to = OpRef::end_of(op.offset, op.result);
    } else if (row.is(Trait::writes) && op.result > 0) {
        use.written = file_of(op.handle);
        use.written_from = op.offset;
        use.written_to = OpRef::end_of(op.offset, op.result);
    }
    return use;
}

/// Files whose size and times an op asks for, and whose times or permissions alone it alters.
struct AttributeUse {
    FileId asked = 0, altered = 0;
};

inline AttributeUse attribute_use(const Tables& tables, const OpRef& op) {
    if (op.result < 0) {
        return {};
    }
    const auto named = [&] {
        return op.file == 0 && op.handle < tables.handles.size() ? tables.handles[op.handle].file : FileId{op.file};
    };
    if (op.kind == OpKind::stat || op.kind == OpKind::fstat || op.kind == OpKind::statx) {
        return {named(), 0};
    }
    return info(op.kind).is(Trait::attributes) ? AttributeUse{0, named()} : AttributeUse{};
}

/// Names that an op uses, and names that it makes, moves or ends.
struct PathUse {
    FileId used = 0, used2 = 0;
    FileId made = 0, made2 = 0;
};

inline PathUse path_use(const Tables& tables, const OpRef& op) {
    if (!info(op.kind).is(Trait::path) || op.kind == OpKind::exec) {
        return {};
    }
    const bool good = op.result >= 0;
    if (op.kind == OpKind::open) {
        const bool creates = (op.flags & O_CREAT) != 0 && op.file < tables.files.size() &&
                             (tables.files[op.file].origin == Origin::created || (op.flags & O_EXCL) != 0);
        return good && creates ? PathUse{0, 0, op.file, 0} : PathUse{op.file, 0, 0, 0};
    }
    const OpInfo& row = info(op.kind);
    const bool makes = row.is(Trait::makes_name), ends = row.is(Trait::ends_name);
    if (!good || (!makes && !ends)) {
        return {op.file, op.file2, 0, 0};
    }
    if (!row.has(Field::file2)) {
        return {0, 0, op.file, 0};
    }
    return ends ? PathUse{0, 0, op.file, op.file2} : PathUse{op.file, 0, 0, op.file2};
}

}  // namespace reprise
