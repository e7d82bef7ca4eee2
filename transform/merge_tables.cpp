// SPDX-License-Identifier: MIT
#include "transform/merge_tables.h"

#include <algorithm>
#include <string_view>

#include "formats/support/error.h"

namespace reprise {
namespace {

/// What each machine has of its own, whatever its name and number.
bool is_of_machine(const FileRow& row, std::string_view path) {
    constexpr std::string_view kOwn[] = {"/dev/", "/proc/", "/sys/", "/run/"};
    return row.role == Role::ipc ||
           std::any_of(std::begin(kOwn), std::end(kOwn), [&](std::string_view own) { return path.starts_with(own); });
}

int rank_of(Origin origin) {
    switch (origin) {
        case Origin::unknown: return 0;
        case Origin::absent: return 1;
        case Origin::existed: return 2;
        case Origin::created: return 3;
    }
    return 0;
}

}  // namespace

void MergedRows::change(Op& op, std::vector<Edge>& edges) const {
    op.handle = handle(op.handle);
    op.handle2 = handle(op.handle2);
    op.file = file(op.file);
    op.file2 = file(op.file2);
    op.map = map(op.map);
    op.peer = task(op.peer);
    op.text = text(op.text);
    op.request = request(op.request);
    edges.assign(op.edges.begin(), op.edges.end());
    for (Edge& edge : edges) {
        edge.task = task(edge.task);
    }
    op.edges = edges;
}

MergeTables::Known* MergeTables::find(const FileRow& row, size_t machine, std::string_view path) {
    const auto found = by_path_.find(row.path);
    if (found == by_path_.end()) {
        return nullptr;
    }
    for (Known& known : found->second) {
        // Two rows of one log are two files, of the same name one after the other.
        if (known.log == log_) {
            continue;
        }
        const FileRow& other = writer_.tables().files[known.file];
        const bool same_machine = known.machine == machine;
        if (!same_machine && is_of_machine(row, path)) {
            continue;
        }
        const bool unknown = row.inode == 0 || other.inode == 0;
        if (unknown && path.starts_with("/unnamed/")) {
            continue;
        }
        const bool same = row.inode == other.inode && row.generation == other.generation &&
                          (!same_machine || row.device == other.device);
        if (unknown || same) {
            return &known;
        }
    }
    return nullptr;
}

// What one rank made, another may find: made is what the job made. Of a file that grows, the first to see it saw it
// smaller.
void MergeTables::join(Known& known, const FileRow& row) {
    FileRow merged = writer_.tables().files[known.file];
    const bool sizes_are_first = merged.origin == Origin::existed && row.origin == Origin::existed;
    if (sizes_are_first && merged.size_exact && row.size_exact) {
        merged.size = std::min(merged.size, row.size);
    } else if (sizes_are_first && row.size_exact != merged.size_exact) {
        merged.size = row.size_exact ? row.size : merged.size;
    } else {
        merged.size = std::max(merged.size, row.size);
    }
    merged.size_exact = merged.size_exact || row.size_exact;
    if (rank_of(row.origin) > rank_of(merged.origin)) {
        merged.origin = row.origin;
    }
    if (merged.inode == 0) {
        merged.inode = row.inode;
        merged.device = row.device;
        merged.generation = row.generation;
    }
    merged.type = merged.type == FileType::unknown ? row.type : merged.type;
    merged.role = merged.role == Role::unknown ? row.role : merged.role;
    merged.mode = merged.mode == 0 ? row.mode : merged.mode;
    merged.target = merged.target == 0 ? row.target : merged.target;
    writer_.update_file(known.file, merged);
    known.log = log_;
    shared_[known.file] = true;
}

FileId MergeTables::add_file(const FileRow& row, size_t machine, std::string_view path) {
    if (Known* const known = find(row, machine, path)) {
        join(*known, row);
        return known->file;
    }
    const FileId made = writer_.add_file(row);
    shared_.resize(made + 1, false);
    by_path_[row.path].push_back({made, machine, log_});
    return made;
}

MergedRows MergeTables::add(const LogReader& log, size_t machine, uint32_t maps, uint32_t requests) {
    ++log_;
    const Tables& from = log.tables();
    const Tables& to = writer_.tables();
    MergedRows rows;
    rows.handles = static_cast<uint32_t>(to.handles.size()) - 1;
    rows.processes = static_cast<uint32_t>(to.processes.size()) - 1;
    rows.tasks = static_cast<uint32_t>(to.tasks.size()) - 1;
    rows.maps = maps_;
    rows.requests = requests_;
    rows.handle_rows = from.handles.size();
    rows.process_rows = from.processes.size();
    rows.task_rows = from.tasks.size();
    constexpr uint64_t kMost = UINT32_MAX / 2;
    if (uint64_t{maps_} + maps > kMost || uint64_t{requests_} + requests > kMost ||
        to.handles.size() + from.handles.size() > kMost || to.files.size() + from.files.size() > kMost) {
        throw bad_input(log.path().string(), "the ranks do not fit in one log", "merge fewer of them");
    }
    maps_ += maps;
    requests_ += requests;
    rows.strings.resize(from.strings.size());
    for (StringId id = 1; id < rows.strings.size(); ++id) {
        rows.strings[id] = writer_.intern(from.strings[id]);
    }
    rows.files.resize(from.files.size());
    for (FileId id = 1; id < from.files.size(); ++id) {
        FileRow row = from.files[id];
        row.path = rows.text(row.path);
        row.target = rows.text(row.target);
        rows.files[id] = add_file(row, machine, from.path(id));
    }
    for (HandleId id = 1; id < from.handles.size(); ++id) {
        HandleRow row = from.handles[id];
        row.file = rows.file(row.file);
        row.process = rows.process(row.process);
        writer_.add_handle(row);
    }
    const StringId host = writer_.intern(log.header().host);
    for (ProcessId id = 1; id < from.processes.size(); ++id) {
        ProcessRow row = from.processes[id];
        row.parent = rows.process(row.parent);
        row.command = rows.text(row.command);
        row.host = row.host == 0 ? host : rows.text(row.host);
        writer_.add_process(row);
    }
    for (TaskId id = 1; id < from.tasks.size(); ++id) {
        TaskRow row = from.tasks[id];
        row.process = rows.process(row.process);
        row.name = rows.text(row.name);
        writer_.add_task(row);
    }
    for (const Counter& counter : from.counters) {
        if (counter.name == info(Count::messages_unmatched).name) {
            unmatched_ += counter.value;
        } else {
            writer_.count(counter);
        }
    }
    return rows;
}

uint64_t MergeTables::shared_files() const {
    return static_cast<uint64_t>(std::count(shared_.begin(), shared_.end(), true));
}

}  // namespace reprise
