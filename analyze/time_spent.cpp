// SPDX-License-Identifier: MIT
#include "analyze/time_spent.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/summary.h"
#include "formats/oplog/op_fields.h"

namespace reprise {

nlohmann::ordered_json to_json(const TimeSpent& time) {
    return {{"compute_ns", time.compute},   {"storage_ns", time.storage}, {"accelerator_ns", time.accelerator},
            {"other_waits_ns", time.waits}, {"rest_ns", time.rest()},     {"total_ns", time.total}};
}

void TimeSpentCounter::add(TaskId task, const Op& op) {
    if (task >= tasks_.size()) {
        return;
    }
    int64_t* const part = part_of(op);
    if (op.kind == OpKind::touch) {
        touched(op);
    }
    Task& of = tasks_[task];
    const int64_t end = end_of(op.begin, std::max<int64_t>(op.duration, 0));
    if (!of.any) {
        of = {true, op.begin, op.begin};
    }
    if (end <= of.end) {
        return;
    }
    if (part != nullptr) {
        const int64_t begin = std::max(op.begin, of.end);
        *part = end_of(*part, distance_ns(begin, end));
        if (see_) {
            see_(task, part_named(part), begin, end);
        }
    }
    of.end = end;
}

TimeSpent TimeSpentCounter::result() const {
    TimeSpent out = sum_;
    for (const Task& task : tasks_) {
        out.total = end_of(out.total, distance_ns(task.begin, task.end));
    }
    later([&](const OfMap& map) { out.storage = end_of(out.storage, map.time); });
    return out;
}

uint64_t TimeSpentCounter::bytes_touched() const {
    uint64_t out = touched_;
    later([&](const OfMap& map) { out += map.touched; });
    return out;
}

/// What was kept apart until the file of a mapping was known, of files on storage.
template <class Take>
void TimeSpentCounter::later(Take take) const {
    for (const auto& [map, kept] : by_map_) {
        const auto found = maps_.find(map);
        if (found != maps_.end() && found->second != 0 && on_storage(found->second)) {
            take(kept);
        }
    }
}

void TimeSpentCounter::touched(const Op& op) {
    const uint64_t bytes = touched_bytes(op.size, op.list);
    const auto found = maps_.find(op.map);
    if (found == maps_.end()) {
        by_map_[op.map].touched += bytes;
    } else if (found->second != 0 && on_storage(found->second)) {
        touched_ += bytes;
    }
}

TimePart TimeSpentCounter::part_named(const int64_t* part) const {
    return part == &sum_.compute       ? TimePart::compute
           : part == &sum_.accelerator ? TimePart::accelerator
           : part == &sum_.waits       ? TimePart::waits
                                       : TimePart::storage;
}

int64_t* TimeSpentCounter::part_of(const Op& op) {
    switch (op.kind) {
        case OpKind::compute: return &sum_.compute;
        case OpKind::gpu_wait: return &sum_.accelerator;
        case OpKind::wait: return op.arg == kWaitWokeOthers ? nullptr : &sum_.waits;
        case OpKind::idle:
        case OpKind::join:
        case OpKind::send:
        case OpKind::receive: return &sum_.waits;
        default: return info(op.kind).is(Trait::io) ? part_of_call(op) : nullptr;
    }
}

int64_t* TimeSpentCounter::part_of_call(const Op& op) {
    FileId file = tables_.file_of(op);
    if (op.kind == OpKind::mmap && op.map != 0) {
        maps_[op.map] = file;
    } else if (file == 0 && op.map != 0) {
        const auto found = maps_.find(op.map);
        if (found == maps_.end()) {
            return &by_map_[op.map].time;
        }
        file = found->second;
    }
    if (info(op.kind).is(Trait::memory) && file == 0) {
        return nullptr;
    }
    return on_storage(file) ? &sum_.storage : nullptr;
}

bool TimeSpentCounter::on_storage(FileId file) const {
    return file >= tables_.files.size() || tables_.files[file].role != Role::ipc;
}

}  // namespace reprise
