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
    /// `recording`: of rows of ScaleRecording::held(), which stand for instances. None: ids stand for ids.
    Carrier(const Cut& from, const Cut& to, const Stand& before, Stand& after, Stand::Kind kind,
            const ScaleRecording* recording = nullptr)
        : from_(from), to_(to), before_(before), after_(after), kind_(kind), recording_(recording) {}

    void see(uint32_t id, const ScaleObject& object) {
        const bool was = lives_at(object, from_), is = lives_at(object, to_);
        if (was && is) {
            keep(id, id);
        } else if (is) {
            wanted_[{object.likeness, maker(after_, object)}].emplace_back(object.begin, id);
        } else if (was) {
            left_[{object.likeness, maker(before_, object)}].emplace_back(object.begin, id);
        }
    }
    void finish() {
        for (auto& [likeness, wanted] : wanted_) {
            auto& left = left_[likeness];
            std::sort(wanted.rbegin(), wanted.rend());
            std::sort(left.rbegin(), left.rend());
            for (size_t i = 0; i < wanted.size(); ++i) {
                if (i < left.size()) {
                    keep(wanted[i].second, left[i].second);
                } else {
                    after_.of[kind_][wanted[i].second] = Stand::kNone;
                }
            }
        }
    }

private:
    /// Who stands for the task that made it. What one process has open is nothing to another.
    static TaskId maker(const Stand& stand, const ScaleObject& object) { return stand.get(Stand::task, object.task); }
    void keep(uint32_t id, uint32_t recorded) {
        const auto found = before_.of[kind_].find(recorded);
        if (const uint32_t now = found == before_.of[kind_].end() ? itself(recorded) : found->second;
            now != itself(id)) {
            after_.of[kind_][id] = now;
        }
    }
    uint32_t itself(uint32_t id) const { return recording_ != nullptr ? recording_->handle_of_held(id) : id; }
    const Cut &from_, &to_;
    const Stand& before_;
    Stand& after_;
    const Stand::Kind kind_;
    const ScaleRecording* const recording_;
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

Stand carry(const ScaleRecording& recording, const Cut& from, const Cut& to, const Stand& before) {
    Stand after;
    const auto rows = [&](Stand::Kind kind, const std::vector<ScaleObject>& objects) {
        Carrier carrier(from, to, before, after, kind);
        for (uint32_t id = 1; id < objects.size(); ++id) {
            carrier.see(id, objects[id]);
        }
        carrier.finish();
    };
    const auto numbered = [&](Stand::Kind kind, const std::unordered_map<uint32_t, ScaleObject>& objects) {
        Carrier carrier(from, to, before, after, kind);
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
        Carrier carrier(from, to, before, after, Stand::task);
        for (TaskId id = 1; id < tasks.size(); ++id) {
            if (depth[id] == level) {
                carrier.see(id, tasks[id]);
            }
        }
        carrier.finish();
    }
    Carrier shared(from, to, before, after, Stand::held, &recording);
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
