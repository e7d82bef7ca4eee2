// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/recording.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/assemble/recording/recording_impl.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

// Records come out of order by the time between reading the clock and the ring buffer: microseconds, rarely more.
constexpr uint64_t kReorder = 5'000'000;
constexpr uint64_t kMostStolen = 3'600'000'000'000;  // ns
constexpr size_t kMostWaiting = size_t{1} << 20;
// How long ended tasks are kept for the tasks they woke.
constexpr int64_t kKeepEnded = 1'000'000'000;
constexpr int64_t kMergeGpu = 10'000;
constexpr int kSignalled = 128;
constexpr int64_t kInterrupted = -4;  // EINTR

// Sorts the records of the chunks by time.
class Reorder {
public:
    template <class Visit>
    void add(ByteView chunk, Visit visit, RawAssembly& assembly) {
        auto& kept = chunks_.emplace_back(chunk.size() / sizeof(uint64_t) + 1);
        std::memcpy(kept.data(), chunk.data(), chunk.size());
        const uint64_t number = first_chunk_ + chunks_.size() - 1;
        const ByteView bytes(reinterpret_cast<const uint8_t*>(kept.data()), chunk.size());
        for (const raw_head& head : RawRecords(bytes)) {
            waiting_.push_back({head.time, head.tid, head.sequence, number, &head});
            newest_ = std::max<uint64_t>(newest_, head.time);
        }
        give(newest_ > kReorder ? newest_ - kReorder : 0, visit, assembly);
    }
    template <class Visit>
    void finish(Visit visit, RawAssembly& assembly) {
        give(UINT64_MAX, visit, assembly);
    }
    /// Whether one of the records behind that which is visited is such a one.
    bool any_later(const std::function<bool(const raw_head&)>& is_one) const {
        return std::any_of(waiting_.begin() + static_cast<ptrdiff_t>(at_) + 1, waiting_.end(),
                           [&](const Ref& ref) { return is_one(*ref.head); });
    }

private:
    struct Ref {
        uint64_t time;
        uint32_t tid, sequence;
        uint64_t chunk;
        const raw_head* head;
    };
    template <class Visit>
    void give(uint64_t until, Visit visit, RawAssembly& assembly) {
        std::sort(waiting_.begin(), waiting_.end(), [](const Ref& a, const Ref& b) {
            return std::tie(a.time, a.tid, a.sequence, a.chunk) < std::tie(b.time, b.tid, b.sequence, b.chunk);
        });
        size_t n = 0;
        const size_t forced = waiting_.size() > kMostWaiting ? waiting_.size() - kMostWaiting / 2 : 0;
        for (; n < waiting_.size() && (waiting_[n].time <= until || n < forced); ++n) {
            at_ = n;
            visit(*waiting_[n].head);
            if (n % 256 == 0) {
                assembly.advance(waiting_[n].time);
            }
        }
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(n));
        uint64_t least = UINT64_MAX;
        for (const Ref& ref : waiting_) {
            least = std::min(least, ref.chunk);
        }
        for (; !chunks_.empty() && first_chunk_ < least; ++first_chunk_) {
            chunks_.pop_front();
        }
    }

    std::deque<std::vector<uint64_t>> chunks_;
    uint64_t first_chunk_ = 0;
    std::vector<Ref> waiting_;
    size_t at_ = 0;  // the one that is visited
    uint64_t newest_ = 0;
};

