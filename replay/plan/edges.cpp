// SPDX-License-Identifier: MIT
#include "replay/plan/edges.h"

#include <algorithm>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "replay/plan/edges_rules.h"
#include "replay/plan/known_waits.h"
#include "replay/plan/locks.h"
#include "replay/plan/written_ranges.h"

namespace reprise {

namespace {

/// The latest access of one task, and the one before it. An op that began before the latest one ended still knows that
/// the one before had ended, as the ops of one task do not overlap.
struct Access {
    TaskId task = 0;
    uint64_t op = 0;
    int64_t end = 0;
    bool has_previous = false;
    uint64_t previous = 0;
    int64_t previous_end = 0;
};

struct Exclusive {
    TaskId task = 0;
    uint64_t op = 0;
    int64_t begin = 0, end = 0;
    int64_t from = -1, to = -1;  // of a position: what the call moved
};

struct Resource {
    std::vector<Exclusive> exclusive;
    std::vector<Access> produced, used;  // by task, ascending
    int64_t content_end = -1;            // of a file's content: how far it is known to reach
    WrittenRanges written;               // the same: what was written over
    std::vector<Access> altered;         // the same: who changed what a look at its attributes shows
};

enum class Mode : uint8_t { use, produce, exclusive };

// Keys of resources: 4 bits of type, 28 of process, 32 of id.
enum class KeyType : uint64_t { descriptor = 1, position, mapping, path, content, passed, listing };
uint64_t key_of(KeyType type, ProcessId process, uint32_t id) {
    return static_cast<uint64_t>(type) << 60 | static_cast<uint64_t>(process & 0x0fffffff) << 32 | id;
}

}  // namespace

class EdgePass {
public:
    EdgePass(Plan& plan, const SharingScan& scan, const std::vector<SpawnSite>& sites, std::vector<uint8_t>& refused)
        : plan_(plan),
          scan_(scan),
          refused_(refused),
          tables_(plan.log->tables()),
          locks_(tables_, scan.locked_, scan.same_content_, tasks_by_process(plan)) {
        const size_t tasks = plan.tasks.size();
        waited_.resize(tasks);
        passed_.resize(tasks);
        cursors_.resize(tasks);
        pending_.resize(tasks);
        sources_.resize(tasks);
        for (const SharingScan::Source& source : scan.edge_sources_) {
            if (source.task < tasks) {
                sources_[source.task].push_back(source.op);
            }
        }
        for (auto& list : sources_) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
        for (const SpawnSite& site : sites) {
            spawn_sites_.emplace(std::pair{site.spawner, site.op}, site.peer);
        }
    }

    void run() {
        for (TaskId task = 1; task < plan_.tasks.size(); ++task) {
            cursors_[task].task = task;
            const auto inferred = plan_.queues.edges.find(task);
            cursors_[task].inferred = inferred != plan_.queues.edges.end() ? &inferred->second : nullptr;
            push(task);
        }
        while (!queue_.empty()) {
            const TaskId task = queue_.top().second;
            queue_.pop();
            Cursor& cursor = cursors_[task];
            const Event event = cursor.events[cursor.next];
            // Waits that have ended by now. One of this task ends before its next op, whatever its times say.
            while (!ends_.empty() && ends_.top().first < event.op.begin) {
                finish_first();
            }
            finish_wait(task);
            ++cursor.next;  // only now: a wait that just ended may have this op as its source
            see(task, event);
            push(task);
        }
        while (!ends_.empty()) {
            finish_first();
        }
        for (TaskPlan& task : plan_.tasks) {
            std::sort(task.explained.begin(), task.explained.end());
        }
        number_sources(plan_);
    }

private:
    struct Event {
        OpRef op;
        uint32_t first_edge = 0, inferred = 0, edges = 0;  // in Cursor::edges: inferred ones, then those of the log
        bool kept = true;
    };
    struct Cursor {
        TaskId task = 0;
        size_t block = 0, next = 0;
        std::vector<Event> events;  // of one block
        std::vector<Edge> edges;
        const std::vector<std::pair<uint64_t, Edge>>* inferred = nullptr;
        size_t next_inferred = 0;
    };
    static std::vector<uint32_t> tasks_by_process(const Plan& plan) {
        std::vector<uint32_t> tasks(plan.processes.size());
        for (const TaskPlan& task : plan.tasks) {
            tasks[task.process] += task.ops != 0 ? 1 : 0;
        }
        return tasks;
    }

