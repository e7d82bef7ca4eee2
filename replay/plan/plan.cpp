// SPDX-License-Identifier: MIT
#include "replay/plan/plan.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "formats/oplog/async_request.h"
#include "formats/support/error.h"
#include "replay/plan/edges.h"
#include "replay/plan/mapped_parents.h"
#include "replay/plan/plan_scan.h"
#include "replay/plan/polled_jobs.h"
#include "replay/plan/stored_queues.h"

namespace reprise {

bool keeps(const Plan& plan, const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& of_kind = info(kind);
    if (plan.selector->keeps_everything() || of_kind.is(Trait::cause)) {
        return true;
    }
    // A column that the kind does not have is 0, and is not fetched.
    const auto file_kept = [&](Field field, const FileId* column) {
        return !of_kind.has(field) || plan.keeps_file(column[i]);
    };
    const auto handle_kept = [&](Field field, const HandleId* column) {
        return !of_kind.has(field) || column[i] >= plan.handle_flags.size() ||
               (plan.handle_flags[column[i]] & kHandleLeftOut) == 0;
    };
    const bool copied = of_kind.has(Field::handle2) && copies_to_file(plan.log->tables(), kind, block.handle2[i]);
    return file_kept(Field::file, block.file) && file_kept(Field::file2, block.file2) &&
           (copied || handle_kept(Field::handle, block.handle)) && handle_kept(Field::handle2, block.handle2) &&
           (!of_kind.has(Field::map) || plan.selector->keeps_mapping(block.map[i])) &&
           (!of_kind.has(Field::request) || plan.selector->keeps_request(block.request[i]));
}

bool names_no_file(const Tables& tables, FileId file) {
    if (file == 0 || file >= tables.files.size()) {
        return false;
    }
    const FileType type = tables.files[file].type;
    const std::string_view path = tables.path(file);
    const auto below = [&](std::string_view folder) { return path.starts_with(folder); };
    return type == FileType::socket || type == FileType::character || type == FileType::block || below("/proc/") ||
           below("/sys/") || (below("/dev/") && type == FileType::unknown && !below("/dev/shm"));
}

uint64_t Plan::counted(Count what) const {
    const auto found = std::find_if(counters.begin(), counters.end(),
                                    [&](const Counter& each) { return each.name == info(what).name; });
    return found == counters.end() ? 0 : found->value;
}

bool alters_files(const Plan& plan, const OpBlock& block, size_t i) {
    const auto kind = static_cast<OpKind>(block.kind[i]);
    const OpInfo& row = info(kind);
    const auto not_file = [&](uint32_t handle) {
        return handle < plan.handle_flags.size() && (plan.handle_flags[handle] & kHandleNotFile) != 0;
    };
    if (kind == OpKind::open) {
        const int64_t flags = block.flags[i];
        if ((flags & (O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))) != 0) {
            return true;
        }
        const auto& files = plan.log->tables().files;
        const FileId file = block.file[i];
        const bool existed = file < files.size() && files[file].origin == Origin::existed;
        return (flags & O_CREAT) != 0 && (!existed || (flags & O_EXCL) != 0);
    }
    if (kind == OpKind::touch) {
        return block.flags[i] == kTouchWrites && block.map[i] < plan.map_flags.size() &&
               (plan.map_flags[block.map[i]] & kMapWritesFile) != 0;
    }
    if (row.is(Trait::submits)) {
        return async_request(block, i).alters();
    }
    if (!row.is(Trait::changes) && !row.is(Trait::destroys)) {
        return false;
    }
    const uint32_t target = row.has(Field::handle2) ? block.handle2[i] : block.handle[i];
    return !(target != 0 && not_file(target));
}

