// SPDX-License-Identifier: MIT
#include "transform/scale_objects.h"

#include <algorithm>
#include <map>
#include <vector>

namespace reprise {
namespace {

/// One kind of objects: those that live at `to` but not at `from` get what lived at `from` only, the latest the latest.
class Carrier {
public:
    Carrier(const ScaleRecording& recording, const Cut& from, const Cut& to, const Stand& before, Stand& after,
            Stand::Kind kind)
        : recording_(recording), from_(from), to_(to), before_(before), after_(after), kind_(kind) {}

    void see(uint32_t id, const ScaleObject& object) {
        const bool was = is_there(object, from_), used = lives_at(object, to_);
        if (was && used) {
            keep(id, id);
        } else if (was) {
            left_[{object.likeness, maker(before_, object)}].emplace_back(object.begin, id);
        } else if (used || is_there(object, to_)) {
            wanted_[{object.likeness, maker(after_, object)}].emplace_back(object.begin, id);
        }
    }
    void finish() {
        for (auto& [likeness, wanted] : wanted_) {
            auto& left = left_[likeness];
            std::sort(wanted.rbegin(), wanted.rend());
            std::sort(left.rbegin(), left.rend());
            size_t next = 0;
            for (const auto& [begin, id] : wanted) {
                while (next < left.size() && is_spent(left[next].second, id)) {
                    ++next;
                }
                if (next < left.size()) {
                    keep(id, left[next++].second);
                } else {
                    after_.of[kind_][id] = Stand::kNone;
                }
            }
        }
    }

private:
    /// What was never closed counts although it is not used again: whether a process gets to closing it before it ends
    /// is chance, and the others have to find their own all the same.
    bool is_there(const ScaleObject& object, const Cut& cut) const {
        const bool ended_by_ops = kind_ == Stand::handle || kind_ == Stand::held || kind_ == Stand::map;
        return lives_at(object, cut) || (ended_by_ops && never_ended(object, cut));
    }
    /// Who stands for the task that made it. What one process has open is nothing to another.
    static TaskId maker(const Stand& stand, const ScaleObject& object) { return stand.get(Stand::task, object.task); }
    void keep(uint32_t id, uint32_t recorded) {
        const auto found = before_.of[kind_].find(recorded);
        if (const uint32_t now = found == before_.of[kind_].end() ? itself(recorded) : found->second;
            now != itself(id)) {
            after_.of[kind_][id] = now;
        }
    }
    /// Rows of ScaleRecording::held() stand for instances, other ids for ids.
    uint32_t itself(uint32_t id) const { return kind_ == Stand::held ? recording_.handle_of_held(id) : id; }
    /// An instance that a task is done with cannot stand for one that this task has yet to get.
    bool is_spent(uint32_t left, uint32_t wanted) const {
        if (kind_ != Stand::handle && kind_ != Stand::held) {
            return false;
        }
        const std::vector<TaskUse>& had = recording_.handles()[itself(left)].uses;
        const std::vector<TaskUse>& has = recording_.handles()[itself(wanted)].uses;
        return std::any_of(has.begin(), has.end(), [&](const TaskUse& use) {
            const TaskId task = after_.get(Stand::task, use.task);
            return use.first >= to_[use.task] && std::any_of(had.begin(), had.end(), [&](const TaskUse& other) {
                       return other.last < from_[other.task] && before_.get(Stand::task, other.task) == task;
                   });
        });
    }
    const ScaleRecording& recording_;
    const Cut &from_, &to_;
    const Stand& before_;
    Stand& after_;
    const Stand::Kind kind_;
    using Births = std::map<std::pair<uint64_t, TaskId>, std::vector<std::pair<int64_t, uint32_t>>>;
    Births wanted_, left_;
};

}  // namespace

bool lives_at(const ScaleObject& object, const Cut& cut) {
    if (object.task == 0 || object.op >= cut[object.task]) {
        return false;
    }
    return std::any_of(object.uses.begin(), object.uses.end(),
                       [&](const TaskUse& use) { return use.last >= cut[use.task]; });
}

bool never_ended(const ScaleObject& object, const Cut& cut) {
    return object.task != 0 && object.op < cut[object.task] &&
           std::none_of(object.ends.begin(), object.ends.end(),
                        [&](const auto& end) { return end.second < cut[end.first]; });
}

Stand carry(const ScaleRecording& recording, const Cut& from, const Cut& to, const Stand& before) {
    Stand after;
    const auto rows = [&](Stand::Kind kind, const std::vector<ScaleObject>& objects) {
        Carrier carrier(recording, from, to, before, after, kind);
        for (uint32_t id = 1; id < objects.size(); ++id) {
            carrier.see(id, objects[id]);
        }
        carrier.finish();
    };
    const auto numbered = [&](Stand::Kind kind, const std::unordered_map<uint32_t, ScaleObject>& objects) {
        Carrier carrier(recording, from, to, before, after, kind);
        for (const auto& [id, object] : objects) {
            carrier.see(id, object);
        }
        carrier.finish();
    };
    // Threads of a process that stands for another one stand for threads of that: who made them comes first.
    const std::vector<ScaleObject>& tasks = recording.task_objects();
    constexpr uint32_t kDeepest = 16;
    std::vector<uint32_t> depth(tasks.size());
    for (TaskId id = 1; id < tasks.size(); ++id) {
        for (TaskId by = tasks[id].task; by != 0 && by < tasks.size() && depth[id] < kDeepest; by = tasks[by].task) {
            ++depth[id];
        }
    }
    for (uint32_t level = 1; level <= kDeepest; ++level) {
        Carrier carrier(recording, from, to, before, after, Stand::task);
        for (TaskId id = 1; id < tasks.size(); ++id) {
            if (depth[id] == level) {
                carrier.see(id, tasks[id]);
            }
        }
        carrier.finish();
    }
    Carrier shared(recording, from, to, before, after, Stand::held);
    for (uint32_t row = 1; row < recording.held().size(); ++row) {
        shared.see(row, recording.held()[row]);
    }
    shared.finish();
    rows(Stand::handle, recording.handles());
    rows(Stand::file, recording.files());
    numbered(Stand::map, recording.maps());
    numbered(Stand::request, recording.requests());
    return after;
}

}  // namespace reprise