    /// A wait that has begun and not ended: its edges count at its end.
    struct Pending {
        uint64_t op = 0;
        int64_t end = 0;
        int64_t waited = 0;       // ns, of the recorded waits
        std::vector<Edge> edges;  // empty: none
        OpRef lock;               // that the op gets
        bool gets_lock = false;
        bool none() const { return edges.empty() && !gets_lock; }
    };

    /// Puts the task's next event into the queue, reading on where its block is used up.
    void push(TaskId task) {
        Cursor& cursor = cursors_[task];
        const TaskPlan& task_plan = plan_.tasks[task];
        while (cursor.next == cursor.events.size()) {
            if (cursor.block == task_plan.blocks.size()) {
                cursor = {};
                return;
            }
            cursor.next = 0;
            cursor.events.clear();
            cursor.edges.clear();
            plan_.log->decode(task_plan.blocks[cursor.block], block_);
            for (size_t i = 0; i < block_.count(); ++i) {
                extract(cursor, task, i);
            }
            plan_.log->forget(task_plan.blocks[cursor.block]);
            ++cursor.block;
        }
        queue_.push({cursor.events[cursor.next].op.begin, task});
    }

    void extract(Cursor& cursor, TaskId task, size_t i) {
        const uint64_t op = block_.first + i;
        const auto kind = static_cast<OpKind>(block_.kind[i]);
        const std::span<const Edge> edges = block_.has_edges() ? block_.edges_of(i) : std::span<const Edge>{};
        const bool kept = keeps(plan_, block_, i);
        const size_t before = cursor.edges.size();
        for (; cursor.inferred != nullptr && cursor.next_inferred < cursor.inferred->size() &&
               (*cursor.inferred)[cursor.next_inferred].first <= op;
             ++cursor.next_inferred) {
            cursor.edges.push_back((*cursor.inferred)[cursor.next_inferred].second);
        }
        const auto inferred = static_cast<uint32_t>(cursor.edges.size() - before);
        const bool cut = task < plan_.cut.size() && plan_.cut[task].second.task != 0 && plan_.cut[task].first == op;
        bool matters = op == 0 || kind == OpKind::spawn || !edges.empty() || inferred != 0 || cut ||
                       std::binary_search(sources_[task].begin(), sources_[task].end(), op);
        matters = matters || locks_.follows(kind, block_.handle[i]);
        if (!matters && kept) {
            matters = handle_matters(block_.handle[i]) || handle_matters(block_.handle2[i]) ||
                      file_matters(block_.file[i]) || file_matters(block_.file2[i]) || map_matters(block_.map[i]);
        }
        if (!matters) {
            return;
        }
        cursor.edges.insert(cursor.edges.end(), edges.begin(), edges.end());
        if (cut) {
            cursor.edges.push_back(plan_.cut[task].second);
        }
        const auto first = static_cast<uint32_t>(before);
        const Event event{OpRef::of(block_, i), first, inferred, static_cast<uint32_t>(edges.size() + (cut ? 1 : 0)),
                          kept};
        cursor.events.push_back(event);
    }

    bool handle_matters(uint32_t handle) const {
        if (handle == 0 || handle >= scan_.handle_flags_.size()) {
            return false;
        }
        const FileId file = tables_.handles[handle].file;
        return scan_.handle_flags_[handle] != 0 || content_matters(file) || passed(file) || listed(file);
    }
    /// A directory whose entries are read, and in which names come or go.
    bool listed(uint32_t file) const {
        return !scan_.listed_in_.empty() && file < tables_.files.size() &&
               tables_.files[file].path < scan_.listed_.size() && scan_.listed_[tables_.files[file].path] != 0;
    }
    bool passed(uint32_t file) const { return file < scan_.passed_.size() && scan_.passed_[file] == 2; }
    bool content_matters(uint32_t file) const {
        return file < scan_.content_flags_.size() && scan_.content_flags_[file] == 3;
    }
    bool file_matters(uint32_t file) const {
        return file != 0 &&
               ((file < scan_.file_by_path_.size() && scan_.file_by_path_[file] != 0) || content_matters(file));
    }
    bool map_matters(uint32_t map) const { return map < scan_.map_flags_.size() && scan_.map_flags_[map] != 0; }

