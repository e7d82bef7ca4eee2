// SPDX-License-Identifier: MIT
#include "replay/plan/open_loop.h"

#include <algorithm>
#include <utility>

namespace reprise {

OpenLoops::OpenLoops(const Tables& tables) : tables_(tables), at_(tables.tasks.size()) {
    for (StringId id = 1; id < tables.strings.size(); ++id) {
        if (tables.strings[id] == "request") {
            request_name_ = id;
        }
    }
}

OpenLoop& OpenLoops::loop_of(TaskId task) {
    const ProcessId process = task < tables_.tasks.size() ? tables_.tasks[task].process : 0;
    const StringId command = process < tables_.processes.size() ? tables_.processes[process].command : 0;
    const std::string_view name = command < tables_.strings.size() ? tables_.strings[command] : std::string_view();
    const auto found = loops_.find(name);
    OpenLoop& loop = found != loops_.end() ? found->second : loops_[std::string(name)];
    loop.name = name;
    return loop;
}

void OpenLoops::note(TaskId task, const OpBlock& block, size_t i, std::optional<int64_t> due, int64_t begin,
                     int64_t end) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    if (due) {
        pass(task);
        if (task >= at_.size()) {
            return;
        }
        at_[task] = ++last_;
        open_[last_] = {.task = task, .due = *due, .begin = std::max(end, *due), .end = std::max(end, *due)};
        return;
    }
    Request& request = open_[at_[task]];
    if (kind == OpKind::marker && block.text[i] == request_name_ &&
        block.flags[i] == static_cast<int64_t>(MarkerPhase::end)) {
        request.end = std::max(request.end, begin);
        return pass(task);
    }
    if (!info(kind).is(Trait::completes)) {  // those may be of an earlier request: done()
        request.end = std::max(request.end, end);
    }
}

void OpenLoops::note_made(TaskId task, uint32_t request) {
    if (flying_.emplace(request, at_[task]).second) {
        ++open_[at_[task]].flying;
    }
}

void OpenLoops::note_done(uint32_t request, int64_t at) {
    const auto found = flying_.find(request);
    if (found == flying_.end()) {
        return;
    }
    const uint64_t number = found->second;
    flying_.erase(found);
    Request& of = open_[number];
    of.end = std::max(of.end, at);
    --of.flying;
    close(number);
}

void OpenLoops::pass(TaskId task) {
    if (const uint64_t number = std::exchange(at_[task], 0); number != 0) {
        open_[number].passed = true;
        close(number);
    }
}

void OpenLoops::close(uint64_t number) {
    const auto found = open_.find(number);
    const Request request = found->second;
    if (!request.passed || request.flying != 0) {
        return;
    }
    OpenLoop& loop = loop_of(request.task);
    ++loop.requests;
    loop.late += request.begin - request.due > kLateStart ? 1 : 0;
    loop.late_by.add(request.begin - request.due);
    loop.from_due.add(request.end - request.due);
    loop.from_begin.add(request.end - request.begin);
    open_.erase(found);
}

std::vector<OpenLoop> OpenLoops::finish() {
    for (TaskId task = 1; task < at_.size(); ++task) {
        pass(task);
    }
    for (const auto& [number, request] : open_) {
        ++loop_of(request.task).unfinished;
    }
    std::vector<OpenLoop> out;
    for (auto& [name, loop] : loops_) {
        out.push_back(std::move(loop));
    }
    loops_.clear();
    open_.clear();
    flying_.clear();
    return out;
}

}  // namespace reprise