namespace {

/// Fills Plan::paths and ::directories.
void place_files(Plan& plan, const PathMap& maps) {
    const Tables& tables = plan.log->tables();
    plan.maps = maps;
    plan.paths.resize(tables.files.size());
    plan.directories.push_back({".", true});
    std::unordered_map<std::string, uint32_t> directories{{".", 0}};
    uint64_t homeless = 0;
    uint32_t last = 0;  // directory
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (!plan.keeps_file(file)) {
            continue;
        }
        const std::string_view recorded = tables.path(file);
        std::optional<std::string> relative = maps.map(recorded);
        if (!relative) {
            homeless += recorded.empty() ? 0 : 1;
            continue;
        }
        plan.names_no_files = plan.names_no_files || names_no_file(tables, file);
        RootPath& path = plan.paths[file];
        // Mostly the recorded path without its "/": not stored again.
        const std::string_view kept = recorded.ends_with(*relative)
                                          ? recorded.substr(recorded.size() - relative->size())
                                          : plan.path_texts.keep(*relative);
        path.relative = kept.data();
        const size_t slash = kept.rfind('/');
        path.name = slash == std::string_view::npos ? 0 : static_cast<uint32_t>(slash + 1);
        const std::string_view parent = slash == std::string_view::npos ? "." : kept.substr(0, slash);
        // Files of one directory mostly follow each other.
        if (parent != plan.directories[last].relative) {
            const auto [at, fresh] =
                directories.emplace(std::string(parent), static_cast<uint32_t>(plan.directories.size()));
            if (fresh) {
                plan.directories.push_back({at->first, true});
            }
            last = at->second;
        }
        path.directory = last;
    }
    if (homeless != 0) {
        plan.count(Count::paths_without_place, homeless);
    }
}

/// A name that was deleted or replaced is another file's, and the file behind it has an inode that was seen before.
void find_behind_descriptors(Plan& plan) {
    const Tables& tables = plan.log->tables();
    using Key = std::tuple<uint64_t, uint64_t, StringId>;  // device, inode, path
    std::map<Key, std::vector<FileId>> again;              // by generation
    for (FileId file = 1; file < tables.files.size(); ++file) {
        const FileRow& row = tables.files[file];
        if (row.generation != 0 && row.inode != 0 && row.origin == Origin::existed && plan.keeps_file(file)) {
            again[{row.device, row.inode, row.path}].push_back(file);
        }
    }
    const auto generation = [&](FileId file) { return tables.files[file].generation; };
    for (auto& [key, files] : again) {
        std::sort(files.begin(), files.end(), [&](FileId a, FileId b) { return generation(a) < generation(b); });
    }
    for (HandleId handle = 1; handle < tables.handles.size() && !again.empty(); ++handle) {
        const FileId of = tables.handles[handle].file;
        if (of == 0 || of >= tables.files.size() ||
            (plan.handle_flags[handle] & (kHandleLeftOut | kHandleNotFile)) != 0) {
            continue;
        }
        const FileRow& row = tables.files[of];
        const auto found = again.find({row.device, row.inode, row.path});
        if (found == again.end()) {
            continue;
        }
        const auto next = std::lower_bound(found->second.begin(), found->second.end(), row.generation,
                                           [&](FileId file, uint32_t of_row) { return generation(file) < of_row; });
        if (next != found->second.end()) {
            plan.behind_descriptors[*next].push_back(handle);
        }
    }
}

/// The process that the supervisor starts from which this one comes.
ProcessId root_of(const Plan& plan, ProcessId process) {
    for (size_t steps = 0; steps < plan.processes.size(); ++steps) {
        const TaskId spawner = plan.processes[process].spawner;
        if (spawner == 0) {
            break;
        }
        process = plan.tasks[spawner].process;
    }
    return process;
}

/// A recording may begin with several processes (`capture --pid`) that have inherited an instance from one another.
void find_shared_instances(Plan& plan) {
    for (auto& [handle, use] : plan.inherited) {
        const ProcessId opens = plan.log->tables().handles[handle].process;
        use.shared = std::any_of(use.users.begin(), use.users.end(),
                                 [&](ProcessId user) { return user != opens && root_of(plan, user) != opens; });
    }
}

/// A directory's descriptor may be kept where nothing in the log can make its path mean another directory.
void find_lasting_directories(Plan& plan, const PlanScan& scan) {
    bool symlinks = scan.symlinks;
    for (const FileRow& row : plan.log->tables().files) {
        symlinks = symlinks || row.type == FileType::symlink;
    }
    const bool none = symlinks && scan.moves_directories;
    for (RootDirectory& directory : plan.directories) {
        std::string path = directory.relative;
        directory.lasting = !none || path == ".";
        while (directory.lasting && path != ".") {
            directory.lasting = !scan.renamed.contains(path);
            const size_t slash = path.rfind('/');
            path = slash == std::string::npos ? "." : path.substr(0, slash);
        }
    }
}

}  // namespace

