// SPDX-License-Identifier: MIT
// The pass over all ops that make_plan() makes: what it counts, and which rules see each op.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/oplog/open_flags.h"
#include "formats/oplog/touched.h"
#include "replay/plan/async_depth.h"
#include "replay/plan/causal_step.h"
#include "replay/plan/edges.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/end_looks.h"
#include "replay/plan/looks.h"
#include "replay/plan/paced.h"
#include "replay/plan/plan.h"
#include "replay/plan/polls.h"
#include "replay/plan/samplers.h"
#include "replay/plan/timer_wheel.h"

namespace reprise {

/// One pass over the ops of all tasks.
class PlanScan {
public:
    PlanScan(Plan& plan, SharingScan& sharing)
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
        const int64_t sampling = samplers_.join(plan_);
        reprise::join_looks(plan_);
        const int64_t ending = end_looks_.join(plan_, polls_), looking = unexplained_looks(plan_);
        const int64_t polling =
            std::max<int64_t>(polls_.repeated_sleep_ns() - sampling - ending - requests.slept_ns(), 0);
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
        if (!moves && kind != OpKind::mkdir && kind != OpKind::rmdir && kind != OpKind::unlink) {
            return;
        }
        plan_.risky_names = plan_.risky_names || moves;
        if (block_.result[i] < 0) {
            return;
        }
        if (kind == OpKind::unlink) {  // a link may be made anew, to lead elsewhere
            moves_directories = moves_directories || type_of(block_.file[i]) == FileType::symlink;
            return;
        }
        symlinks = symlinks || kind == OpKind::symlink;
        moves_directories = moves_directories || (kind == OpKind::rename && !moves_file(i));
        for (const FileId file : {block_.file[i], block_.file2[i]}) {
            if (file == 0 || file >= plan_.paths.size() || plan_.paths[file].relative == nullptr) {
                continue;
            }
            const char* const path = plan_.paths[file].relative;
            // Made once, a directory is what its path means from then on, and nothing can be opened in it before and
            // after. So is one that was there, unless it is made again.
            if (kind == OpKind::mkdir && made_.insert(path).second && !removed_.contains(path)) {
                continue;
            }
            if (kind == OpKind::rmdir) {
                const bool there = file >= tables_.files.size() || tables_.files[file].origin != Origin::created;
                if (!there || (removed_.insert(path), !made_.contains(path))) {
                    continue;
                }
            }
            moves_directories = moves_directories || kind == OpKind::mkdir || kind == OpKind::rmdir;
            renamed.insert(path);
        }
    }
    FileType type_of(FileId file) const {
        return file < tables_.files.size() ? tables_.files[file].type : FileType::unknown;
    }
    /// Whether the rename at hand is of a file, and over nothing but a file.
    bool moves_file(size_t i) const {
        const FileType to = type_of(block_.file2[i]);
        const bool exchanges = (block_.flags[i] & RENAME_EXCHANGE) != 0;
        return type_of(block_.file[i]) == FileType::regular &&
               (exchanges ? to == FileType::regular : to != FileType::symlink);
    }

    Plan& plan_;
    SharingScan& sharing_;
    const Tables& tables_;
    OpBlock block_;
    int64_t before_ = INT64_MIN;  // ns, when the task's ops so far ended
    std::vector<bool> starts_task_;
    std::unordered_set<std::string> made_, removed_;  // directories; the second: those that were there at first
    std::vector<End> ends_;                           // by task
    Helpers helpers_;
    Polls polls_;
    TimerWheel timer_wheel_;
    Samplers samplers_;
    EndLooks end_looks_;
    RepeatedLooks looks_{tables_};
    Timers timers_;
    PacedSleeps paced_;
};

}  // namespace reprise
