// SPDX-License-Identifier: MIT
#include "replay/plan/recorded_doubts.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/context_series.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/installed_paths.h"
#include "formats/oplog/op_fields.h"
#include "formats/oplog/range_lock.h"
#include "formats/oplog/request_matcher.h"
#include "formats/oplog/touched.h"
#include "formats/support/sums.h"
#include "replay/plan/held_locks.h"

namespace reprise {
namespace {

/// Requests that the recording's machine made of its devices, and how long they took together, ns; 0 where that is not
/// known.
struct DeviceReads {
    double count = 0, ns = 0, bytes = 0;
};
DeviceReads device_reads(const Header& header) {
    const Context context = read_context(header);
    const auto named = [&](std::string_view name) {
        const auto found = std::find_if(context.series.begin(), context.series.end(),
                                        [&](const ContextSeries& series) { return series.name == name; });
        return found == context.series.end() ? std::vector<double>() : found->values;
    };
    const std::vector<double> rates = named("device reads"), latencies = named("device read latency"),  // us
        moved = named("device read");                                                                   // MiB/s
    DeviceReads sum;
    for (size_t i = 0; i < rates.size(); ++i) {
        const double reads = rates[i] * static_cast<double>(context.interval_ns) / 1e9;
        sum.count += reads;
        sum.ns += i < latencies.size() ? reads * latencies[i] * 1e3 : 0;
        sum.bytes += i < moved.size() ? moved[i] * static_cast<double>(context.interval_ns) / 1e9 * (1 << 20) : 0;
    }
    return sum;
}

/// libmpi.so.40 (Open MPI, Intel MPI), libmpich.so.12, libmpi_cray.so.12
bool is_mpi(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("libmpi.so") || name.starts_with("libmpich.so") || name.starts_with("libmpi_cray");
}

// Two stops and the line. Measured: 30 to 120 us for a cached read of 4 KiB, 64 for a call of tar with -yy.
constexpr int64_t kStraceCall = 40'000;
constexpr uint64_t kMostCalls = uint64_t{1} << 40;

class Looker {
public:
    explicit Looker(const Plan& plan)
        : plan_(plan),
          tables_(plan.log->tables()),
          uses_(tables_.files.size()),
          executed_(tables_.files.size()),
          requests_(tables_, [this](const DoneRequest& request) {
              add(request.file, request.bytes());
              ++out_.requests;
          }) {}

    RecordedDoubts run() {
        names_.resize(tables_.tasks.size());
        calls_.resize(tables_.tasks.size());
        refused_.resize(tables_.tasks.size());
        servers_.resize(tables_.tasks.size());
        walked_.resize(tables_.tasks.size());
        OpBlock block;
        for (const BlockInfo& where : plan_.log->blocks()) {
            plan_.log->decode(where, block);
            for (size_t i = 0; i < block.count(); ++i) {
                see(block, i);
            }
            plan_.log->forget(where);
        }
        requests_.finish();
        out_.unreported_requests = requests_.unfinished();
        out_.requests += out_.unreported_requests;
        // A mapping may be made in a block behind that of its touches: by another task.
        for (const auto& [map, mapping] : mappings_) {
            add(mapping.file, mapping.touched.bytes);
            if (mapping.file < uses_.size()) {
                sum(uses_[mapping.file].ns, mapping.touched.ns);
            }
        }
        sum_up();
        return out_;
    }

private:
    struct Mapping {
        FileId file = 0;
        FileUse touched;
    };

    struct Server {
        HandleId last = 0;               // that it heard of
        uint64_t others = 0, syncs = 0;  // from another connection than before; after it heard of some
        bool asked = false;
        // The same of one that others wake.
        bool woken = false;
        uint64_t woken_syncs = 0, written = 0;  // written: bytes
    };