// What the recorder says in the meta record by the fact's own name.
bool is_fact_of_capture(std::string_view key) {
    constexpr std::string_view kKeys[] = {
        fact::capture_mode.key, fact::capture_groups.key,      fact::capture_absent.key,  fact::capture_programs.key,
        fact::fault_around.key, fact::capture_cpus.key,        fact::capture_profile.key, fact::event_costs.key,
        fact::file_systems.key, fact::recorded_read_ahead.key, fact::mapped_uses.key,     fact::boot.key,
        fact::clock_error.key,  fact::uncounted_devices.key,
    };
    return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

// Texts of the meta record; whatever else it says is kept as a header pair.
std::string complete_header(Header& header, const RawFacts& facts) {
    header.clock = "monotonic";
    header.source = "capture";
    header.origin_unix_ns = facts.origin_unix;
    write_fact(header, fact::origin_monotonic, static_cast<int64_t>(facts.origin));
    std::string directory;
    const auto meta = nlohmann::json::parse(facts.meta, nullptr, false);
    if (!meta.is_object()) {
        return directory;
    }
    for (const auto& [key, value] : meta.items()) {
        const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
        if (key == "command") {
            std::string command;
            if (value.is_array()) {
                for (const auto& word : value) {
                    command +=
                        (command.empty() ? "" : " ") + (word.is_string() ? word.get<std::string>() : word.dump());
                }
            }
            header.command = value.is_array() ? command : text;
        } else if (key == "host") {
            header.host = text;
        } else if (key == "kernel") {
            header.kernel = text;
        } else if (key == "tool") {
            header.tool = text;
        } else if (key == "directory" || key == "cwd") {
            directory = text;
        } else if (is_fact_of_capture("capture." + key)) {
            header.extra["capture." + key] = text;
        }
    }
    return directory;
}

// The recording's own files, as its recorder named them.
std::vector<std::string> own_files(const RawFacts& facts) {
    std::vector<std::string> out;
    const auto meta = nlohmann::json::parse(facts.meta, nullptr, false);
    if (meta.is_object() && meta.contains("own_files") && meta["own_files"].is_array()) {
        for (const auto& path : meta["own_files"]) {
            if (path.is_string()) {
                out.push_back(path.get<std::string>());
            }
        }
    }
    return out;
}

// The recorder lists what was mounted as it began; a tmpfs of the job's own came later, and may be gone.
void add_memory(Header& header, const std::set<uint64_t>& devices) {
    auto types = nlohmann::json::parse(read_fact(header, fact::file_systems).value_or("{}"), nullptr, false);
    if (!types.is_object()) {
        return;
    }
    const size_t known = types.size();
    for (const uint64_t device : devices) {
        types.emplace(device_name(device), "tmpfs");
    }
    if (types.size() != known) {
        write_fact(header, fact::file_systems, types.dump());
    }
}

uint64_t settled_ops(uint64_t ops) { return ops; }

}  // namespace

RawAssembly::RawAssembly(const RawFacts& facts, LogWriter& writer, const RawAssembleOptions& options,
                         std::string_view initial_directory)
    : facts_(facts),
      writer_(writer),
      options_(options),
      assembler_(writer,
                 [&] {
                     Assembler::Options how;
                     how.in_order = true;
                     how.roles = &options.roles;
                     how.own_files = own_files(facts);
                     how.link_of = [this](int32_t pid, const std::string& path) {
                         return link_on_disk(static_cast<uint32_t>(pid), path);
                     };
                     if (options.find_at_end) {
                         how.find_at_end = [this](const std::string& path) { return find_at_end(path); };
                     }
                     how.renames_now = [this](std::string_view from, std::string_view to) {
                         return renames_now(from, to);
                     };
                     how.directory_was = [this](const std::string& link, std::string_view rest, uint64_t inode) {
                         return directory_was(link, rest, inode);
                     };
                     if (initial_directory.starts_with('/')) {
                         how.initial_directory = initial_directory;
                     }
                     return how;
                 }()),
      edges_(assembler_,
             [this](RawTaskKey key, int64_t enter) -> uint64_t {
                 const auto it = tasks_.find(key);
                 if (it == tasks_.end()) {
                     return 0;
                 }
                 settle(it->second, enter);
                 return settled_ops(assembler_.op_count(it->second.id));
             }),
      context_(facts.origin, stacks_of_meta(facts.meta)),
      used_again_(facts.uses) {}

RawAssembly::TaskState& RawAssembly::state(uint32_t pid, uint32_t tid) {
    TaskState& task = tasks_[raw_task_key(pid, tid)];
    if (!task.id) {
        task.pid = pid;
        task.tid = tid;
        task.id = assembler_.task(static_cast<int32_t>(pid), static_cast<int32_t>(tid));
    }
    return task;
}