    void see(TaskId task, const Event& event) {
        const OpRef& op = event.op;
        const ProcessId process = plan_.tasks[task].process;
        const auto first = cursors_[task].edges.begin() + event.first_edge;
        if (event.inferred != 0) {
            log_edges(task, op.op, op.begin, {first, first + event.inferred});  // whatever it is, it begins after them
        }
        if (event.edges != 0) {
            std::vector<Edge> edges(first + event.inferred, first + event.inferred + event.edges);
            if (blocks_until_edge(op.kind)) {
                Pending& wait = pending_[task];
                wait.op = op.op;
                wait.end = op.end;
                wait.waited = counts_as_wait(op.kind, op.arg) && op.arg != kWaitSleep ? op.end - op.begin : 0;
                wait.edges = std::move(edges);
                ends_.push({op.end, task});
                return;  // passed when its wait has ended
            }
            if (info(op.kind).is(Trait::async)) {
                std::erase_if(edges, [&](const Edge& edge) { return edge.task == task; });  // see requests.h
            }
            log_edges(task, op.op, op.begin, edges);
        }
        if (op.kind == OpKind::spawn) {
            spawn(task, op);
        } else if (event.kept) {
            resources(task, process, op);
            lock(task, process, op);
        }
        passed_[task] = op.op + 1;
    }

    /// A lock that had to be waited for is had after a release that begins later than the call itself: looked at when
    /// the call has ended.
    void lock(TaskId task, ProcessId process, const OpRef& op) {
        if (locks_.acquires(op)) {
            pending_[task].lock = op;
            pending_[task].gets_lock = true;
            ends_.push({op.end, task});
            return;
        }
        for (const LockOrder::Source& source : locks_.see(task, process, op)) {
            add_resource(task, op.op, source.task, source.op);
        }
    }

    /// What ends first of all, unless it has been finished, and its task waits for something later.
    void finish_first() {
        const auto [end, task] = ends_.top();
        ends_.pop();
        const Pending& wait = pending_[task];
        const bool later = (wait.gets_lock && wait.lock.end > end) || (!wait.edges.empty() && wait.end > end);
        if (!later) {
            finish_wait(task);
        }
    }

    /// `depth`: of waits that ended at the same time and wait for each other, which a hostile log may make any.
    void finish_wait(TaskId task, int depth = 0) {
        Pending& wait = pending_[task];
        if (wait.gets_lock) {
            wait.gets_lock = false;
            for (const LockOrder::Source& source : locks_.acquired(task, plan_.tasks[task].process, wait.lock)) {
                add_resource(task, wait.lock.op, source.task, source.op);
            }
        }
        if (wait.edges.empty()) {
            return;
        }
        const std::vector<Edge> edges = std::exchange(wait.edges, {});
        // What it waited for may be a wait that ended at the same time, as when all of a job meet: that ended first.
        for (const Edge& edge : edges) {
            constexpr int kDeepest = 1000;
            const bool known = edge.task < pending_.size() && edge.task != task;
            if (known && depth < kDeepest && !pending_[edge.task].edges.empty() && pending_[edge.task].op == edge.op &&
                pending_[edge.task].end <= wait.end) {
                finish_wait(edge.task, depth + 1);
            }
        }
        if (!log_edges(task, wait.op, wait.end, edges)) {
            plan_.explained_wait_ns -= wait.waited;
        }
        passed_[task] = wait.op + 1;
    }

    /// A source that began a little after `until`, when the target ended, is where it is by the recorder's own delays:
    /// what its task did before it stands in for it.
    bool began_just_after(const Edge& edge, int64_t until) const {
        constexpr int64_t kLittle = 2'000'000;  // ns
        if (edge.kind == EdgeKind::resource || passed_[edge.task] == 0) {
            return false;
        }
        const Cursor& cursor = cursors_[edge.task];
        for (size_t i = cursor.next; i < cursor.events.size() && cursor.events[i].op.op <= edge.op; ++i) {
            if (cursor.events[i].op.op == edge.op) {
                return cursor.events[i].op.begin - until <= kLittle;
            }
        }
        return false;
    }