    void see(const OpBlock& block, size_t i) {
        const auto kind = static_cast<OpKind>(block.kind[i]);
        const OpInfo& row = info(kind);
        held_.see(block, i);
        names_awaited_.see(block, i);
        work_.see(block, i);
        if (row.is(Trait::io)) {
            call(block, i);
            ++(keeps(plan_, block, i) ? out_.kept_ops : out_.left_out_ops);
            if (block.task < calls_.size()) {
                ++calls_[block.task];
            }
        }
        if (waited_for_names(block, i) && block.task < names_.size() && keeps(plan_, block, i)) {
            names_[block.task] += std::min(block.duration[i], INT64_MAX - names_[block.task]);
            ++waits_;
        }
        if (block.task < refused_.size()) {
            lock(block, i);
            serve(block, i);
            walk(block, i);
        }
        if (kind == OpKind::exec) {
            execute(block.file[i]);
        } else if (kind == OpKind::mmap && block.handle[i] != 0 && block.result[i] >= 0) {
            map(block, i);
        } else if (kind == OpKind::touch) {
            faults_ = true;
            each_touched(block.offset[i], block.size[i], block.list_of(i), [&](int64_t, int64_t bytes) {
                sum(mappings_[block.map[i]].touched.bytes, static_cast<uint64_t>(bytes));
            });
            add_time(mappings_[block.map[i]].touched, block.duration[i]);
        } else if ((row.is(Trait::reads) || row.is(Trait::writes)) && block.result[i] > 0) {
            add(tables_.file_of(block.row(i)), static_cast<uint64_t>(block.result[i]));
        } else if (row.is(Trait::async)) {
            requests_.add(block.task, block.row(i));
        }
    }
    bool has_place(FileId file) const {
        return plan_.paths[file].relative != nullptr || tables_.path(file).empty() ||
               tables_.files[file].type != FileType::regular;
    }
    /// Refused, slept, asked again: what that takes depends on how long others hold the lock.
    void lock(const OpBlock& block, size_t i) {
        const auto kind = static_cast<OpKind>(block.kind[i]);
        const int64_t result = block.result[i];
        const bool range = kind == OpKind::fcntl && locks_range(block.arg[i]);
        const bool waits = block.arg[i] == F_SETLKW || block.arg[i] == F_OFD_SETLKW;
        const bool asks = kind == OpKind::flock || (range && !waits);
        out_.range_locks += range && !unpack_range_lock(block.flags[i]) && keeps(plan_, block, i) ? 1 : 0;
        const bool asks_name = makes_new_name(block, i) && result == -EEXIST && block.task < plan_.tasks.size() &&
                               plan_.tasks[block.task].looks.has(block.first + i);
        if ((asks || asks_name) && keeps(plan_, block, i)) {
            refused_[block.task] = asks_name || result == -EAGAIN || result == -EACCES;
        } else if (kind == OpKind::wait && block.arg[i] == kWaitSleep && refused_[block.task]) {
            refused_[block.task] = false;
            ++out_.lock_polls;
        }
    }
    /// What arrives while a sync runs shares the next one: a slower sync serves more at once.
    void serve(const OpBlock& block, size_t i) {
        const auto kind = static_cast<OpKind>(block.kind[i]);
        Server& server = servers_[block.task];
        const HandleId handle = block.handle[i];
        if (kind == OpKind::receive && block.result[i] > 0 && handle < tables_.handles.size() &&
            tables_.handles[handle].kind == HandleKind::socket) {
            server.others += server.last != 0 && server.last != handle ? 1 : 0;
            server.last = handle;
            server.asked = true;
        } else if (kind == OpKind::wait && !is_lock_wait(block.arg[i]) && block.has_edges()) {
            const auto edges = block.edges_of(i);
            server.woken = server.woken || std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
                               return edge.kind == EdgeKind::wake && edge.task != block.task;
                           });
        } else if (info(kind).is(Trait::writes) && block.result[i] > 0) {
            sum(server.written, static_cast<uint64_t>(block.result[i]));
        } else if (info(kind).is(Trait::syncs) && keeps(plan_, block, i)) {
            server.syncs += server.asked ? 1 : 0;
            server.woken_syncs += server.woken ? 1 : 0;
            server.asked = server.woken = false;
        }
    }
    void walk(const OpBlock& block, size_t i) {
        const FileId file = block.file[i];
        const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
        if (!row.is(Trait::path) || !row.is(Trait::io) || file == 0 || file >= plan_.paths.size() ||
            plan_.paths[file].relative == nullptr || !keeps(plan_, block, i)) {
            return;
        }
        const std::string_view path = plan_.paths[file].relative;
        const auto directories = static_cast<uint64_t>(std::count(path.begin(), path.end(), '/'));
        walked_[block.task] += directories;
        if (directories >= 2 && block.result[i] >= 0 && tables_.files[file].origin == Origin::existed) {
            out_.deep_file = file;
        }
    }
    void call(const OpBlock& block, size_t i) {
        const Op op = block.row(i);
        const FileId file = tables_.file_of(op);
        if (file != 0 && file < uses_.size()) {
            FileUse& use = uses_[file];
            ++use.calls;
            if (info(op.kind).is(Trait::syncs)) {
                ++use.syncs;
                if (block.task < plan_.tasks.size()) {
                    ++syncs_[file][block.task];
                }
            }
            add_time(use, op.duration);
            if (info(op.kind).is(Trait::writes) && op.result > 0) {
                sum(use.written, static_cast<uint64_t>(op.result));
            }
        }
    }
    void map(const OpBlock& block, size_t i) {
        const HandleId handle = block.handle[i];
        const FileId file = handle < tables_.handles.size() ? tables_.handles[handle].file : 0;
        mappings_[block.map[i]].file = file;
        if (file < uses_.size() && (block.mode[i] & PROT_EXEC) == 0) {
            // Sizes come from the log.
            const auto length = static_cast<uint64_t>(std::max<int64_t>(block.size[i], 0));
            const FileRow& row = tables_.files[file];
            mapped_[file] = std::max(mapped_[file], row.size_exact ? std::min(length, row.size) : length);
        }
        if ((block.mode[i] & PROT_EXEC) != 0) {
            execute(file);
            if (is_mpi(tables_.path(file)) && block.task < tables_.tasks.size()) {
                mpi_.insert(tables_.tasks[block.task].process);
            }
        }
    }
    void execute(FileId file) {
        if (file < executed_.size()) {
            executed_[file] = true;
        }
    }
    void add(FileId file, uint64_t bytes) {
        if (file < uses_.size()) {
            sum(uses_[file].bytes, bytes);
        }
    }
    static void add_time(FileUse& use, int64_t ns) { sum(use.ns, static_cast<uint64_t>(std::max<int64_t>(ns, 0))); }