void RawAssembly::check_sequence(TaskState& task, const raw_head& head) {
    if (task.any_sequence && head.sequence > task.next_sequence) {
        lost_records_ += head.sequence - task.next_sequence;
    }
    if (!task.any_sequence && head.sequence > 0) {
        lost_records_ += head.sequence;
    }
    task.any_sequence = true;
    task.next_sequence = std::max(task.next_sequence, head.sequence + 1);
}

void RawAssembly::record(const raw_head& head) {
    now_ = head.time;
    const bool numbered =
        (head.type <= RAW_PAGE_CACHE || head.type == RAW_TOUCH || head.type == RAW_STOLEN || head.type == RAW_FAULTS) &&
        head.type != RAW_META && head.type != RAW_EXEC;
    if (numbered && head.tid != 0) {
        TaskState& task = state(head.pid, head.tid);
        if (task.ended && head.tid == head.pid) {
            task.after_end.push_back(head);  // of a thread in an exec, which has taken the number over
        } else {
            check_sequence(task, head);
        }
    }
    switch (head.type) {
        case RAW_CALL: return call(reinterpret_cast<const raw_call&>(head));
        case RAW_SPAWN: return spawned(reinterpret_cast<const raw_spawn&>(head));
        case RAW_EXEC: return executed(reinterpret_cast<const raw_exec&>(head));
        case RAW_EXIT: return exited(reinterpret_cast<const raw_exit&>(head));
        case RAW_SWITCH: return off(reinterpret_cast<const raw_switch&>(head));
        case RAW_FAULT: return fault(reinterpret_cast<const raw_fault&>(head));
        case RAW_TOUCH: return touches(reinterpret_cast<const raw_touch&>(head));
        case RAW_STOLEN: return stolen(reinterpret_cast<const raw_stolen&>(head));
        case RAW_FAULTS: return faults(reinterpret_cast<const raw_faults&>(head));
        case RAW_URING_SUBMIT: return uring_submit(reinterpret_cast<const raw_uring&>(head));
        case RAW_URING_COMPLETE: return uring_complete(reinterpret_cast<const raw_uring&>(head));
        case RAW_PAGE_CACHE: return page_cache(reinterpret_cast<const raw_page_cache&>(head));
        case RAW_BACKING: return page_cache_.see(reinterpret_cast<const raw_backing&>(head));
        case RAW_HOLES: return page_cache_.see(reinterpret_cast<const raw_holes&>(head));
        case RAW_MEMORY: return memory_.see(reinterpret_cast<const raw_memory&>(head), at(head.time));
        case RAW_BLOCK: return context_.see(reinterpret_cast<const raw_block&>(head));
        case RAW_PRESSURE: return context_.see(reinterpret_cast<const raw_pressure&>(head));
        case RAW_GPU: return gpu(reinterpret_cast<const raw_gpu&>(head));
        case RAW_RANK: return ranked(reinterpret_cast<const raw_rank&>(head));
        case RAW_SOCKET: return network_.see(reinterpret_cast<const raw_socket&>(head));
        case RAW_CUFILE: return cufile(reinterpret_cast<const raw_cufile&>(head));
        default: return;  // those of the first pass
    }
}

void RawAssembly::ranked(const raw_rank& record) {
    // One that has ended meanwhile is not made anew.
    const auto task = tasks_.find(raw_task_key(record.head.pid, record.head.pid));
    if (task != tasks_.end() && task->second.id != 0) {
        ranks_.see(record, process_of(task->second.id));
    }
}

void RawAssembly::off(const raw_switch& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    Event event;
    event.kind = Event::Kind::off;
    event.begin = at(record.off);
    event.end = at(record.head.time);
    event.wake = record.wake ? at(record.wake) : 0;
    event.state = record.state;
    event.for_io = record.in_iowait != 0;
    event.nr = record.nr;
    event.waker_nr = record.waker_nr;
    if (record.waker_tid) {
        event.waker.task = raw_task_key(record.waker_pid, record.waker_tid);
        event.waker.enter = at(record.waker_enter);
        event.waker.deferred = record.head.flags & RAW_FLAG_DEFERRED;
    }
    run_queue_ += waited_for_processor(event);
    task.events.push_back(event);
    bound_events(task);
}