    /// `until`: ns, when the sources were done at the latest. False where none of the edges explains the op.
    bool log_edges(TaskId task, uint64_t op, int64_t until, const std::vector<Edge>& edges) {
        bool explained_here = false;
        for (Edge edge : edges) {
            const bool known = edge.task != 0 && edge.task < plan_.tasks.size() && edge.task != task;
            if (known && passed_[edge.task] <= edge.op && began_just_after(edge, until)) {
                edge.op = passed_[edge.task] - 1;
                plan_.count(Count::edges_moved);
            }
            if (edge.task == 0 || edge.task >= plan_.tasks.size() || edge.op >= plan_.tasks[edge.task].ops) {
                plan_.count(Count::edges_without_source);
            } else if (edge.task == task) {
                plan_.count(Count::edges_to_themselves);
            } else if (passed_[edge.task] <= edge.op) {
                plan_.count(Count::edges_against_time);
            } else {
                explained_here = explained_here || edge.kind != EdgeKind::queue;
                if (!add(task, op, edge.task, edge.op, edge.kind)) {
                    continue;  // what came before says as much
                }
                ++plan_.edges_by_kind[static_cast<size_t>(edge.kind) % plan_.edges_by_kind.size()];
            }
        }
        if (explained_here) {
            plan_.tasks[task].explained.push_back(op);
        }
        return explained_here;
    }

    bool add(TaskId task, uint64_t op, TaskId source, uint64_t source_op, EdgeKind kind) {
        if (source == task) {
            return false;
        }
        if (waited_[task].of(source) > source_op) {
            return false;
        }
        waited_[task].set(source, source_op + 1);
        plan_.tasks[task].waits.push_back({op, source_op, source, 0, kind});
        know_what_it_knew(task, source, source_op);
        return true;
    }

    /// What the source had waited for when it was done, whoever waits for it need not wait for again. Known where the
    /// source has not gone on since.
    void know_what_it_knew(TaskId task, TaskId source, uint64_t source_op) {
        const auto* const known = waited_[source].few();
        if (passed_[source] != source_op + 1 || !pending_[source].none() || known == nullptr) {
            return;
        }
        for (const auto& [other, until] : *known) {
            if (other != task) {
                waited_[task].raise(other, until);
            }
        }
    }

    void add_resource(TaskId task, uint64_t op, TaskId source, uint64_t source_op) {
        if (add(task, op, source, source_op, EdgeKind::resource)) {
            ++plan_.edges_by_kind[static_cast<size_t>(EdgeKind::resource)];
        }
    }

    void spawn(TaskId task, const OpRef& op) {
        const auto site = spawn_sites_.find({task, op.op});
        if (site == spawn_sites_.end()) {
            return;
        }
        const TaskId peer = site->second;
        if (passed_[peer] != 0) {
            refused_[peer] = 1;
            return;
        }
        const ProcessId process = plan_.tasks[task].process;
        const ProcessId child = plan_.tasks[peer].process;
        if (child != process) {
            // The child inherits what is open now: other threads' opens come before, their closes after.
            const std::set<uint64_t> open = open_shared_[process];
            for (const uint64_t key : open) {
                access(key, task, op, Mode::use);
            }
            for (const uint64_t key : open) {
                open_shared_[child].insert(key_of(KeyType{key >> 60}, child, static_cast<uint32_t>(key)));
            }
        }
        if (child != process) {
            locks_.forked(process, child);
        }
        // What the spawner has waited for, the child need not wait for again.
        waited_[peer] = waited_[task].inherited();
        waited_[peer].set(task, op.op + 1);
    }

    void resources(TaskId task, ProcessId process, const OpRef& op) {
        for (const uint32_t handle : {op.handle, op.handle2}) {
            if (handle == 0 || handle >= scan_.handle_flags_.size()) {
                continue;
            }
            const uint8_t flags = scan_.handle_flags_[handle];
            if (const FileId file = tables_.handles[handle].file; passed(file)) {
                const bool makes = op.kind == OpKind::open && op.result >= 0;
                if (makes || tables_.handles[handle].inherited) {
                    access(key_of(KeyType::passed, 0, file), task, op, makes ? Mode::exclusive : Mode::use);
                }
            }
            if (flags == 0) {
                continue;
            }
            const bool makes = info(op.kind).is(Trait::makes_handle);
            const bool ends = info(op.kind).is(Trait::ends_handle);
            const uint64_t key = key_of(KeyType::descriptor, process, handle);
            if ((flags & SharingScan::kProcesses) != 0) {
                if (makes) {
                    open_shared_[process].insert(key);
                } else if (ends) {
                    open_shared_[process].erase(key);
                }
            }
            access(key, task, op, makes || ends || op.kind == OpKind::dup ? Mode::exclusive : Mode::use);
            if ((flags & SharingScan::kSharedPosition) != 0 && uses_position(op.kind)) {
                position(handle, task, op);
            }
        }
        if (map_matters(op.map)) {
            const bool structural = op.kind == OpKind::mmap || op.kind == OpKind::munmap || op.kind == OpKind::mremap;
            access(key_of(KeyType::mapping, process, op.map), task, op, structural ? Mode::exclusive : Mode::use);
        }
        const PathUse names = path_use(tables_, op);
        for (const FileId file : {names.made, names.made2}) {
            path(task, op, file, true);
        }
        for (const FileId file : {names.used, names.used2}) {
            path(task, op, file, false);
        }
        if (op.kind == OpKind::getdents && op.handle < tables_.handles.size()) {
            if (const FileId file = tables_.handles[op.handle].file; listed(file)) {
                access(key_of(KeyType::listing, 0, tables_.files[file].path), task, op, Mode::use);
            }
        }
        content(task, op);
    }

