// SPDX-License-Identifier: MIT
#include "transform/graft_steps.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "formats/support/percentile.h"

namespace reprise {

LoopSteps LoopSteps::of(const LogReader& log) {
    constexpr std::string_view kSpans[] = {"step", "accelerator"};
    const Tables& tables = log.tables();
    LoopSteps best[3];
    for (TaskId task = 1; task < tables.tasks.size(); ++task) {
        LoopSteps own[3];
        std::map<std::pair<size_t, int64_t>, int64_t> open;
        int64_t last = 0;
        log.for_each(task, [&](const Op& op, uint64_t) {
            last = std::max(last, op.end());
            if (op.kind != OpKind::marker) {
                return;
            }
            const std::string_view name = tables.strings[op.text];
            const auto phase = static_cast<MarkerPhase>(op.flags);
            if (name == "batch" && phase != MarkerPhase::end) {
                if (!own[2].steps.empty()) {
                    own[2].steps.back().end = op.begin;
                }
                own[2].steps.push_back({op.arg, op.begin, op.begin});
            }
            for (size_t i = 0; i < std::size(kSpans); ++i) {
                if (name != kSpans[i]) {
                    continue;
                }
                if (phase == MarkerPhase::begin) {
                    open[{i, op.arg}] = op.begin;
                }
                const auto begun = open.find({i, op.arg});
                if (phase != MarkerPhase::end || begun == open.end()) {
                    continue;
                }
                own[i].steps.push_back({op.arg, begun->second, op.begin});
                open.erase(begun);
            }
        });
        if (!own[2].steps.empty()) {
            own[2].steps.back().end = last;
        }
        for (size_t i = 0; i < 3; ++i) {
            if (own[i].steps.size() <= best[i].steps.size()) {
                continue;
            }
            best[i].steps = std::move(own[i].steps);
            best[i].mark = i < 2 ? kSpans[i] : "batch";
            best[i].task = task;
        }
    }
    for (LoopSteps& one : best) {
        if (one.steps.empty()) {
            continue;
        }
        std::stable_sort(one.steps.begin(), one.steps.end(),
                         [](const LoopStep& a, const LoopStep& b) { return a.begin < b.begin; });
        return std::move(one);
    }
    return {};
}

int64_t LoopSteps::median_length() const {
    std::vector<int64_t> lengths;
    for (const LoopStep& step : steps) {
        lengths.push_back(step.end - step.begin);
    }
    return median(std::move(lengths));
}

std::string LoopSteps::words() const {
    if (steps.empty()) {
        return "no steps";
    }
    const auto [least, most] = std::minmax_element(
        steps.begin(), steps.end(), [](const LoopStep& a, const LoopStep& b) { return a.number < b.number; });
    char seconds[64];
    std::snprintf(seconds, sizeof seconds, " in %.3f s, each about %.6f s",
                  static_cast<double>(steps.back().end - steps.front().begin) / 1e9,
                  static_cast<double>(median_length()) / 1e9);
    return std::to_string(steps.size()) + " steps (numbers " + std::to_string(least->number) + " to " +
           std::to_string(most->number) + ")" + seconds;
}

std::vector<std::pair<size_t, size_t>> match_steps(const LoopSteps& profile, const LoopSteps& job) {
    std::map<int64_t, size_t> numbers;
    bool once = true;
    for (size_t i = 0; i < job.steps.size(); ++i) {
        once = numbers.emplace(job.steps[i].number, i).second && once;
    }
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t i = 0; once && i < profile.steps.size(); ++i) {
        if (const auto found = numbers.find(profile.steps[i].number); found != numbers.end()) {
            pairs.emplace_back(i, found->second);
        }
    }
    if (pairs.size() == profile.steps.size()) {
        return pairs;
    }
    pairs.clear();
    if (profile.steps.size() == job.steps.size()) {
        for (size_t i = 0; i < job.steps.size(); ++i) {
            pairs.emplace_back(i, i);
        }
    }
    return pairs;
}

}  // namespace reprise
