// SPDX-License-Identifier: MIT
#include "formats/import/profile/profile_log.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

// Pieces of work of one stream that follow each other within this are one: the device was never idle in between.
constexpr int64_t kGap = 10'000;
// But not for longer than this, so that what is submitted late can still be late in a replay.
constexpr int64_t kLongest = 1'000'000;
// A call that ends this close to the end of the copy it made has waited for it.
constexpr int64_t kNear = 50'000;

bool synchronises(std::string_view name) {
    return name.ends_with("Synchronize") &&
           (name.starts_with("cuda") || name.starts_with("cu") || name.starts_with("hip"));
}

class ProfileLog {
public:
    ProfileLog(kineto::Events& events, std::string_view source, const ImportOptions& options)
        : events_(events), source_(source), options_(options) {}

    void run(const std::filesystem::path& output) {
        origin_ = INT64_MAX;
        for (const auto& one : events_.work) {
            origin_ = std::min(origin_, one.begin);
        }
        for (const auto& one : events_.steps) {
            origin_ = std::min(origin_, one.begin);
        }
        for (const auto& one : events_.blocked) {
            origin_ = std::min(origin_, one.begin);
        }
        calls();
        steps();
        work();
        for (auto& [key, list] : tasks_) {
            for (const HostOp& host : list) {
                origin_ = std::min(origin_, host.op.begin);
            }
        }
        Header header;
        header.time_unit_ns = options_.time_unit_ns ? options_.time_unit_ns : 1;
        header.clock = "realtime";
        header.source = source_;
        write_fact(header, fact::accelerator_source, source_);
        if (source_ == "cupti") {
            write_fact(header, fact::accelerator_clock, "monotonic, as the recorder's");
        }
        header.host = events_.host;
        header.origin_unix_ns = origin_;
        LogWriter writer(output, header, options_.writer);
        try {
            write(writer);
            count(writer);
            writer.finish();
        } catch (...) {
            writer.discard();
            throw;
        }
    }

private:
    struct HostOp {
        Op op;
        uint32_t name = 0;  // in events_.names
        const char* text = nullptr;
    };
    using TaskKey = std::pair<int32_t, int32_t>;

    void calls() {
        for (const kineto::HostCall& call : events_.calls) {
            if (call.correlation != 0) {
                by_correlation_.emplace(call.correlation, &call);
            }
        }
        for (const kineto::HostCall& call : events_.calls) {
            if (!synchronises(events_.names[call.name])) {
                continue;
            }
            Op op;
            op.kind = OpKind::gpu_wait;
            op.begin = call.begin;
            op.duration = call.duration;
            op.flags = std::max<int64_t>(call.stream, 0);
            op.arg = device_of(call);
            waits_of_[&call] = {};
            pending_waits_.push_back({&call, op});
        }
        for (const kineto::HostCall& call : events_.blocked) {
            Op op;
            op.kind = OpKind::wait;
            op.begin = call.begin;
            op.duration = call.duration;
            tasks_[{call.pid, call.tid}].push_back({op, 0, nullptr});
        }
    }

    // A synchronising call names no device: the one its thread's work goes to.
    int64_t device_of(const kineto::HostCall& call) {
        if (call.device >= 0) {
            return call.device;
        }
        if (device_of_task_.empty()) {
            for (const kineto::Work& one : events_.work) {
                if (const auto it = by_correlation_.find(one.correlation); it != by_correlation_.end()) {
                    device_of_task_.emplace(TaskKey{it->second->pid, it->second->tid}, one.device);
                }
            }
        }
        const auto it = device_of_task_.find({call.pid, call.tid});
        return it != device_of_task_.end() ? it->second : events_.work.empty() ? 0 : events_.work.front().device;
    }

    void steps() {
        for (const kineto::Step& step : events_.steps) {
            for (const MarkerPhase phase : {MarkerPhase::begin, MarkerPhase::end}) {
                Op op;
                op.kind = OpKind::marker;
                op.begin = phase == MarkerPhase::begin ? step.begin : step.end();
                op.arg = step.number;
                op.flags = static_cast<int64_t>(phase);
                tasks_[{step.pid, step.tid}].push_back({op, 0, "step"});
            }
        }
    }

    void work() {
        std::sort(events_.work.begin(), events_.work.end(), [](const kineto::Work& a, const kineto::Work& b) {
            return std::tie(a.device, a.stream, a.begin) < std::tie(b.device, b.stream, b.begin);
        });
        size_t first = 0;
        while (first < events_.work.size()) {
            const kineto::Work& start = events_.work[first];
            int64_t end = start.end();
            size_t next = first + 1;
            for (; next < events_.work.size(); ++next) {
                const kineto::Work& one = events_.work[next];
                if (one.device != start.device || one.stream != start.stream) {
                    break;
                }
                overlaps_ += one.begin < end;
                // Queued in time, and so kept waiting by the device alone.
                const kineto::HostCall* launch = launch_of(one);
                const bool queued = launch == nullptr || launch->begin <= end;
                if (one.begin - end > kGap || end - start.begin > kLongest || !queued) {
                    break;
                }
                end = std::max(end, one.end());
            }
            submit(start, end, next - first);
            first = next;
        }
        for (const auto& [call, op] : pending_waits_) {
            wait_for_streams(*call, op);
        }
        // Copies that their call waited for.
        for (const kineto::Work& one : events_.work) {
            const kineto::HostCall* const call = launch_of(one);
            if (call == nullptr || call->end() < one.end() || call->end() > one.end() + kNear) {
                continue;
            }
            if (call->duration < kNear || waits_of_.count(call) != 0) {
                continue;
            }
            Op op;
            op.kind = OpKind::gpu_wait;
            op.begin = call->begin;
            op.duration = call->duration;
            op.arg = one.device;
            op.flags = one.stream;
            add_wait(*call, op);
        }
    }

