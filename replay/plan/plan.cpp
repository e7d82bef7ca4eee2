// SPDX-License-Identifier: MIT
#include "replay/plan/plan.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "formats/oplog/async_request.h"
#include "formats/oplog/open_flags.h"
#include "formats/oplog/touched.h"
#include "formats/support/error.h"
#include "replay/plan/async_depth.h"
#include "replay/plan/causal_step.h"
#include "replay/plan/edges.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/end_looks.h"
#include "replay/plan/looks.h"
#include "replay/plan/mapped_parents.h"
#include "replay/plan/paced.h"
#include "replay/plan/polled_jobs.h"
#include "replay/plan/polls.h"
#include "replay/plan/samplers.h"
#include "replay/plan/stored_queues.h"
#include "replay/plan/timer_wheel.h"

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

/// One pass over the ops of all tasks.
class Scan {
public:
    Scan(Plan& plan, SharingScan& sharing)
        : plan_(plan), sharing_(sharing), tables_(plan.log->tables()), helpers_(tables_) {
        starts_task_.resize(tables_.tasks.size());
        ends_.resize(tables_.tasks.size());
        calls.resize(plan.tasks.size());
    }

    void task(TaskId id) {
        TaskPlan& task = plan_.tasks[id];
        before_ = INT64_MIN;
        for (const BlockInfo& where : task.blocks) {
            plan_.log->decode(where, block_);
            for (size_t i = 0; i < block_.count(); ++i) {
                op(id, task, i);
            }
            plan_.log->forget(where);
        }
        task.timers = timers_.take();
        if (std::vector<Timer> paced = paced_.take(); task.timers.empty()) {
            task.timers = std::move(paced);
        }
        polls_.end_task(id);
        end_looks_.end_task();
        timer_wheel_.end_task(id);
        samplers_.end_task();
        task.looks = looks_.take();
    }

    void join_polls() {
        polls_.join(plan_);
        timer_wheel_.join(plan_);
    }
    void find_samplers() {
        for (const Edge& edge : samplers_.find(plan_)) {
            sharing_.see_edge_source(edge);
        }
    }
    void find_helpers() { plan_.helpers = helpers_.finish(); }
    void join_looks() {
        polls_.leave_idlers(plan_);
        const int64_t sampling = samplers_.join(plan_) + end_looks_.join(plan_, polls_);
        const int64_t looking = reprise::join_looks(plan_);
        const int64_t polling = std::max<int64_t>(polls_.repeated_sleep_ns() - sampling - requests.slept_ns(), 0);
        // Most of the one are among the other.
        plan_.repeated_sleep_ns = std::max(polling + looking, plan_.helpers.beats_ns);
    }

    std::vector<SpawnSite> sites;
    AsyncDepth async_depth;
    RequestScan requests;
    std::vector<uint8_t> calls;  // by task: it does more than compute and wait
    bool symlinks = false, moves_directories = false;
    std::unordered_set<std::string> renamed;  // paths below the root that come, go or change meaning as directories

    /// Threads that waited when their process ended waited for nothing else, however long that took.
    void find_cut_waits() {
        constexpr int64_t kAtOnce = 2'000'000;  // ns
        std::vector<TaskId> leader(plan_.processes.size());
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            const ProcessId process = plan_.tasks[task].process;
            if (tables_.tasks[task].tid == tables_.processes[process].pid && ends_[task].exits) {
                leader[process] = task;
            }
        }
        plan_.cut.resize(plan_.tasks.size());
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            const TaskId by = leader[plan_.tasks[task].process];
            const End& end = ends_[task];
            if (by == 0 || by == task || !end.exits || !end.waits ||
                std::abs(ends_[by].exit_begin - end.wait_end) > kAtOnce) {
                continue;
            }
            plan_.cut[task] = {end.wait_op, Edge{by, EdgeKind::lifecycle, 100, ends_[by].exit_op}};
            plan_.explained_wait_ns += end.wait_ns;
            sharing_.see_edge_source(plan_.cut[task].second);
        }
    }