    /// Of a file that is left out: whether its name alone makes it a program's.
    bool may_be_data(FileId file) const {
        const FileRow& row = tables_.files[file];
        return row.type == FileType::block ||
               (row.type != FileType::character && !executed_[file] &&
                !is_part_of_program(tables_.path(file), std::max(row.size, uses_[file].bytes)));
    }

    /// Of a file that is left out and is no data by its name.
    void leave_out_program(FileId file) {
        const FileUse& use = uses_[file];
        const std::string_view path = tables_.path(file);
        if (executed_[file] || tables_.files[file].type == FileType::character || is_system_place(path)) {
            return;
        }
        sum(out_.programs.bytes, use.bytes);
        add_time(out_.programs.ns, use.ns);
        if (!is_part_of_program(path, UINT64_MAX)) {
            sum(out_.small.bytes, use.bytes);
            add_time(out_.small.ns, use.ns);
        }
    }
    static void add_time(int64_t& to, uint64_t ns) {
        to += static_cast<int64_t>(std::min(ns, static_cast<uint64_t>(INT64_MAX - to)));
    }

    /// The directory that all data is in; empty: none, or it is too near the top to say anything.
    std::string_view data_directory() const {
        std::string_view common;
        bool first = true;
        for (FileId file = 1; file < uses_.size(); ++file) {
            if (uses_[file].bytes == 0 || !plan_.keeps_file(file) || tables_.files[file].role == Role::ipc) {
                continue;
            }
            const std::string_view path = tables_.path(file);
            const std::string_view directory = path.substr(0, path.rfind('/') + 1);
            if (first) {
                common = directory;
                first = false;
            }
            const size_t same = static_cast<size_t>(
                std::mismatch(common.begin(), common.end(), directory.begin(), directory.end()).first - common.begin());
            common = common.substr(0, common.substr(0, same).rfind('/') + 1);
        }
        return std::count(common.begin(), common.end(), '/') > 2 ? common : std::string_view();
    }
    void programs_beside_data() {
        const std::string_view directory = data_directory();
        for (FileId file = 1; file < uses_.size() && !directory.empty(); ++file) {
            const std::string_view path = tables_.path(file);
            // A Python environment in the project's folder is run, and not moved with the data.
            const bool runs = executed_[file] || path.find("/site-packages/") != path.npos ||
                              path.find("/lib/python") != path.npos || path.find("/bin/") != path.npos;
            if (!runs && !plan_.keeps_file(file) && !may_be_data(file) && path.starts_with(directory)) {
                sum(out_.beside_bytes, uses_[file].bytes);
            }
        }
    }

