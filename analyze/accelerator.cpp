// SPDX-License-Identifier: MIT
#include "analyze/accelerator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/oplog/op_fields.h"

namespace reprise {
namespace {

/// Of those that have one.
template <class Parts>
std::optional<double> mean_au_mlperf(const Parts& parts) {
    double sum = 0;
    uint64_t count = 0;
    for (const auto& part : parts) {
        if (const std::optional<double> au = part.au_mlperf()) {
            sum += *au;
            ++count;
        }
    }
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

}  // namespace

std::optional<double> Utilisation::au() const {
    if (end <= begin) {
        return std::nullopt;
    }
    return static_cast<double>(busy) / (static_cast<double>(end) - static_cast<double>(begin));
}

std::optional<double> Utilisation::au_after_first_step() const {
    if (later_elapsed <= 0) {
        return std::nullopt;
    }
    return static_cast<double>(later_busy) / static_cast<double>(later_elapsed);
}

int64_t Utilisation::stall() const { return std::max<int64_t>(0, distance_ns(first_work, last_work)) - busy; }

void AcceleratorTracker::Scope::add_part(const Work& work) {
    const int64_t from = std::max(work.begin, begin);
    if (work.end <= from) {
        return;
    }
    first_work = busy == 0 ? from : std::min(first_work, from);
    last_work = busy == 0 ? work.end : std::max(last_work, work.end);
    busy = end_of(busy, work.end - from);
}

void AcceleratorTracker::Scope::add(const Work& work, const std::vector<Work>& pieces) {
    for (const Work& piece : pieces) {
        add_part(piece);
    }
    ++submits;
    end_step(StepRule::submission, work.end);
}

void AcceleratorTracker::Scope::end_step(StepRule rule, int64_t busy_until) {
    FirstStep& first = first_step[static_cast<size_t>(rule)];
    if (first.seen || submits == 0) {
        return;
    }
    first = {true, busy_until, busy};
}

Utilisation AcceleratorTracker::Scope::close(int64_t at, const Intervals& recent) const {
    Utilisation out;
    out.begin = begin;
    out.end = at;
    out.submits = submits;
    out.busy = busy;
    out.first_work = first_work;
    out.last_work = std::min(last_work, std::max(at, first_work));
    for (const auto& [from, to] : recent) {  // work queued beyond the end of the stretch
        if (to > at) {
            out.busy -= to - std::max({from, at, begin});
        }
    }
    for (const FirstStep& first : first_step) {
        if (!first.seen) {
            continue;
        }
        if (out.last_work > first.end) {
            out.later_busy = out.busy - first.busy;
            out.later_elapsed = distance_ns(first.end, out.last_work);
        }
        break;
    }
    return out;
}

AcceleratorTracker::AcceleratorTracker(const Tables& tables, SeeBusy busy) : tables_(tables), busy_(std::move(busy)) {
    for (StringId id = 1; id < tables.strings.size(); ++id) {
        if (tables.strings[id] == "epoch") {
            epoch_ = id;
        }
        if (tables.strings[id] == "step") {
            step_ = id;
        }
        if (tables.strings[id] == "accelerator") {
            accelerator_ = id;
        }
    }
}

void AcceleratorTracker::add(TaskId task, const Op& op) {
    if (task >= tables_.tasks.size()) {
        return;
    }
    if (op.kind != OpKind::gpu_submit && op.kind != OpKind::marker) {
        return;
    }
    Process& process = processes_[tables_.tasks[task].process];
    if (op.kind == OpKind::gpu_submit) {
        submit(tables_.tasks[task].process, process, op);
        return;
    }
    if (op.text == 0) {
        return;
    }
    const bool begins = op.flags == static_cast<int64_t>(MarkerPhase::begin);
    const bool ends = op.flags == static_cast<int64_t>(MarkerPhase::end);
    if (op.text == step_ && ends) {
        end_step(process, StepRule::mark, op.begin);
    }
    if (op.text == accelerator_ && ends) {
        end_step(process, StepRule::span, op.begin);
    }
    if (op.text != epoch_) {
        return;
    }
    if (begins) {
        begin_epoch(process, op);
    }
    if (!ends) {
        return;
    }
    for (size_t i = process.open.size(); i-- > 0;) {
        if (process.open[i].number != op.arg) {
            continue;
        }
        end_epoch(process, i, op.begin, true);
        return;
    }
}

void AcceleratorTracker::submit(ProcessId id, Process& process, const Op& op) {
    const auto [at, fresh] = process.devices.try_emplace(op.arg);
    Device& device = at->second;
    if (fresh) {
        device.busy_until = device.run.begin = std::numeric_limits<int64_t>::min();
        for (const OpenEpoch& epoch : process.open) {
            device.epochs.emplace_back().begin = epoch.begin;
        }
    }
    Intervals& recent = device.recent;
    while (!recent.empty() && recent.begin()->second <= op.begin) {
        recent.erase(recent.begin());
    }
    int64_t& queue = device.streams.try_emplace(op.flags, std::numeric_limits<int64_t>::min()).first->second;
    const int64_t begin = std::max(op.begin, queue);
    const Work work{begin, end_of(begin, std::max<int64_t>(0, op.size))};
    queue = work.end;
    device.busy_until = std::max(device.busy_until, work.end);
    // What no other stream's work covers.
    pieces_.clear();
    Work whole = work;
    auto next = recent.upper_bound(work.begin);
    if (next != recent.begin() && std::prev(next)->second >= work.begin) {
        --next;
    }
    int64_t from = work.begin;
    while (next != recent.end() && next->first <= work.end) {
        if (next->first > from) {
            pieces_.push_back({from, next->first});
        }
        from = std::max(from, next->second);
        whole = {std::min(whole.begin, next->first), std::max(whole.end, next->second)};
        next = recent.erase(next);
    }
    if (work.end > from) {
        pieces_.push_back({from, work.end});
    }
    if (whole.end > whole.begin) {
        recent.emplace(whole.begin, whole.end);
    }
    for (const Work& piece : pieces_) {
        if (busy_) {
            busy_(id, op.arg, piece.begin, piece.end);
        }
    }
    device.run.add(work, pieces_);
    for (Scope& scope : device.epochs) {
        scope.add(work, pieces_);
    }
    end_step(device, StepRule::submission, work.end);
}

void AcceleratorTracker::begin_epoch(Process& process, const Op& op) {
    process.open.push_back({op.text, op.arg, op.begin});
    for (auto& [id, device] : process.devices) {
        Scope& scope = device.epochs.emplace_back();
        scope.begin = op.begin;
        for (const auto& [from, to] : device.recent) {
            scope.add_part({from, to});
        }
        device.last_step.reset();
    }
}

void AcceleratorTracker::end_epoch(Process& process, size_t index, int64_t at, bool complete) {
    const auto place = static_cast<std::ptrdiff_t>(index);
    for (auto& [id, device] : process.devices) {
        EpochUtilisation epoch;
        // What is queued when the log ends belongs to an epoch that it does not end, as to the run: so that the parts
        // of a run, which end at different times, add up to the whole.
        const int64_t until = complete ? at : std::max(at, device.busy_until);
        static_cast<Utilisation&>(epoch) = device.epochs[index].close(until, device.recent);
        epoch.number = process.open[index].number;
        epoch.complete = complete;
        if (epoch.submits > 0) {
            device.done.push_back(epoch);
        }
        device.epochs.erase(device.epochs.begin() + place);
    }
    process.open.erase(process.open.begin() + place);
}

void AcceleratorTracker::end_step(Process& process, StepRule rule, int64_t at) {
    for (auto& [id, device] : process.devices) {
        device.run.end_step(rule, device.busy_until);
        for (Scope& scope : device.epochs) {
            scope.end_step(rule, device.busy_until);
        }
        end_step(device, rule, at);
    }
}

void AcceleratorTracker::end_step(Device& device, StepRule rule, int64_t at) {
    if (rule > device.steps.rule) {
        return;
    }
    if (rule < device.steps.rule) {
        device.steps = {rule, {}};
        device.last_step.reset();
        device.submits_at_step = 0;
    }
    if (device.run.submits == device.submits_at_step) {
        return;  // it gave the device nothing to do
    }
    device.submits_at_step = device.run.submits;
    if (device.last_step) {
        device.steps.lengths.add(std::max<int64_t>(distance_ns(*device.last_step, at), 0));
    }
    device.last_step = at;
}

std::vector<DeviceUtilisation> AcceleratorTracker::finish(int64_t begin, int64_t end) {
    std::vector<DeviceUtilisation> out;
    for (auto& [process_id, process] : processes_) {
        while (!process.open.empty()) {
            end_epoch(process, process.open.size() - 1, end, false);
        }
        for (auto& [device_id, device] : process.devices) {
            DeviceUtilisation row;
            static_cast<Utilisation&>(row) = device.run.close(std::max(end, device.busy_until), device.recent);
            row.begin = begin;
            row.end = std::max(end, device.busy_until);
            row.process = process_id;
            row.device = device_id;
            row.epochs = std::move(device.done);
            row.steps = std::move(device.steps);
            out.push_back(std::move(row));
        }
    }
    return out;
}

int64_t AcceleratorUse::busy() const {
    int64_t sum = 0;
    for (const DeviceUtilisation& device : devices) {
        sum = end_of(sum, device.busy);
    }
    return sum;
}

std::optional<double> AcceleratorUse::au() const {
    double busy = 0, elapsed = 0;
    for (const DeviceUtilisation& device : devices) {
        busy += static_cast<double>(device.busy);
        elapsed += static_cast<double>(device.end) - static_cast<double>(device.begin);
    }
    if (elapsed <= 0) {
        return std::nullopt;
    }
    return busy / elapsed;
}

std::optional<double> DeviceUtilisation::au_mlperf() const {
    return epochs.empty() ? au_after_first_step() : mean_au_mlperf(epochs);
}

std::optional<double> AcceleratorUse::au_mlperf() const { return mean_au_mlperf(devices); }

int64_t AcceleratorUse::stall() const {
    int64_t sum = 0;
    for (const DeviceUtilisation& device : devices) {
        sum = end_of(sum, device.stall());
    }
    return sum;
}

void AcceleratorObserver::add(TaskId task, const Op& op) {
    begin_ = std::min(begin_, op.begin);
    end_ = std::max(end_, std::max(op.begin, end_of(op.begin, op.duration)));
    if (op.kind == OpKind::gpu_submit || op.kind == OpKind::marker) {
        kept_.push_back({op.begin, op.size, op.flags, op.arg, task, op.text, op.kind});
    }
}

AcceleratorUse AcceleratorObserver::finish() {
    std::stable_sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
        return std::pair{a.begin, a.task} < std::pair{b.begin, b.task};
    });
    AcceleratorTracker tracker(tables_);
    for (const Kept& kept : kept_) {
        Op op;
        op.kind = kept.kind;
        op.begin = kept.begin;
        op.size = kept.size;
        op.flags = kept.flags;
        op.arg = kept.arg;
        op.text = kept.text;
        tracker.add(kept.task, op);
    }
    kept_.clear();
    const bool any = begin_ <= end_;
    return {tracker.finish(any ? begin_ : 0, any ? end_ : 0)};
}

}  // namespace reprise