private:
    /// How a task ended. After its exit it may still free memory, and wait for that.
    struct End {
        bool waits = false, exits = false;  // it did nothing more after a wait without known cause; it has an exit
        uint64_t wait_op = 0, exit_op = 0;
        int64_t wait_end = 0, exit_begin = 0;
        int64_t wait_ns = 0;  // not yet explained
    };

    void op(TaskId id, TaskPlan& task, size_t i) {
        const auto kind = static_cast<OpKind>(block_.kind[i]);
        note_end(id, kind, i);
        helpers_.see(id, block_, i);
        polls_.see(block_, i);
        timer_wheel_.see(block_, i);
        samplers_.see(id, block_, i);
        end_looks_.see(id, block_, i);
        looks_.see(block_, i);
        paced_.see(block_.first + i, kind, block_.arg[i], block_.begin[i], block_.duration[i]);
        timers_.see(block_.first + i, kind, block_.arg[i], block_.result[i], block_.begin[i], block_.duration[i]);
        const OpInfo& row = info(kind);
        const std::span<const Edge> edges = block_.has_edges() ? block_.edges_of(i) : std::span<const Edge>{};
        for (const Edge& edge : edges) {
            if (edge.task != id || !row.is(Trait::async)) {  // else it is of a request: see requests.h
                sharing_.see_edge_source(edge);
            }
        }
        if (counts_as_wait(kind, block_.arg[i])) {
            const int64_t ns = OpRef::end_of(block_.begin[i], block_.duration[i]) - block_.begin[i];
            for (const Edge& edge : edges) {
                polls_.see_wait_for(edge, ns);
            }
            plan_.wait_ns += ns;
            // A sleep is its own cause. Taken back where all edges of a wait turn out to be wrong.
            plan_.explained_wait_ns += edges.empty() && !is_sleep(kind, block_.arg[i], block_.result[i]) ? 0 : ns;
        }
        calls[id] |= kind != OpKind::compute && kind != OpKind::idle && kind != OpKind::wait && kind != OpKind::exit;
        task.lock_waits += waits_for_lock(kind, block_.arg[i]) ? 1 : 0;
        task.guarded_waits += kind == OpKind::wait && held_in_calls(block_.arg[i]) ? 1 : 0;
        if (kind == OpKind::compute) {
            plan_.compute_load.add(block_.begin[i], block_.duration[i]);
        }
        if (kind == OpKind::spawn) {
            spawn(id, i);
        }
        if (!keeps(plan_, block_, i)) {
            return;
        }
        if (plan_.kept_ops++ == 0) {
            plan_.first_begin = block_.begin[i];
            plan_.last_end = block_.begin[i];
        }
        plan_.first_begin = std::min(plan_.first_begin, block_.begin[i]);
        plan_.last_end = std::max(plan_.last_end, OpRef::end_of(block_.begin[i], block_.duration[i]));
        gap_before(row, i);
        sharing_.see(block_, i, task.process);
        if (row.is(Trait::async)) {
            async_depth.see(block_, i);
        }
        if (row.is(Trait::async) || kind == OpKind::wait || kind == OpKind::compute || requests.calls_wait()) {
            requests.see(block_, i, task.process);
        }
        buffers(task, row, kind, i);
        const bool direct = kind == OpKind::fcntl && block_.arg[i] == F_SETFL && (block_.flags[i] & kOpenDirect) != 0;
        if (direct && block_.handle[i] < plan_.handle_flags.size()) {
            plan_.handle_flags[block_.handle[i]] |= kHandleDirect;
        }
        if (kind == OpKind::dup && block_.handle[i] < plan_.handle_flags.size()) {
            plan_.handle_flags[block_.handle[i]] |= kHandleDuplicated;
        }
        if (block_.map[i] != 0 && block_.map[i] < kMostMaps) {
            plan_.map_limit = std::max(plan_.map_limit, block_.map[i] + 1);
            if (kind == OpKind::mmap || (kind == OpKind::mprotect && block_.result[i] >= 0)) {
                mapping(kind, i);
            }
        }
        if (!plan_.inherited.empty()) {
            if (const auto found = plan_.inherited.find(block_.handle[i]); found != plan_.inherited.end()) {
                if (std::vector<ProcessId>& users = found->second.users;
                    users.empty() || users.back() != task.process) {
                    users.push_back(task.process);
                }
                use_inherited(found->second, kind, row, i);
                inherited_descriptors(found->second, kind, row, i);
            }
        }
        if (alters_files(plan_, block_, i)) {
            if (plan_.changing_ops++ == 0) {
                plan_.first_change =
                    std::string(row.name) + " " + std::string(tables_.path(tables_.file_of(block_.row(i))));
            }
        }
        names(kind, i);
    }

    void note_end(TaskId id, OpKind kind, size_t i) {
        End& end = ends_[id];
        if (end.exits) {
            // Nothing of it was waited for.
        } else if (kind == OpKind::exit) {
            end.exits = true;
            end.exit_op = block_.first + i;
            end.exit_begin = block_.begin[i];
        } else if (kind != OpKind::wait) {
            end.waits = end.waits && kind == OpKind::compute;  // dying
        } else {
            end.waits = counts_as_wait(kind, block_.arg[i]) && (!block_.has_edges() || block_.edges_of(i).empty());
            end.wait_op = block_.first + i;
            end.wait_end = OpRef::end_of(block_.begin[i], block_.duration[i]);
            end.wait_ns = is_sleep(kind, block_.arg[i], block_.result[i]) ? 0 : end.wait_end - block_.begin[i];
        }
    }

    /// Streams of accelerators, and how large the buffers of reads and writes must be.
    void buffers(TaskPlan& task, const OpInfo& row, OpKind kind, size_t i) {
        const size_t bytes = static_cast<size_t>(std::clamp<int64_t>(block_.size[i], 0, kMostBytes));
        if (kind == OpKind::gpu_submit || kind == OpKind::gpu_wait) {
            plan_.streams.emplace(std::pair{block_.arg[i], block_.flags[i]},
                                  static_cast<uint32_t>(plan_.streams.size()));
        } else if (row.is(Trait::async)) {
            task.read_bytes = std::max(task.read_bytes, bytes);
            plan_.write_bytes = std::max(plan_.write_bytes, bytes);
        } else if (row.is(Trait::reads) || kind == OpKind::getdents || kind == OpKind::readlink ||
                   kind == OpKind::getxattr || kind == OpKind::listxattr) {
            task.read_bytes = std::max(task.read_bytes, bytes);
            // A copy whose source is not replayed, a pipe, writes what the replay has.
            constexpr size_t kMostOfCopy = size_t{1} << 16;
            if (row.is(Trait::writes)) {
                plan_.write_bytes = std::max(plan_.write_bytes, std::min(bytes, kMostOfCopy));
            }
        } else if (row.is(Trait::writes) || kind == OpKind::setxattr) {
            plan_.write_bytes = std::max(plan_.write_bytes, bytes);
        }
    }

    /// Clocks that jump back, and sources whose calls lie inside each other, make ops of one task overlap.
    void gap_before(const OpInfo& row, size_t i) {
        constexpr int64_t kRounding = 10'000;  // ns; some sources count in microseconds
        if (row.is(Trait::async) || row.is(Trait::accelerator)) {
            return;
        }
        if (before_ > INT64_MIN + kRounding && block_.begin[i] < before_ - kRounding) {
            plan_.count(Count::gaps_negative);
        }
        before_ = std::max(before_, OpRef::end_of(block_.begin[i], block_.duration[i]));
    }

    /// `log 2>&1`: several descriptors of one instance from the start on.
    void inherited_descriptors(InheritedUse& use, OpKind kind, const OpInfo& row, size_t i) {
        const auto see = [&](int64_t fd, bool made) {
            if (fd < 0 || fd > INT32_MAX) {
                return;
            }
            InheritedUse::FirstSeen& first = use.descriptors[static_cast<int32_t>(fd)];
            if (block_.begin[i] < first.begin) {
                first = {block_.begin[i], made};
            }
        };
        if (row.has(Field::fd) && !row.is(Trait::async)) {
            see(block_.fd[i], false);
        }
        if (kind == OpKind::dup && block_.result[i] != block_.fd[i]) {
            see(block_.result[i], true);
        }
        const HandleId handle = block_.handle[i];
        const int32_t known = tables_.handles[handle].fd;
        if (std::any_of(use.descriptors.begin(), use.descriptors.end(),
                        [&](const auto& one) { return one.first != known && !one.second.made; })) {
            plan_.handle_flags[handle] |= kHandleDuplicated;
        }
    }

    void use_inherited(InheritedUse& use, OpKind kind, const OpInfo& row, size_t i) const {
        use.written = use.written || (row.is(Trait::writes) && block_.result[i] >= 0);
        if (block_.begin[i] >= use.shown || block_.result[i] < 0) {
            return;
        }
        if (row.is(Trait::moves) && row.has(Field::offset)) {
            use.position = block_.offset[i];
        } else if (kind == OpKind::lseek && block_.arg[i] == SEEK_CUR) {
            use.position = block_.result[i] - block_.offset[i];
        } else if (kind != OpKind::lseek) {
            return;
        }
        use.shown = block_.begin[i];
    }

    void spawn(TaskId id, size_t i) {
        const TaskId peer = block_.peer[i];
        if (peer == 0 || peer >= plan_.tasks.size() || peer == id || starts_task_[peer]) {
            return;
        }
        starts_task_[peer] = true;
        sites.push_back({id, block_.first + i, peer, block_.begin[i]});
    }

    void mapping(OpKind kind, size_t i) {
        const uint32_t map = block_.map[i];
        if (map >= plan_.map_flags.size()) {
            plan_.map_flags.resize(std::max<size_t>(map + 1, plan_.map_flags.size() * 2));
        }
        uint8_t& flags = plan_.map_flags[map];
        const bool writable = (block_.mode[i] & PROT_WRITE) != 0;
        if (kind == OpKind::mprotect) {  // perhaps by a task that comes before the one that mapped it
            flags |= writable ? kMapMadeWritable : 0;
        } else if (block_.handle[i] != 0 && (block_.flags[i] & MAP_SHARED) != 0) {
            flags |= writable ? kMapSharesFile | kMapWritesFile : kMapSharesFile;
        }
        if ((flags & kMapSharesFile) != 0 && (flags & kMapMadeWritable) != 0) {
            flags |= kMapWritesFile;
        }
    }

    void names(OpKind kind, size_t i) {
        const bool moves = kind == OpKind::rename || kind == OpKind::link || kind == OpKind::symlink;
        if (!moves && kind != OpKind::mkdir && kind != OpKind::rmdir) {
            return;
        }
        symlinks = symlinks || kind == OpKind::symlink;
        moves_directories = moves_directories || kind == OpKind::rename || kind == OpKind::rmdir;
        plan_.risky_names = plan_.risky_names || moves;
        for (const FileId file : {block_.file[i], block_.file2[i]}) {
            if (file == 0 || file >= plan_.paths.size() || plan_.paths[file].relative == nullptr) {
                continue;
            }
            // Made once, a directory is what its path means from then on; before, nothing could be opened there.
            if (kind == OpKind::mkdir && made_.insert(plan_.paths[file].relative).second) {
                continue;
            }
            renamed.insert(plan_.paths[file].relative);
        }
    }

    Plan& plan_;
    SharingScan& sharing_;
    const Tables& tables_;
    OpBlock block_;
    int64_t before_ = INT64_MIN;  // ns, when the task's ops so far ended
    std::vector<bool> starts_task_;
    std::unordered_set<std::string> made_;  // directories
    std::vector<End> ends_;                 // by task
    Helpers helpers_;
    Polls polls_;
    TimerWheel timer_wheel_;
    Samplers samplers_;
    EndLooks end_looks_;
    RepeatedLooks looks_{tables_};
    Timers timers_;
    PacedSleeps paced_;
};

/// A directory's descriptor may be kept where nothing in the log can make its path mean another directory.
void find_lasting_directories(Plan& plan, const Scan& scan) {
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
    Scan scan(plan, sharing);
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