    // A call that names no stream waits for all that have work then.
    void wait_for_streams(const kineto::HostCall& call, Op op) {
        bool any = false;
        auto& work = events_.work;
        const auto before = [](const kineto::Work& a, const kineto::Work& b) {
            return std::tie(a.device, a.stream, a.begin) < std::tie(b.device, b.stream, b.begin);
        };
        kineto::Work key;
        key.device = op.arg;
        key.stream = std::numeric_limits<int64_t>::min();
        auto at = work.begin();
        while (call.stream < 0 && (at = std::lower_bound(at, work.end(), key, before)) != work.end() &&
               at->device == op.arg) {
            key.stream = at->stream;
            key.begin = call.end();
            const auto next = std::lower_bound(at, work.end(), key, before);
            if (next != at && std::prev(next)->end() > call.begin) {
                op.flags = key.stream;
                add_wait(call, op);
                any = true;
            }
            if (key.stream == std::numeric_limits<int64_t>::max()) {
                break;
            }
            ++key.stream;
            key.begin = std::numeric_limits<int64_t>::min();
            at = next;
        }
        if (!any) {
            add_wait(call, op);
        }
    }

    const kineto::HostCall* launch_of(const kineto::Work& one) const {
        const auto it = one.correlation == 0 ? by_correlation_.end() : by_correlation_.find(one.correlation);
        return it == by_correlation_.end() ? nullptr : it->second;
    }

    void submit(const kineto::Work& first, int64_t end, size_t pieces) {
        Op op;
        op.kind = OpKind::gpu_submit;
        op.size = end - first.begin;
        op.arg = first.device;
        op.flags = first.stream;
        const kineto::HostCall* const launch = launch_of(first);
        merged_ += pieces - 1;
        if (launch != nullptr) {
            op.begin = launch->begin;
            tasks_[{launch->pid, launch->tid}].push_back({op, first.name, nullptr});
        } else {
            // Nobody's call: a task of the stream's own.
            ++unlaunched_;
            op.begin = first.begin;
            tasks_[{0, static_cast<int32_t>(1 + first.device * 1000 % 1'000'000'000 + first.stream)}].push_back(
                {op, first.name, nullptr});
        }
    }

    void add_wait(const kineto::HostCall& call, Op op) {
        tasks_[{call.pid, call.tid}].push_back({op, call.name, nullptr});
    }

    void write(LogWriter& writer) {
        std::map<int32_t, ProcessId> processes;
        for (auto& [key, list] : tasks_) {
            ProcessId& process = processes[key.first];
            if (process == 0) {
                ProcessRow row;
                row.pid = key.first;
                row.command = writer.intern(key.first == 0 ? "accelerator work of unknown origin" : "");
                process = writer.add_process(row);
            }
            TaskRow row;
            row.process = process;
            row.tid = key.second;
            const TaskId task = writer.add_task(row);
            // A wait comes after the submission of what it waits for, also where one call does both.
            std::stable_sort(list.begin(), list.end(), [](const HostOp& a, const HostOp& b) {
                return std::pair(a.op.begin, a.op.kind == OpKind::gpu_wait) <
                       std::pair(b.op.begin, b.op.kind == OpKind::gpu_wait);
            });
            for (HostOp& host : list) {
                host.op.begin -= origin_;
                const std::string_view text = host.text ? host.text : std::string_view(events_.names[host.name]);
                if (!text.empty() && host.op.kind != OpKind::gpu_wait) {
                    host.op.text = writer.intern(text);
                }
                writer.append(task, host.op);
            }
        }
    }

    void count(LogWriter& writer) const {
        writer.count(Count::profile_without_io, 1);
        writer.count(Count::work_merged, merged_);
        writer.count(Count::work_without_launch, unlaunched_);
        writer.count(Count::work_overlapping, overlaps_);
        writer.count(Count::os_calls_left_out, events_.os_calls);
        writer.count(Count::work_lost, events_.lost);
        writer.count(Count::malformed_events, events_.malformed, events_.first_malformed);
        writer.count(Count::inputs_cut, events_.cut ? 1 : 0);
    }

    kineto::Events& events_;
    const std::string source_;
    const ImportOptions& options_;
    int64_t origin_ = 0;
    std::unordered_map<uint64_t, const kineto::HostCall*> by_correlation_;
    std::map<TaskKey, int64_t> device_of_task_;
    std::vector<std::pair<const kineto::HostCall*, Op>> pending_waits_;
    std::unordered_map<const kineto::HostCall*, bool> waits_of_;
    std::map<TaskKey, std::vector<HostOp>> tasks_;
    uint64_t merged_ = 0, unlaunched_ = 0, overlaps_ = 0;
};

}  // namespace

void write_profile_log(kineto::Events& events, std::string_view source, const std::filesystem::path& output,
                       const ImportOptions& options) {
    ProfileLog(events, source, options).run(output);
}

}  // namespace reprise