Plan make_plan(const LogReader& log, const OpFilter& filter, const PathMap& maps, bool infer) {
    Plan plan;
    plan.log = &log;
    plan.selector = std::make_unique<OpSelector>(log, filter);
    const Tables& tables = log.tables();
    plan.tasks.resize(tables.tasks.size());
    plan.processes.resize(tables.processes.size());
    plan.file_left_out.resize(tables.files.size());
    for (FileId file = 1; file < tables.files.size(); ++file) {
        plan.file_left_out[file] = plan.selector->keeps_file(file) ? 0 : 1;
    }
    plan.handle_flags.resize(tables.handles.size());
    for (HandleId handle = 1; handle < tables.handles.size(); ++handle) {
        const HandleRow& row = tables.handles[handle];
        uint8_t& flags = plan.handle_flags[handle];
        flags |= plan.selector->keeps_handle(handle) ? 0 : kHandleLeftOut;
        const bool fifo = row.file < tables.files.size() && tables.files[row.file].type == FileType::fifo;
        const bool is_file = opens_in_replay(row.kind) && !fifo && !names_no_file(tables, row.file);
        flags |= is_file ? 0 : kHandleNotFile;
        flags |= (row.flags & kOpenDirect) != 0 ? kHandleDirect : 0;
        if (row.inherited && (flags & ~kHandleDirect) == 0 && row.process < plan.processes.size()) {
            plan.processes[row.process].inherited.push_back(handle);
            plan.inherited.emplace(handle, InheritedUse{});
        }
    }
    place_files(plan, maps);
    find_behind_descriptors(plan);
    drop_parents_of_mapped(plan, maps);
    // What the recording lacks, the replay does too.
    for (const Counter& counter : tables.counters) {
        const auto is = [&](Count which) { return counter.name == info(which).name; };
        plan.untimed_calls += is(Count::durations_unknown) ? counter.value : 0;  // a run of it has them: not counted
        if (counter.severity == Severity::loss || is(Count::tasks_left_running) || is(Count::mapped_writes_unseen) ||
            is(Count::flags_assumed) || is(Count::children_unseen) || is(Count::calls_filtered)) {
            reprise::count(plan.counters, counter);
        }
    }
    int64_t first = log.blocks().empty() ? 0 : INT64_MAX;
    for (const BlockInfo& block : log.blocks()) {
        first = std::min(first, block.begin);
        if (block.task >= plan.tasks.size()) {
            throw bad_input(at(log.path().string(), block.file_offset), "a block of a task that is not in the table",
                            "write the log again");
        }
        plan.tasks[block.task].blocks.push_back(block);
    }
    uint64_t rows = 0;
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        TaskPlan& row = plan.tasks[task];
        row.process = tables.tasks[task].process;
        if (row.process == 0 || row.process >= plan.processes.size()) {
            throw bad_input(log.path().string(), "task " + std::to_string(task) + " belongs to no process of the log",
                            "import or record it again");
        }
        row.ops = log.op_count(task);
        row.spool_first = rows;
        rows += (row.ops + 511) / 512 * 512;  // whole pages
        plan.ops += row.ops;
    }
    plan.compute_load = ComputeLoad(first);
    SharingScan sharing(log);
    PlanScan scan(plan, sharing);
    for (TaskId task = 1; task < plan.tasks.size(); ++task) {
        scan.task(task);
    }
    find_lasting_directories(plan, scan);
    scan.find_cut_waits();
    scan.find_samplers();
    scan.find_helpers();
    plan.async_depth = scan.async_depth.greatest();
    scan.requests.finish(plan);
    if (infer) {
        plan.queues = queues_of(log);
        for (const auto& [task, edges] : plan.queues.edges) {
            for (const auto& [op, edge] : edges) {
                sharing.see_edge_source(edge);
            }
        }
    }
    for (TaskPlan& task : plan.tasks) {
        task.looks.drop_other_children(log, *plan.selector);
    }
    std::vector<uint8_t> refused(plan.tasks.size());
    if (sharing.finish()) {
        plan.passed = sharing.passed_files();
        for (size_t i = 0; i < plan.passed.size(); ++i) {
            plan.passed_index.emplace(plan.passed[i].file, static_cast<uint32_t>(i));
        }
        add_edges(plan, sharing, scan.sites, refused);
        scan.join_polls();
    }
    scan.join_looks();
    join_polled_jobs(plan);
    explain_polls(plan);
    plan_starts(plan, scan.sites, refused);
    find_ring_workers(plan, scan.calls);
    find_shared_instances(plan);
    if (plan.map_limit > 1) {
        plan.fetched = fetched_pages(log);
    }
    return plan;
}

}  // namespace reprise