    /// Threads that append to one log and have one of them sync for all.
    void share_syncs() {
        constexpr size_t kLeastThreads = 3;
        constexpr uint64_t kLeastWaits = 20;
        for (const auto& [file, by_task] : syncs_) {
            std::map<ProcessId, std::vector<TaskId>> threads;
            std::map<ProcessId, uint64_t> syncs;
            for (const auto& [task, count] : by_task) {
                threads[plan_.tasks[task].process].push_back(task);
                syncs[plan_.tasks[task].process] += count;
            }
            for (const auto& [process, tasks] : threads) {
                if (tasks.size() < kLeastThreads || syncs[process] <= out_.thread_syncs) {
                    continue;
                }
                uint64_t waits = 0;
                for (const TaskId task : tasks) {
                    waits += plan_.tasks[task].lock_waits;
                    for (const WaitFor& wait : plan_.tasks[task].waits) {
                        waits += wait.kind == EdgeKind::wake && by_task.contains(wait.task) ? 1 : 0;
                    }
                }
                if (waits >= kLeastWaits) {
                    out_.sync_threads = tasks.size();
                    out_.thread_syncs = syncs[process];
                }
            }
        }
    }

    /// Of the time of all reads, what those of programs have by their bytes.
    void programs(const DeviceReads& reads) {
        const std::optional<FetchedPages> fetched = fetched_pages(*plan_.log);
        uint64_t all = 0;
        for (const auto& [file, ranges] : fetched.value_or(FetchedPages())) {
            if (file >= tables_.files.size()) {
                continue;
            }
            const Role role = tables_.files[file].role;
            sum(all, ranges.bytes());
            if ((role == Role::program || role == Role::system) && !plan_.keeps_file(file) && !may_be_data(file)) {
                sum(out_.program_bytes, ranges.bytes());
            }
        }
        if (all != 0) {
            // The devices read for other programs, too.
            const double share =
                static_cast<double>(out_.program_bytes) / std::max(static_cast<double>(all), reads.bytes);
            out_.program_ns = static_cast<int64_t>(std::min(reads.ns * share, static_cast<double>(out_.span_ns)));
        }
    }

    void sum_up() {
        out_.span_ns = std::max<int64_t>(distance_ns(plan_.first_begin, plan_.last_end), 0);
        if (plan_.log->header().source == "strace" && !calls_.empty()) {
            const uint64_t most = *std::max_element(calls_.begin(), calls_.end());
            out_.traced_ns = static_cast<int64_t>(std::min(most, kMostCalls)) * kStraceCall;
        }
        out_.mpi_processes = mpi_.size();
        out_.awaited = names_awaited_.most();
        out_.held_locks_ns = held_.waited(out_.span_ns);
        out_.unclear_locks = plan_.counted(Count::guards_unclear);
        for (TaskId task = 1; task < servers_.size(); ++task) {
            const uint64_t syncs = std::min(servers_[task].syncs, servers_[task].others);
            if (syncs > out_.asked_syncs) {
                out_.syncs_for_others = task;
                out_.asked_syncs = syncs;
            }
            // A saver of checkpoints has more to write, and one of them at a time.
            constexpr uint64_t kLittleEach = 64 << 10;
            const uint64_t woken = servers_[task].woken_syncs;
            if (woken > out_.logger_syncs && servers_[task].written / woken <= kLittleEach) {
                out_.logger = task;
                out_.logger_syncs = woken;
            }
        }
        share_syncs();
        out_.kept_directories = walked_.empty() ? 0 : *std::max_element(walked_.begin(), walked_.end());
        const DeviceReads reads = device_reads(plan_.log->header());
        programs(reads);
        // A wait for a device is at least a part of a request.
        constexpr double kWaitsPerRead = 8;
        if (waits_ != 0 && reads.count * kWaitsPerRead >= static_cast<double>(waits_)) {
            out_.names_ns = *std::max_element(names_.begin(), names_.end());
        }
        FileSystems file_systems(*plan_.log);
        for (FileId file = 1; file < uses_.size(); ++file) {
            if (plan_.keeps_file(file)) {
                sum(out_.kept_bytes, uses_[file].bytes);
                sum(out_.unplaced_bytes, has_place(file) ? 0 : uses_[file].bytes);
                add_time(out_.kept_ns, uses_[file].ns);
                if (const auto mapped = mapped_.find(file); mapped != mapped_.end() && !faults_ && !executed_[file]) {
                    sum(out_.unseen_mapped_bytes, mapped->second);
                }
                if (uses_[file].calls != 0) {
                    file_systems.add(file, uses_[file]);
                }
            } else if (may_be_data(file)) {
                sum(out_.left_out_bytes, uses_[file].bytes);
            } else {
                leave_out_program(file);
            }
        }
        out_.file_systems = file_systems.sorted();
        out_.work = work_.found();
        programs_beside_data();
    }

