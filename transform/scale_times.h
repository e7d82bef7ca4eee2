// SPDX-License-Identifier: MIT
// When the ops of a scaled log happen. Where pieces are joined, a task may still be busy with the piece before: it goes
// on later, and so does whatever the recording has after what it does: who waits for it, who uses what it makes or ends
// what it uses. Others go on as they did.
#pragma once

#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "transform/scale_edges.h"
#include "transform/scale_piece.h"

namespace reprise {

/// Ops whose edges hold at their ends.
inline bool waits_for_edges(OpKind kind) { return info(kind).is(Trait::waits) || kind == OpKind::gpu_wait; }

class ScaledTimes {
public:
    /// `now`: the tables of the scaled log.
    ScaledTimes(const ScaleRecording& recording, const Tables& now);

    // An object of the scaled log stands for a recorded one, and is used by several tasks where that is.
    void handle_like(HandleId made, HandleId recorded) { like(handles_, made, recorded); }
    void file_like(FileId made, FileId recorded) { like(files_, made, recorded); }
    void map_like(uint32_t made, uint32_t recorded) { like(maps_, made, recorded); }

    /// Gives the ops of a passage their begins, and waits their durations. `goes_on`: the passage is the one that
    /// follows the passage before in the recording, too. `edges` knows how many ops tasks have from before.
    void arrange(MadeOps& made, const ScaledEdges& edges, bool goes_on);

private:
    using Flags = std::vector<uint8_t>;
    enum Flag : uint8_t { kTasks = 1, kProcesses = 2 };  // used by several

    /// Accesses of one kind to a resource: their ends, and by how much they are later than recorded.
    struct Accesses {
        uint32_t run = 0;
        int64_t before = INT64_MIN;                  // ns, the last end of earlier runs of passages
        int64_t end = INT64_MIN, later = INT64_MIN;  // ns, of this one
    };
    struct Resource {
        Accesses exclusive, produced, used;
    };
    enum class Mode : uint8_t { use, produce, exclusive };
    enum class Key : uint64_t { descriptor = 1, instance, position, mapping, name, content, lock, descriptors };
    struct Access {
        uint64_t key;
        Mode mode;
    };

    /// A task in the passage at hand.
    struct State {
        size_t next = 0;       // op
        bool waits = false;    // the op before `next` has begun, but not ended
        bool fresh = true;     // nothing yet in this run of passages
        int64_t end = 0;       // ns, of the op before
        int64_t push = 0;      // ns, by which that is later than it would be alone
        int64_t wait_end = 0;  // ns, recorded
    };

    static void like(Flags& flags, uint32_t made, uint32_t recorded);
    static bool is(const Flags& flags, uint32_t id, uint8_t flag) {
        return id < flags.size() && (flags[id] & flag) != 0;
    }
    void begin(TaskId task);
    void end(TaskId task);
    void queue(TaskId task);
    /// ns, before which an op that the recording has at `until` may not be, as it waits for these.
    int64_t after_edges(const PieceOp& op, int64_t until) const;
    int64_t after(TaskId task, size_t index, int64_t until) const;
    int64_t after(const Accesses& of, int64_t until) const;
    int64_t after_accesses(TaskId task, const PieceOp& op);
    void list_accesses(TaskId task, const PieceOp& op);
    void remember(const PieceOp& op);
    void remember(Accesses& of, const PieceOp& op) const;

    const Tables& now_;
    Flags handles_, files_, maps_;  // by id of the scaled log
    std::unordered_map<uint64_t, Resource> resources_;
    std::unordered_map<TaskId, Accesses> spawned_;
    std::vector<Access> accesses_;  // of the op at hand

    MadeOps* made_ = nullptr;
    const ScaledEdges* edges_ = nullptr;
    uint32_t run_ = 0;  // of passages that follow each other in the recording
    std::vector<State> states_;
    std::vector<int64_t> begins_, ends_;  // ns, the last of each task
    struct Event {
        int64_t time;  // ns, recorded
        bool ends;
        TaskId task;
        bool operator>(const Event& other) const {
            return std::tie(time, ends, task) > std::tie(other.time, other.ends, other.task);
        }
    };
    std::vector<Event> events_;  // a heap: the next of each task
};

}  // namespace reprise
