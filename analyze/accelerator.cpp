// SPDX-License-Identifier: MIT
#include "analyze/accelerator.h"

#include <algorithm>

#include "formats/op_fields.h"

namespace reprise {

std::optional<double> Utilisation::au() const {
    if (end <= begin) return std::nullopt;
    return static_cast<double>(busy) / (static_cast<double>(end) - static_cast<double>(begin));
}

std::optional<double> Utilisation::au_mlperf() const {
    if (later_elapsed <= 0) return std::nullopt;
    return static_cast<double>(later_busy) / static_cast<double>(later_elapsed);
}

int64_t Utilisation::stall() const { return std::max<int64_t>(0, distance_ns(first_work, last_work)) - busy; }

void AcceleratorTracker::Scope::add_part(const Work& work) {
    const int64_t from = std::max(work.begin, begin);
    if (work.end <= from) return;
    if (busy == 0) first_work = from;
    busy = end_of(busy, work.end - from);
    last_work = work.end;
}

void AcceleratorTracker::Scope::add(const Work& work) {
    add_part(work);
    if (submits++ == 0) {
        first_submit_end = work.end;
        first_submit_busy = busy;
    }
}

Utilisation AcceleratorTracker::Scope::close(int64_t at, const std::deque<Work>& recent) const {
    Utilisation out;
    out.begin = begin;
    out.end = at;
    out.submits = submits;
    out.busy = busy;
    out.first_work = first_work;
    out.last_work = std::min(last_work, std::max(at, first_work));
    for (const Work& work : recent)  // work queued beyond the end of the stretch
        if (work.end > at) out.busy -= work.end - std::max({work.begin, at, begin});
    const int64_t step_end = step_seen ? first_step_end : first_submit_end;
    const int64_t step_busy = step_seen ? first_step_busy : first_submit_busy;
    if (submits > 0 && out.last_work > step_end) {
        out.later_busy = out.busy - step_busy;
        out.later_elapsed = distance_ns(step_end, out.last_work);
    }
    return out;
}

AcceleratorTracker::AcceleratorTracker(const Tables& tables) : tables_(tables) {
    for (StringId id = 1; id < tables.strings.size(); ++id) {
        if (tables.strings[id] == "epoch") epoch_ = id;
        if (tables.strings[id] == "step") step_ = id;
    }
}

void AcceleratorTracker::add(TaskId task, const Op& op) {
    if (task >= tables_.tasks.size()) return;
    if (op.kind != OpKind::gpu_submit && op.kind != OpKind::marker) return;
    Process& process = processes_[tables_.tasks[task].process];
    if (op.kind == OpKind::gpu_submit) {
        submit(process, op);
        return;
    }
    if (op.text == 0) return;
    const bool begins = op.flags == static_cast<int64_t>(MarkerPhase::begin);
    const bool ends = op.flags == static_cast<int64_t>(MarkerPhase::end);
    if (op.text == step_ && ends) end_step(process);
    if (op.text != epoch_) return;
    if (begins) begin_epoch(process, op);
    if (!ends) return;
    for (size_t i = process.open.size(); i-- > 0;) {
        if (process.open[i].number != op.arg) continue;
        end_epoch(process, i, op.begin, true);
        return;
    }
}

void AcceleratorTracker::submit(Process& process, const Op& op) {
    const auto [at, fresh] = process.devices.try_emplace(op.arg);
    Device& device = at->second;
    if (fresh) {
        device.busy_until = device.run.begin = std::numeric_limits<int64_t>::min();
        for (const OpenEpoch& epoch : process.open) device.epochs.emplace_back().begin = epoch.begin;
    }
    while (!device.recent.empty() && device.recent.front().end <= op.begin) device.recent.pop_front();
    const int64_t begin = std::max(op.begin, device.busy_until);
    const Work work{begin, end_of(begin, std::max<int64_t>(0, op.size))};
    device.busy_until = work.end;
    device.recent.push_back(work);
    device.run.add(work);
    for (Scope& scope : device.epochs) scope.add(work);
}

void AcceleratorTracker::begin_epoch(Process& process, const Op& op) {
    process.open.push_back({op.text, op.arg, op.begin});
    for (auto& [id, device] : process.devices) {
        Scope& scope = device.epochs.emplace_back();
        scope.begin = op.begin;
        for (const Work& work : device.recent) scope.add_part(work);
    }
}

void AcceleratorTracker::end_epoch(Process& process, size_t index, int64_t at, bool complete) {
    const auto place = static_cast<std::ptrdiff_t>(index);
    for (auto& [id, device] : process.devices) {
        EpochUtilisation epoch;
        static_cast<Utilisation&>(epoch) = device.epochs[index].close(at, device.recent);
        epoch.number = process.open[index].number;
        epoch.complete = complete;
        if (epoch.submits > 0) device.done.push_back(epoch);
        device.epochs.erase(device.epochs.begin() + place);
    }
    process.open.erase(process.open.begin() + place);
}

void AcceleratorTracker::end_step(Process& process) {
    const auto mark = [](Scope& scope, int64_t busy_until) {
        if (scope.step_seen || scope.submits == 0) return;
        scope.step_seen = true;
        scope.first_step_end = busy_until;
        scope.first_step_busy = scope.busy;
    };
    for (auto& [id, device] : process.devices) {
        mark(device.run, device.busy_until);
        for (Scope& scope : device.epochs) mark(scope, device.busy_until);
    }
}

std::vector<DeviceUtilisation> AcceleratorTracker::finish(int64_t begin, int64_t end) {
    std::vector<DeviceUtilisation> out;
    for (auto& [process_id, process] : processes_) {
        while (!process.open.empty()) end_epoch(process, process.open.size() - 1, end, false);
        for (auto& [device_id, device] : process.devices) {
            DeviceUtilisation row;
            static_cast<Utilisation&>(row) = device.run.close(std::max(end, device.busy_until), device.recent);
            row.begin = begin;
            row.end = std::max(end, device.busy_until);
            row.process = process_id;
            row.device = device_id;
            row.epochs = std::move(device.done);
            out.push_back(std::move(row));
        }
    }
    return out;
}

}  // namespace reprise