    const Plan& plan_;
    const Tables& tables_;
    RecordedDoubts out_;
    std::vector<FileUse> uses_;   // by FileId
    std::vector<bool> executed_;  // by FileId: run, or mapped to be run
    RequestMatcher requests_;
    std::unordered_map<uint32_t, Mapping> mappings_;
    std::unordered_map<FileId, uint64_t> mapped_;  // most bytes of each at once
    bool faults_ = false;                          // the log has some
    std::vector<int64_t> names_;                   // by TaskId, ns
    std::vector<uint64_t> calls_;                  // by TaskId
    uint64_t waits_ = 0;
    std::vector<Server> servers_;   // by TaskId
    std::vector<uint64_t> walked_;  // by TaskId: directories on the way to what it names
    std::unordered_map<FileId, std::map<TaskId, uint64_t>> syncs_;
    std::set<ProcessId> mpi_;  // that loaded a library of MPI
    HeldLocks held_{plan_};
    AwaitedNames names_awaited_{plan_};
    FileSystemWorkScan work_{*plan_.log};
    std::vector<bool> refused_;  // by TaskId: the last lock that it asked for
};

}  // namespace

bool waited_for_names(const OpBlock& block, size_t i) {
    if (block.duration[i] < kNameInMemory) {
        return false;
    }
    switch (static_cast<OpKind>(block.kind[i])) {
        case OpKind::open: return (block.flags[i] & (O_CREAT | O_TRUNC)) == 0;
        case OpKind::stat:
        case OpKind::fstat:
        case OpKind::statx:
        case OpKind::access:
        case OpKind::readlink:
        case OpKind::getdents:
        case OpKind::getxattr:
        case OpKind::listxattr: return true;
        default: return false;
    }
}

RecordedDoubts recorded_doubts(const Plan& plan) {
    RecordedDoubts doubts = Looker(plan).run();
    doubts.refetched_bytes = static_cast<uint64_t>(read_fact(plan.log->header(), fact::refetched).value_or(0));
    constexpr int64_t kMost = 1'000'000;
    const int64_t missed = read_fact(plan.log->header(), fact::scaled_missed).value_or(0);
    doubts.scaled_missed = static_cast<double>(std::clamp<int64_t>(missed, 0, kMost)) / 1000;
    doubts.flags_assumed = plan.counted(Count::flags_assumed) != 0;
    doubts.part = part_of_job(plan.log->tables());
    doubts.untimed_calls = plan.untimed_calls;
    doubts.calls_filtered = plan.counted(Count::calls_filtered) != 0;
    if (const Header& header = plan.log->header(); header.source == "replay") {
        doubts.run_pace = read_fact(header, fact::pace).value_or("causal");
        doubts.run_without_storage = read_fact(header, fact::engine) == "null";
    }
    doubts.unseen_children = plan.counted(Count::children_unseen);
    for (const RequestRing& ring : plan.rings) {
        doubts.polled_requests += ring.polled && ring.looker == 0 ? ring.requests : 0;
        sum(doubts.looked_ns, ring.looked_ns);
        sum(doubts.unclear_looks_ns, ring.unclear_looks_ns);
        doubts.at_once_requests += ring.at_once;
    }
    if (static_cast<double>(doubts.unclear_looks_ns) <=
        kSomeShare * (static_cast<double>(plan.last_end) - static_cast<double>(plan.first_begin))) {
        doubts.unclear_looks_ns = 0;
    }
    return doubts;
}

}  // namespace reprise
