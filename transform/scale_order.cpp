// SPDX-License-Identifier: MIT
// Which ops of other tasks come before an op because of what both use. Threads that share memory hand open instances
// and mappings to each other, and where none had to wait the recording has no edge that says so.
#include <algorithm>

#include "transform/scale_recording.h"

namespace reprise {

/// `made`: the first op that uses the object makes it. `ends`: who ends it waits for who uses it: not with instances,
/// of which each process ends its own. `name`: what goes on without its name once it is open.
void ScaleRecording::add_order(const ScaleObject& object, bool made, bool ends, bool name) {
    constexpr size_t kMostTasks = 64;  // more do not hand it over from one to the next
    const auto order = [&](TaskId task, uint32_t op, TaskId before, uint32_t source) {
        if (task != before && tasks_[before].begin[source] <= tasks_[task].begin[op]) {
            tasks_[task].order.push_back({op, before, source, EdgeKind::resource});
        }
    };
    for (const TaskUse& use : object.uses) {
        if (made) {
            order(use.task, use.first, object.task, object.op);
        }
        for (size_t i = 0; ends && i < object.ends.size(); ++i) {
            // What goes on after that is of another descriptor, or another mapping in its place.
            order(object.ends[i].first, object.ends[i].second, use.task, name ? use.first : use.last);
        }
        // Between processes messages tell, and who is done with its own descriptor first is chance.
        for (size_t i = 0; i < object.uses.size() && object.uses.size() <= kMostTasks; ++i) {
            const TaskUse& other = object.uses[i];
            if (tables_.tasks[other.task].process == tables_.tasks[use.task].process) {
                order(use.task, use.first, other.task, other.last);
            }
        }
    }
}

void ScaleRecording::add_order() {
    const auto makes = [&](const ScaleObject& object, Trait trait) {
        const uint8_t kind = object.task != 0 ? tasks_[object.task].kind[object.op] : 128;
        return kind < 128 && (info(OpKind{kind}).is(trait) || OpKind{kind} == OpKind::open);
    };
    const auto is_opened = [&](HandleId handle) {
        const HandleKind kind = tables_.handles[handle].kind;
        return kind == HandleKind::file || kind == HandleKind::directory || kind == HandleKind::memfd;
    };
    for (HandleId id = 1; id < handles_.size(); ++id) {
        if (is_opened(id)) {
            add_order(handles_[id], makes(handles_[id], Trait::makes_handle), false, false);
        }
    }
    for (uint32_t row = 1; row < held_.size(); ++row) {
        if (is_opened(held_handles_[row])) {
            add_order(held_[row], false, true, false);
        }
    }
    for (const auto& [id, map] : maps_) {
        add_order(map, map.made, true, false);
    }
    for (FileId id = 1; id < made_files_.size(); ++id) {
        add_order(made_files_[id], makes(made_files_[id], Trait::makes_name), true, true);
    }
    for (RecordedTask& task : tasks_) {
        std::sort(task.order.begin(), task.order.end(), [](const InEdge& a, const InEdge& b) { return a.op < b.op; });
    }
}

}  // namespace reprise
