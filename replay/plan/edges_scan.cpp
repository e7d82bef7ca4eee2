// SPDX-License-Identifier: MIT
// The first pass: which handles, mappings, paths and files several tasks share.
#include <fcntl.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "formats/oplog/range_lock.h"
#include "replay/plan/edges.h"
#include "replay/plan/edges_rules.h"

namespace reprise {

SharingScan::SharingScan(const LogReader& log) : log_(log) {
    const Tables& tables = log.tables();
    handle_owner_.resize(tables.handles.size());
    handle_flags_.resize(tables.handles.size());
    locked_.resize(tables.handles.size());
    content_task_.resize(tables.files.size());
    content_flags_.resize(tables.files.size());
    file_by_path_.resize(tables.files.size());
    same_content_.resize(tables.files.size());
    maker_.resize(tables.files.size());
    opened_.resize(tables.handles.size());
    born_.resize(tables.processes.size());
    passed_.resize(tables.files.size());
    for (const HandleRow& row : tables.handles) {
        if (row.inherited && row.file != 0 && row.file < passed_.size() &&
            tables.files[row.file].origin == Origin::created) {
            passed_[row.file] = 1;
        }
    }
    std::iota(same_content_.begin(), same_content_.end(), FileId{0});
    path_changed_.resize(tables.strings.size());
    listed_.resize(tables.strings.size());
    position_task_.resize(tables.handles.size());
}

void SharingScan::see(const OpBlock& block, size_t i, ProcessId process) {
    const Tables& tables = log_.tables();
    const TaskId task = block.task;
    if (task != last_task_) {
        last_task_ = task;
        ++tasks_;
    }
    const auto kind = static_cast<OpKind>(block.kind[i]);
    for (const HandleId handle : {block.handle[i], block.handle2[i]}) {
        if (handle != 0 && handle < handle_owner_.size() && opens_in_replay(tables.handles[handle].kind)) {
            see_handle(handle, kind, task, process, block.begin[i]);
        }
    }
    const bool range = kind == OpKind::fcntl && locks_range(block.arg[i]) && unpack_range_lock(block.flags[i]);
    if ((kind == OpKind::flock || range) && block.handle[i] != 0 && block.handle[i] < locked_.size()) {
        locked_[block.handle[i]] = 1;
        any_lock_ = true;
    }
    if (kind == OpKind::spawn && block.peer[i] != 0 && block.peer[i] < tables.tasks.size()) {
        const ProcessId child = tables.tasks[block.peer[i]].process;
        if (child != process && child < born_.size()) {
            born_[child] = {process, block.begin[i]};
        }
    }
    if (const uint32_t map = block.map[i]; map != 0 && map < kMostMaps) {
        if (map >= map_owner_.size()) {
            map_owner_.resize(std::max<size_t>(map + 1, map_owner_.size() * 2));
            map_flags_.resize(map_owner_.size());
        }
        share(map_owner_[map], map_flags_[map], task, process);
    }
    if (kind == OpKind::open && block.result[i] >= 0 && block.file[i] < passed_.size() && passed_[block.file[i]] != 0) {
        maker_[block.file[i]] = process;
    }
    const OpRef op = OpRef::of(block, i);
    const DataUse data = data_use(tables, op);
    see_content(data.read, task, false);
    see_content(data.written, task, true);
    see_content(data.cut, task, true);
    const AttributeUse attributes = attribute_use(tables, op);
    see_content(attributes.asked, task, false);
    see_content(attributes.altered, task, true);
    see_names(block, i, kind);
    if (kind == OpKind::getdents && block.result[i] > 0) {
        see_listing(block, i);
    }
}

void SharingScan::share(Owner& owner, uint8_t& flags, TaskId task, ProcessId process) {
    if (owner.task == 0) {
        owner = {task, process};
    } else if (owner.task != task) {
        flags |= owner.process == process ? kThreads : kProcesses;
    }
}

void SharingScan::see_handle(HandleId handle, OpKind kind, TaskId task, ProcessId process, int64_t begin) {
    share(handle_owner_[handle], handle_flags_[handle], task, process);
    if (kind == OpKind::open) {
        opened_[handle] = {process, begin};
    } else if (opened_[handle].process != process) {
        users_.emplace(handle, process);
    }
    if (!uses_position(kind)) {
        return;
    }
    if (position_task_[handle] == 0) {
        position_task_[handle] = task;
    } else if (position_task_[handle] != task) {
        handle_flags_[handle] |= kSharedPosition;
    }
}

void SharingScan::see_content(FileId file, TaskId task, bool altered) {
    if (file == 0 || file >= content_task_.size()) {
        return;
    }
    if (content_task_[file] == 0) {
        content_task_[file] = task;
    } else if (content_task_[file] != task) {
        content_flags_[file] |= 1;
    }
    content_flags_[file] |= altered ? 2 : 0;
}

void SharingScan::see_names(const OpBlock& block, size_t i, OpKind kind) {
    const Tables& tables = log_.tables();
    if ((kind == OpKind::rename || kind == OpKind::link) && block.result[i] == 0 &&
        std::max(block.file[i], block.file2[i]) < same_content_.size()) {
        const FileId a = content_of(block.file[i]), b = content_of(block.file2[i]);
        same_content_[std::max(a, b)] = std::min(a, b);
        same_content_[block.file[i]] = same_content_[block.file2[i]] = std::min(a, b);
    }
    const PathUse path = path_use(tables, OpRef::of(block, i));
    for (const FileId file : {path.made, path.made2}) {
        if (file != 0 && file < tables.files.size() && tables.files[file].path != 0 &&
            tables.files[file].path < path_changed_.size()) {
            path_changed_[tables.files[file].path] = 1;
            any_path_changed_ = true;
        }
    }
}

void SharingScan::see_listing(const OpBlock& block, size_t i) {
    const Tables& tables = log_.tables();
    const HandleId handle = block.handle[i];
    const FileId file = handle < tables.handles.size() ? tables.handles[handle].file : 0;
    if (file != 0 && file < tables.files.size() && tables.files[file].path < listed_.size()) {
        listed_[tables.files[file].path] = 1;
        any_listed_ = true;
    }
}

void SharingScan::find_listed(const std::unordered_map<std::string_view, StringId>& changed) {
    const Tables& tables = log_.tables();
    std::unordered_map<std::string_view, StringId> listed;
    for (StringId id = 1; id < listed_.size(); ++id) {
        if (listed_[id] != 0) {
            listed.emplace(tables.strings[id], id);
        }
    }
    for (const auto& [path, id] : changed) {
        const size_t slash = path.rfind('/');
        if (slash == std::string_view::npos) {
            continue;
        }
        if (const auto directory = listed.find(path.substr(0, slash)); directory != listed.end()) {
            listed_in_.emplace(id, directory->second);
        }
    }
}

// Whether a process has the instance because it, or a process it comes from, was forked after the open.
bool SharingScan::inherits(ProcessId process, const Birth& open) const {
    for (size_t steps = 0; process != open.process && steps < born_.size(); ++steps) {
        const Birth& birth = born_[process];
        if (birth.process == 0) {
            return false;
        }
        if (birth.process == open.process) {
            return birth.time >= open.time;
        }
        process = birth.process;
    }
    return process == open.process;
}

void SharingScan::find_received() {
    for (const auto& [handle, process] : users_) {
        const Birth& open = opened_[handle];
        const FileId file = log_.tables().handles[handle].file;
        if (open.process == 0 || file == 0 || file >= passed_.size() || inherits(process, open)) {
            continue;
        }
        passed_[file] = 2;
        maker_[file] = open.process;
        received_.emplace_back(file, process);
    }
    users_.clear();
}

std::vector<PassedFile> SharingScan::passed_files() const {
    std::vector<PassedFile> list;
    std::unordered_map<FileId, size_t> index;
    for (const HandleRow& row : log_.tables().handles) {
        if (!row.inherited || row.file >= passed_.size() || passed_[row.file] != 2 || row.process == maker_[row.file]) {
            continue;
        }
        const auto [at, fresh] = index.emplace(row.file, list.size());
        if (fresh) {
            list.push_back({row.file, {}});
        }
        list[at->second].receivers.push_back(row.process);
    }
    for (const auto& [file, process] : received_) {
        const auto [at, fresh] = index.emplace(file, list.size());
        if (fresh) {
            list.push_back({file, {}});
        }
        list[at->second].receivers.push_back(process);
    }
    return list;
}

bool SharingScan::finish() {
    if (tasks_ < 2 && edge_sources_.empty()) {
        return false;
    }
    const Tables& tables = log_.tables();
    find_received();
    for (const HandleRow& row : tables.handles) {
        if (row.inherited && row.file < passed_.size() && passed_[row.file] != 0 && maker_[row.file] != 0 &&
            maker_[row.file] != row.process) {
            passed_[row.file] = 2;
        }
    }
    for (FileId file = 1; file < same_content_.size(); ++file) {
        const FileId one = same_content_[file] = content_of(file);
        if (one == file) {
            continue;
        }
        content_flags_[one] |= content_flags_[file];
        if (content_task_[one] == 0) {
            content_task_[one] = content_task_[file];
        } else if (content_task_[file] != 0 && content_task_[file] != content_task_[one]) {
            content_flags_[one] |= 1;
        }
    }
    for (FileId file = 1; file < same_content_.size(); ++file) {
        content_flags_[file] = content_flags_[same_content_[file]];
    }
    if (any_path_changed_) {
        std::unordered_map<std::string_view, StringId> changed;
        for (StringId id = 1; id < path_changed_.size(); ++id) {
            if (path_changed_[id] != 0) {
                changed.emplace(tables.strings[id], id);
            }
        }
        if (any_listed_) {
            find_listed(changed);
        }
        changed_above_.resize(tables.files.size());
        for (FileId file = 1; file < tables.files.size(); ++file) {
            std::string_view path = tables.path(file);
            while (!path.empty()) {
                if (const auto found = changed.find(path); found != changed.end()) {
                    changed_above_[file].push_back(found->second);
                    file_by_path_[file] = 1;
                }
                const size_t slash = path.rfind('/');
                path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
            }
        }
    }
    const auto any = [](const std::vector<uint8_t>& flags, auto&& test) {
        return std::any_of(flags.begin(), flags.end(), test);
    };
    return any_path_changed_ || any_lock_ || any(passed_, [](uint8_t f) { return f == 2; }) || !edge_sources_.empty() ||
           any(handle_flags_, [](uint8_t f) { return f != 0; }) || any(map_flags_, [](uint8_t f) { return f != 0; }) ||
           any(content_flags_, [](uint8_t f) { return f == 3; });
}

}  // namespace reprise