// Steal time is treated like waiting for a processor. Its place between the task's last record and this one is not
// known; it is assumed to end here.
void RawAssembly::stolen(const raw_stolen& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    Event event;
    event.kind = Event::Kind::off;
    event.end = at(record.head.time);
    event.begin = event.end - static_cast<int64_t>(std::min<uint64_t>(record.stolen, kMostStolen));
    event.state = RAW_OFF_RUNNABLE;
    event.nr = kNoCall;
    stolen_ += event.end - event.begin;
    task.events.push_back(event);
    bound_events(task);
}

// Their place between the task's last record and this one is not known, and need not be: the compute there is less.
void RawAssembly::faults(const raw_faults& record) {
    constexpr uint64_t kMost = 3'600'000'000'000;  // ns; more is damage
    TaskState& task = state(record.head.pid, record.head.tid);
    const auto dear = facts_.dear_memory ? static_cast<int64_t>(std::min<uint64_t>(record.dear_ns, kMost)) : 0;
    const int64_t own = int64_t{record.faults} * facts_.costs.fault;
    dear_pages_ += facts_.dear_memory ? record.dear : 0;
    dear_time_ += dear;
    taken_off_ += own;
    Event event;
    event.kind = Event::Kind::not_its_own;
    event.begin = event.end = at(record.head.time);
    event.busy = dear + own;
    task.events.push_back(event);
    bound_events(task);
}

void RawAssembly::page_cache(const raw_page_cache& record) {
    std::optional<RawPageCache::Written> written = page_cache_.see(record);
    if (record.head.tid != 0 && record.in_nr != kNoCall) {
        TaskState& task = state(record.head.pid, record.head.tid);
        task.cache_own += int64_t{record.folios} * facts_.costs.folio + facts_.costs.folio_run;
        if (written) {
            task.pages_written.push_back(*std::move(written));
        }
    }
    context_.see(record);
}

void RawAssembly::spawned(const raw_spawn& record) {
    TaskState& parent = state(record.head.pid, record.head.tid);
    constexpr int64_t kThread = 0x10000;  // CLONE_THREAD
    const auto flags = static_cast<int64_t>(record.flags);
    const RawTaskKey key = raw_task_key(record.child_pid, record.child_tid);
    const TaskId id =
        assembler_.begin_task(static_cast<int32_t>(parent.pid), static_cast<int32_t>(parent.tid),
                              static_cast<int32_t>(record.child_pid), static_cast<int32_t>(record.child_tid), flags);
    assembler_.name_task(id, std::string_view(record.name, strnlen(record.name, sizeof record.name)));
    parent.spawned = id;
    parent.spawned_pid = record.child_pid;
    parent.spawned_tid = record.child_tid;
    parent.spawn_flags = flags;
    const RawTaskKey of = raw_task_key(parent.pid, parent.tid);
    const uint32_t parent_pid = parent.pid;
    edges_.forget_task(key);
    TaskState child;  // the task that had this number before has ended
    child.pid = record.child_pid;
    child.tid = record.child_tid;
    child.id = id;
    child.parent = of;
    child.parents_ops = assembler_.op_count(parent.id);
    child.cursor = at(record.head.time);
    child.started = true;
    tasks_[key] = std::move(child);
    if (!(flags & kThread)) {
        ProcessState made;
        if (const auto it = processes_.find(parent_pid); it != processes_.end()) {
            made.fresh = it->second.fresh;
            made.root = it->second.root;
            made.mounts = it->second.mounts;
        }
        if (flags & kNewMounts) {
            made.mounts = ++namespaces_;
        }
        made.parent = parent_pid;
        processes_[record.child_pid] = std::move(made);
        ended_.erase(record.child_pid);
    }
}

