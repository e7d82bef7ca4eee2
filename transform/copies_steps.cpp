// SPDX-License-Identifier: MIT
#include "transform/copies_steps.h"

#include <algorithm>
#include <tuple>

namespace reprise {
namespace {

struct Marks {
    std::vector<int64_t> steps, spans;  // ends, ns

    const std::vector<int64_t>& ends() const { return steps.empty() ? spans : steps; }
};

}  // namespace

AcceleratorSteps::AcceleratorSteps(const LogReader& log)
    : submissions_(log.tables().tasks.size()),
      submission_ops_(log.tables().tasks.size()),
      waits_(log.tables().tasks.size()),
      wait_ends_(log.tables().tasks.size()),
      marks_(log.tables().tasks.size()),
      mark_times_(log.tables().tasks.size()) {
    const Tables& tables = log.tables();
    struct Submission {
        int64_t begin, device, size;
    };
    struct Wait {
        int64_t begin, end;
        uint64_t op;
    };
    std::vector<std::vector<Submission>> submitted(tables.tasks.size());
    std::vector<std::vector<Wait>> waited(tables.tasks.size());
    std::vector<Marks> marks(tables.processes.size());
    const auto process_of = [&](TaskId task) {
        const ProcessId process = tables.tasks[task].process;
        return process < marks.size() ? process : ProcessId{0};
    };
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count() && where.task < submitted.size(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            if (kind == OpKind::gpu_submit) {
                negative_ += block.size[i] < 0 ? 1 : 0;
                submitted[where.task].push_back({block.begin[i], block.arg[i], std::max<int64_t>(block.size[i], 0)});
                submission_ops_[where.task].push_back(block.first + i);
                devices_.push_back(block.arg[i]);
            } else if (kind == OpKind::gpu_wait) {
                int64_t end = 0;
                end = __builtin_add_overflow(block.begin[i], block.duration[i], &end) ? INT64_MAX - 1 : end;
                waited[where.task].push_back({block.begin[i], end, block.first + i});
                devices_.push_back(block.arg[i]);
            } else if (kind == OpKind::marker && block.flags[i] == static_cast<int64_t>(MarkerPhase::end)) {
                const std::string_view name = tables.strings[block.text[i]];
                Marks& of = marks[process_of(where.task)];
                if (name == "step") {
                    of.steps.push_back(block.begin[i]);
                    marks_[where.task].push_back(block.first + i);
                    mark_times_[where.task].push_back(block.begin[i]);
                } else if (name == "accelerator") {
                    of.spans.push_back(block.begin[i]);
                }
            }
        }
        log.forget(where);
        if (devices_.size() > 65536) {
            std::sort(devices_.begin(), devices_.end());
            devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
        }
    }
    std::sort(devices_.begin(), devices_.end());
    devices_.erase(std::unique(devices_.begin(), devices_.end()), devices_.end());
    for (Marks& of : marks) {
        std::sort(of.steps.begin(), of.steps.end());
        std::sort(of.spans.begin(), of.spans.end());
    }
    // What begins when a step ends belongs to the next one.
    const auto step_at = [](const std::vector<int64_t>& ends, int64_t begin) {
        return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    };
    std::map<std::tuple<ProcessId, int64_t, size_t>, uint32_t> known;
    for (TaskId task = 1; task < submitted.size(); ++task) {
        const ProcessId process = process_of(task);
        const std::vector<int64_t>& ends = marks[process].ends();
        for (const Submission& one : submitted[task]) {
            uint32_t step = static_cast<uint32_t>(steps_.size());
            if (!ends.empty()) {
                const size_t number = step_at(ends, one.begin);
                step = known.try_emplace({process, one.device, number}, step).first->second;
                if (step == steps_.size()) {
                    steps_.push_back({process, one.device, 0, number < ends.size()});
                }
            } else {
                steps_.push_back({process, one.device, 0, true});
            }
            if (__builtin_add_overflow(steps_[step].busy, one.size, &steps_[step].busy)) {
                steps_[step].busy = INT64_MAX;
            }
            submissions_[task].push_back(step);
        }
        const auto& waits = waited[task];
        for (size_t i = 0; i < waits.size(); ++i) {
            const size_t number = step_at(ends, waits[i].begin);
            const bool last = i + 1 == waits.size() || step_at(ends, waits[i + 1].begin) != number;
            if (ends.empty() || (last && number < ends.size())) {
                waits_[task].push_back(waits[i].op);
                wait_ends_[task].push_back(waits[i].end);
            }
        }
    }
}

}  // namespace reprise