    /// Calls that overlapped had the position one after the other, too, and where each found it says in which order.
    /// Neither can depend on the end of the other, so that order goes round in no circle.
    void position(uint32_t handle, TaskId task, const OpRef& op) {
        const OpInfo& row = info(op.kind);
        const bool moves =
            (row.is(Trait::reads) || row.is(Trait::writes)) && op.handle2 == 0 && op.offset >= 0 && op.result >= 0;
        const uint64_t key = key_of(KeyType::position, 0, handle);
        Resource& resource = resources_[key];
        const int64_t to = moves ? OpRef::end_of(op.offset, op.result) : -1;
        for (const Exclusive& other : resource.exclusive) {
            if (!moves || other.to < 0 || other.end <= op.begin || other.task == task) {
                continue;
            }
            if (other.to <= op.offset) {
                add_resource(task, op.op, other.task, other.op);
            } else if (to <= other.from && passed_[other.task] == other.op + 1 && pending_[other.task].none()) {
                add_resource(other.task, other.op, task, op.op);
            }
        }
        access(key, task, op, Mode::exclusive);
        resource.exclusive.back().from = moves ? op.offset : -1;
        resource.exclusive.back().to = to;
    }

    void path(TaskId task, const OpRef& op, FileId file, bool made) {
        if (file == 0 || file >= scan_.changed_above_.size()) {
            return;
        }
        const StringId own = tables_.files[file].path;
        for (const StringId changed : scan_.changed_above_[file]) {
            access(key_of(KeyType::path, 0, changed), task, op, made && changed == own ? Mode::exclusive : Mode::use);
        }
        if (!made) {
            return;
        }
        if (const auto directory = scan_.listed_in_.find(own); directory != scan_.listed_in_.end()) {
            access(key_of(KeyType::listing, 0, directory->second), task, op, Mode::produce);
        }
    }

    void content(TaskId task, const OpRef& op) {
        const DataUse use = data_use(tables_, op);
        if (content_matters(use.cut)) {
            const uint64_t key = content_key(use.cut);
            access(key, task, op, Mode::exclusive);
            Resource& resource = resources_[key];
            resource.content_end = 0;
            resource.written.clear();
            remember(resource.altered, task, op);
        }
        if (content_matters(use.read)) {
            const uint64_t key = content_key(use.read);
            access(key, task, op, Mode::use);
            resources_[key].written.each(use.read_from, use.read_to, [&](const WrittenRanges::By& by) {
                if (by.end <= op.begin) {
                    add_resource(task, op.op, by.task, by.op);
                }
            });
        }
        if (content_matters(use.written)) {
            write(task, op, use);
        }
        const AttributeUse attributes = attribute_use(tables_, op);
        if (content_matters(attributes.asked)) {
            const uint64_t key = content_key(attributes.asked);
            access(key, task, op, Mode::use);
            wait_for(resources_[key].altered, task, op);
        }
        if (content_matters(attributes.altered)) {
            remember(resources_[content_key(attributes.altered)].altered, task, op);
        }
    }

    uint64_t content_key(FileId file) const { return key_of(KeyType::content, 0, scan_.same_content_[file]); }