void RawAssembly::executed(const raw_exec& record) {
    const uint32_t pid = record.head.pid, tid = record.head.tid;
    if (record.old_tid != 0 && record.old_tid != tid) {
        // The calling thread takes over the number of its process's first thread.
        if (const auto it = tasks_.find(raw_task_key(pid, record.old_tid)); it != tasks_.end()) {
            TaskState moved = std::move(it->second);
            tasks_.erase(it);
            moved.tid = tid;
            if (const auto first = tasks_.find(raw_task_key(pid, tid)); first != tasks_.end()) {
                for (const raw_head& head : first->second.after_end) {
                    check_sequence(moved, head);
                }
            }
            assembler_.rename_task(static_cast<int32_t>(pid), static_cast<int32_t>(record.old_tid),
                                   static_cast<int32_t>(tid));
            tasks_[raw_task_key(pid, tid)] = std::move(moved);
        }
    }
    TaskState& task = state(pid, tid);
    check_sequence(task, record.head);
    task.in_library = false;
    work_until(task, at(record.head.time));
    task.accelerator_from.reset();
    processes_[pid].fresh.clear();
    processes_[pid].filled.clear();
    processes_[pid].locks_all = false;
    assembler_.name_task(task.id, std::string_view(record.name, strnlen(record.name, sizeof record.name)));
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_PATH) {
            task.program = raw_part_text(part);
        }
    }
    // The recorder names the first program with its arguments.
    ProcessState& process = processes_[pid];
    if (!process.commanded && !task.program.empty()) {
        assembler_.set_command(static_cast<int32_t>(pid), task.program);
    }
    process.commanded = false;
}

void RawAssembly::exited(const raw_exit& record) {
    const uint32_t pid = record.head.pid, tid = record.head.tid;
    TaskState& task = state(pid, tid);
    if (record.last != 0) {
        memory_.ended(pid, at(record.head.time));
    }
    peak_memory_ = std::max(peak_memory_, std::min<uint64_t>(record.held, INT64_MAX));
    const int64_t end = at(record.head.time), begin = task.exit_enter.value_or(end);
    task.in_library = false;
    settle(task, begin);
    if (const auto cut = std::exchange(task.cut_sleep, std::nullopt)) {
        edges_.woken(cut->op, cut->waker);
    }
    const int64_t cpus = read_fact(writer_.header(), fact::capture_cpus).value_or(0);
    if (record.cpus != 0 && record.cpus < cpus) {
        ++pinned_tasks_;
        pinned_processors_ |= record.allowed;
        pinned_cpus_ = std::max(pinned_cpus_, record.cpus);
    }
    Op op;
    op.kind = OpKind::exit;
    op.begin = std::max(begin, task.cursor);
    op.duration = std::max<int64_t>(end - op.begin, 0);
    if (const int signal = record.code & 0x7f; signal != 0) {
        op.arg = kSignalled + signal;
        op.result = kInterrupted;
    } else {
        op.arg = record.code >> 8 & 0xff;
    }
    // Its sockets are closed after this record.
    RawOpRef self{task.id, put(task, op), begin, end, false, true, true};
    began(task, self);
    // Tasks woken by its end see the call that it was in as the waker's.
    edges_.may_have_woken(raw_task_key(pid, tid), task.cut_enter.value_or(begin), self);
    if (record.last || tid == pid) {
        ended_[pid] = self;
    }
    gone_.emplace_back(end, raw_task_key(pid, tid));
    task.ended = true;
}

void RawAssembly::flush(const GpuTask& gpu) {
    if (gpu.end <= gpu.begin) {
        return;
    }
    Op op;
    op.kind = OpKind::gpu_submit;
    op.begin = gpu.begin;
    op.size = gpu.end - gpu.begin;
    op.arg = gpu.device;
    op.flags = gpu.stream;
    op.text = gpu.text;
    assembler_.op(static_cast<int32_t>(gpu.pid), static_cast<int32_t>(gpu.tid), op);
}

// Each stream of a device is a task of its own, because the submitting thread is not known.
void RawAssembly::gpu(const raw_gpu& record) {
    const uint64_t key = uint64_t{record.head.pid} << 32 | (record.device & 0xffff) << 16 | (record.stream & 0xffff);
    GpuTask& gpu = gpus_[key];
    const int64_t begin = at(record.begin), end = at(record.head.time);
    if (!gpu.task) {
        gpu.pid = record.head.pid;
        gpu.device = record.device;
        gpu.stream = record.stream;
        gpu.tid = 0x40000000u + static_cast<uint32_t>(gpus_.size());  // no thread has such a number
        gpu.task = assembler_.task(static_cast<int32_t>(gpu.pid), static_cast<int32_t>(gpu.tid));
        assembler_.name_task(gpu.task,
                             "gpu " + std::to_string(record.device) + " stream " + std::to_string(record.stream));
    }
    if (gpu.end > gpu.begin && begin <= gpu.end + kMergeGpu) {
        gpu.end = std::max(gpu.end, end);
        return;
    }
    flush(gpu);
    gpu.begin = begin;
    gpu.end = end;
    gpu.text = 0;
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_STRING) {
            gpu.text = writer_.intern(raw_part_text(part));
        }
    }
}

void RawAssembly::seed(const raw_head& head) {
    if (head.type == RAW_SEED_TASK) {
        seed_task(reinterpret_cast<const raw_seed_task&>(head));
    }
    if (head.type == RAW_SEED_FD) {
        seed_fd(head);
    }
    if (head.type == RAW_SEED_MAP) {
        seed_map(reinterpret_cast<const raw_seed_map&>(head));
    }
}

void RawAssembly::seed_task(const raw_seed_task& record) {
    TaskState& task = state(record.head.pid, record.head.tid);
    assembler_.name_task(task.id, std::string_view(record.name, strnlen(record.name, sizeof record.name)));
    processes_[record.head.pid].parent = record.parent_pid;
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type != RAW_PART_STRING) {
            continue;
        }
        const auto pid = static_cast<int32_t>(record.head.pid);
        if (part.which == 0) {
            assembler_.set_command(pid, raw_part_text(part));
            processes_[record.head.pid].commanded = true;
        }
        seed_names(record.head.pid, part);
    }
}

void RawAssembly::seed_fd(const raw_head& head) {
    const raw_fd* fd = nullptr;
    std::string_view path;
    for (const raw_part& part : RawParts(head)) {
        if (part.type == RAW_PART_FD) {
            fd = static_cast<const raw_fd*>(raw_part_data(part));
        }
        if (part.type == RAW_PART_STRING || part.type == RAW_PART_PATH) {
            path = raw_part_text(part);
        }
    }
    if (!fd || !fd->file) {
        return;
    }
    page_cache_.see(*fd);
    SeenInstance seen = seen_instance(*fd);
    seen.size = fd->size;
    constexpr int64_t kCloseOnExec = 02000000;
    if (fd->info & RAW_FD_CLOEXEC) {
        seen.flags |= kCloseOnExec;
    }
    assembler_.adopt(static_cast<int32_t>(head.pid), fd->fd, seen, path, Assembler::Came::inherited);
}

void RawAssembly::seed_map(const raw_seed_map& record) {
    std::string_view path;
    SeenInstance seen;
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_VALUES && part.length > 0) {
            seen.size = static_cast<uint64_t>(std::max<int64_t>(raw_part_numbers(part)[0], 0));
        }
        if (part.type == RAW_PART_PATH || part.type == RAW_PART_STRING) {
            path = raw_part_text(part);
        }
    }
    if (!path.starts_with('/') || record.size == 0) {
        return;
    }
    seen.key = UINT64_MAX - ++seed_instances_;  // no address of a file
    seen.type = FileType::regular;
    seen.device = user_device(record.device);
    seen.inode = record.inode;
    constexpr int64_t kShared = 1, kWrite = 2, kReadWrite = 2;
    const bool writes = record.flags & kShared && record.prot & kWrite;
    seen.flags = writes ? kReadWrite : 0;
    assembler_.adopt(static_cast<int32_t>(record.head.pid), -1, seen, path, Assembler::Came::inherited);
    RawCall raw;
    raw.pid = static_cast<int32_t>(record.head.pid);
    raw.tid = static_cast<int32_t>(record.head.tid ? record.head.tid : record.head.pid);
    raw.kind = OpKind::mmap;
    raw.seen = &seen;
    raw.offset = static_cast<int64_t>(record.offset);
    raw.size = static_cast<int64_t>(std::min<uint64_t>(record.size, INT64_MAX));
    raw.flags = record.flags;
    raw.mode = record.prot;
    raw.address = record.address;
    assembler_.call(raw);
}