    void write(TaskId task, const OpRef& op, const DataUse& use) {
        const uint64_t key = content_key(use.written);
        Resource& resource = resources_[key];
        if (resource.content_end < 0) {
            const FileRow& row = tables_.files[use.written];
            resource.content_end =
                row.origin == Origin::existed ? static_cast<int64_t>(std::min<uint64_t>(row.size, INT64_MAX)) : 0;
        }
        remember(resource.altered, task, op);
        // All readers need what makes the file longer, and those of the same bytes what is written over.
        if (use.written_from < resource.content_end) {
            resource.written.write(use.written_from, use.written_to, {task, op.op, op.end});
        }
        if (use.written_to > resource.content_end) {
            resource.content_end = use.written_to;
            access(key, task, op, Mode::produce);
        }
    }

    void access(uint64_t key, TaskId task, const OpRef& op, Mode mode) {
        Resource& resource = resources_[key];
        prune(resource, op.begin);
        for (const Exclusive& other : resource.exclusive) {
            if (other.end <= op.begin) {
                add_resource(task, op.op, other.task, other.op);
            }
        }
        if (mode != Mode::produce) {
            wait_for(resource.produced, task, op);
        }
        switch (mode) {
            case Mode::use:
                // Who changes what a task looks at need not wait for looks that the task takes again.
                if (!plan_.tasks[task].looks.has(op.op)) {
                    remember(resource.used, task, op);
                }
                break;
            case Mode::produce: remember(resource.produced, task, op); break;
            case Mode::exclusive:
                wait_for(resource.used, task, op);
                resource.exclusive.push_back({task, op.op, op.begin, op.end});
                break;
        }
    }

    void wait_for(const std::vector<Access>& accesses, TaskId task, const OpRef& op) {
        for (const Access& other : accesses) {
            if (other.end <= op.begin) {
                add_resource(task, op.op, other.task, other.op);
            } else if (other.has_previous && other.previous_end <= op.begin) {
                add_resource(task, op.op, other.task, other.previous);
            }
        }
    }

    static void remember(std::vector<Access>& accesses, TaskId task, const OpRef& op) {
        const auto at = std::lower_bound(accesses.begin(), accesses.end(), task,
                                         [](const Access& other, TaskId id) { return other.task < id; });
        if (at != accesses.end() && at->task == task) {
            *at = {task, op.op, op.end, true, at->op, at->end};
        } else {
            accesses.insert(at, {task, op.op, op.end, false, 0, 0});
        }
    }

    /// Forgets what a later exclusive access, itself ended by `now`, has waited for.
    static void prune(Resource& resource, int64_t now) {
        int64_t horizon = INT64_MIN;
        const Exclusive* by = nullptr;
        for (const Exclusive& other : resource.exclusive) {
            if (other.end <= now && other.begin > horizon) {
                horizon = other.begin;
                by = &other;
            }
        }
        if (by == nullptr) {
            return;
        }
        const std::pair keep{by->task, by->op};
        std::erase_if(resource.exclusive, [&](const Exclusive& other) {
            return other.end <= horizon && std::pair{other.task, other.op} != keep;
        });
        const auto old = [&](const Access& other) { return other.end <= horizon; };
        std::erase_if(resource.used, old);
        std::erase_if(resource.produced, old);
        std::erase_if(resource.altered, old);
    }

    Plan& plan_;
    const SharingScan& scan_;
    std::vector<uint8_t>& refused_;
    const Tables& tables_;
    LockOrder locks_;
    std::vector<KnownWaits> waited_;              // by task
    std::vector<uint64_t> passed_;                // by task: one past the last op seen
    std::vector<std::vector<uint64_t>> sources_;  // by task: ops that edges of the log name
    std::map<std::pair<TaskId, uint64_t>, TaskId> spawn_sites_;
    std::unordered_map<uint64_t, Resource> resources_;
    std::unordered_map<ProcessId, std::set<uint64_t>> open_shared_;  // descriptors open in a process, used by several
    std::vector<Cursor> cursors_;
    OpBlock block_;
    using Next = std::pair<int64_t, TaskId>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> queue_;
    std::vector<Pending> pending_;                                       // by task
    std::priority_queue<Next, std::vector<Next>, std::greater<>> ends_;  // of pending waits; may be out of date
};

void add_edges(Plan& plan, const SharingScan& scan, const std::vector<SpawnSite>& sites,
               std::vector<uint8_t>& spawn_refused) {
    EdgePass(plan, scan, sites, spawn_refused).run();
}

}  // namespace reprise