void RawAssembly::advance(uint64_t time) {
    const int64_t now = time == UINT64_MAX ? INT64_MAX : at(time);
    // If the spawn returns late (vfork), or no call spawned the task (a thread that the kernel made for a ring), use
    // the op before it.
    const auto late = std::find_if(waiting_for_spawn_.begin(), waiting_for_spawn_.end(),
                                   [&](const auto& each) { return each.first > now; });
    for (auto each = waiting_for_spawn_.begin(); each != late; ++each) {
        const auto child = tasks_.find(each->second);
        if (child == tasks_.end() || !child->second.first) {
            continue;
        }
        const auto parent = tasks_.find(child->second.parent);
        if (parent != tasks_.end()) {
            const RawOpRef before{parent->second.id, child->second.parents_ops, 0, 0, false, false};
            edges_.add(*child->second.first, before, EdgeKind::lifecycle);
        }
        child->second.first.reset();
    }
    waiting_for_spawn_.erase(waiting_for_spawn_.begin(), late);
    edges_.advance(now);
    if (now != INT64_MAX) {
        assembler_.release(now - RawEdges::kLag);
    }
    const auto kept =
        std::find_if(gone_.begin(), gone_.end(), [&](const auto& each) { return each.first > now - kKeepEnded; });
    for (auto each = gone_.begin(); each != kept; ++each) {
        const auto it = tasks_.find(each->second);
        if (it == tasks_.end() || it->second.cursor > each->first) {
            continue;  // its number is another's
        }
        tasks_.erase(it);
        edges_.forget_task(each->second);
    }
    gone_.erase(gone_.begin(), kept);
}

void RawAssembly::finish() {
    // After a task's last call only its context switches show what it did.
    for (auto& [key, task] : tasks_) {
        if (!task.events.empty()) {
            settle(task, task.events.back().end);
        }
    }
    for (const auto& [key, gpu] : gpus_) {
        flush(gpu);
    }
    const auto running = std::count_if(tasks_.begin(), tasks_.end(),
                                       [](const auto& each) { return each.second.id != 0 && !each.second.ended; });
    count(Count::tasks_left_running, static_cast<uint64_t>(running));
    advance(UINT64_MAX);
    assembler_.finish();
    const raw_loss& loss = facts_.loss;
    count(Count::capture_ring_full, loss.failed_reserves);
    count(Count::capture_recursion, loss.recursion_misses);
    count(Count::capture_untracked_tasks, loss.untracked);
    // Those the recorder knows of are the same ones.
    count(Count::capture_records_missing,
          lost_records_ > loss.failed_reserves ? lost_records_ - loss.failed_reserves : 0);
    if (!facts_.cut.empty()) {
        count(Count::capture_cut, 1, facts_.cut);
    }
    count(Count::locks_dropped, locks_);
    count(Count::mapped_writes_unseen, written_unseen_.size());
    count(Count::wakes_unmatched, edges_.wakes_unmatched());
    const auto unfinished =
        std::count_if(uring_.begin(), uring_.end(), [](const auto& each) { return each.second.record != nullptr; });
    count(Count::ring_calls_cut, static_cast<uint64_t>(unfinished));
    count(Count::cufile_unseen, facts_.cufile.unseen());
    count(Count::cufile_unprobed, facts_.cufile.unprobed());
    for (const auto& [key, requests] : cufile_pending_) {
        count(Count::cufile_unfinished, requests.size());
    }
    count(Count::messages_unmatched, edges_.messages_unmatched());
    Header& header = writer_.header();
    add_memory(header, page_cache_.in_memory());
    if (loss.most_lag_ns) {
        write_fact(header, fact::longest_lag, static_cast<int64_t>(loss.most_lag_ns));
    }
    if (const int64_t own = facts_.call_gap_ns + facts_.call_told_ns) {
        write_fact(header, fact::call_gap, own);
    }
    if (const uint64_t huge = facts_.uses.huge(); huge != 0) {
        write_fact(header, fact::mapped_uses_huge, static_cast<int64_t>(huge));
    }
    if (const uint64_t left = used_again_.left(); left != 0) {
        write_fact(header, fact::mapped_uses_unplaced, static_cast<int64_t>(left));
    }
    if (taken_off_) {
        write_fact(header, fact::taken_off, taken_off_);
    }
    if (dear_pages_) {
        write_fact(header, fact::dear_pages, dear_pages_);
        write_fact(header, fact::dear, dear_time_);
    }
    if (computed_) {
        write_fact(header, fact::compute, computed_);
    }
    if (stolen_) {
        write_fact(header, fact::stolen, stolen_);
    }
    if (run_queue_) {
        write_fact(header, fact::run_queue, run_queue_);
    }
    if (pinned_tasks_) {
        const auto together = static_cast<uint32_t>(std::popcount(pinned_processors_));
        write_fact(header, fact::pinned_tasks, static_cast<int64_t>(pinned_tasks_));
        write_fact(header, fact::pinned_cpus, std::max(pinned_cpus_, together));
    }
    if (peak_memory_) {
        write_fact(header, fact::peak_memory, static_cast<int64_t>(peak_memory_));
    }
    if (const HeldMemories held = memory_.of(writer_.tables()); !held.empty()) {
        writer_.keep(encode_held_memory(held));
    }
    if (const std::string context = context_.json(); !context.empty()) {
        write_fact(header, fact::context, context);
    }
    ranks_.write(header, writer_.tables());
    if (const Sockets sockets = network_.of(assembler_.sockets()); !sockets.empty()) {
        writer_.keep(encode_sockets(sockets));
    }
    if (const Holes before = page_cache_.holes_before(writer_.tables()); !before.empty()) {
        writer_.keep(encode_holes_before(before));
    }
    if (const uint64_t unknown = page_cache_.unknown(writer_.tables()); unknown != 0) {
        return count(Count::cache_files_unknown, unknown);
    }
    if (!page_cache_.empty() || records_page_cache(read_fact(header, fact::capture_groups).value_or(""),
                                                   read_fact(header, fact::capture_absent).value_or(""))) {
        writer_.keep(encode_fetched(page_cache_.of(writer_.tables())));
        const RefetchedPages again = page_cache_.refetched(writer_.tables());
        writer_.keep(encode_refetched(again));
        if (const uint64_t bytes = RawPageCache::data_bytes(again, writer_.tables()); bytes != 0) {
            write_fact(header, fact::refetched, static_cast<int64_t>(bytes));
        }
    }
    if (const CachedPages cached = page_cache_.when_opened(writer_.tables()); !cached.empty()) {
        writer_.keep(encode_cached(cached));
    }
}

void assemble_raw(const std::filesystem::path& raw, LogWriter& writer, const RawAssembleOptions& options) {
    uint64_t total = 0, half = 0;
    const auto progress = [&](uint64_t bytes) {
        if (options.progress) {
            options.progress(half + bytes, total);
        }
    };
    RawReader reader(raw);
    total = reader.file_bytes() * 2;
    const RawFacts facts = scan_raw(raw, progress);
    half = reader.file_bytes();
    const std::string directory = complete_header(writer.header(), facts);
    RawAssembly assembly(facts, writer, options, directory);
    for (const auto& seed : facts.seeds) {
        assembly.seed(*reinterpret_cast<const raw_head*>(seed.data()));
    }
    Reorder reorder;
    assembly.look_ahead([&](const std::function<bool(const raw_head&)>& is_one) { return reorder.any_later(is_one); });
    const auto visit = [&](const raw_head& head) { assembly.record(head); };
    for (ByteView chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
        reorder.add(chunk, visit, assembly);
        progress(reader.offset());
    }
    reorder.finish(visit, assembly);
    assembly.finish();
    if (options.amend) {
        options.amend(writer);
    }
}

void assemble_raw_file(const std::filesystem::path& raw, const std::filesystem::path& output,
                       const RawAssembleOptions& options, const WriterOptions& how) {
    static_cast<void>(RawReader(raw));  // throws for a file that is not a raw log, before anything is written
    LogWriter writer(output, Header(), how);
    try {
        assemble_raw(raw, writer, options);
        writer.finish();
    } catch (...) {
        writer.discard();
        throw;
    }
}

}  // namespace reprise
