// SPDX-License-Identifier: MIT
// The state of assembling a raw recording, private to formats/assemble/recording/*.cpp.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/assemble/recording/context.h"
#include "formats/assemble/recording/cufile.h"
#include "formats/assemble/recording/edges.h"
#include "formats/assemble/recording/facts.h"
#include "formats/assemble/recording/held_memory.h"
#include "formats/assemble/recording/memory.h"
#include "formats/assemble/recording/network.h"
#include "formats/assemble/recording/page_cache.h"
#include "formats/assemble/recording/ranks.h"
#include "formats/assemble/recording/raw_calls.h"
#include "formats/assemble/recording/recording.h"
#include "formats/assemble/recording/request_causes.h"
#include "formats/assemble/recording/used_again.h"

namespace reprise {

inline constexpr uint16_t kNoCall = 0xffff;     // in place of a call's number
inline constexpr int64_t kNewMounts = 0x20000;  // CLONE_NEWNS

inline constexpr int64_t kTimedOut = -110;  // ETIMEDOUT, of a call that waits

class RawAssembly {
public:
    RawAssembly(const RawFacts& facts, LogWriter& writer, const RawAssembleOptions& options,
                std::string_view initial_directory);
    void seed(const raw_head& head);
    /// Records in the order of their times.
    void record(const raw_head& head);
    /// How to ask whether one of the records behind that at hand is such a one.
    using LookAhead = std::function<bool(const std::function<bool(const raw_head&)>& is_one)>;
    void look_ahead(LookAhead later) { later_ = std::move(later); }
    /// Nothing that ended before `time` (of the recording's clock) is to come.
    void advance(uint64_t time);
    void finish();

private:
    /// Pages of a mapping, one after the other.
    struct Place {
        uint32_t map = 0, pages = 0;
        int64_t offset = 0;  // bytes from the start of the mapping
    };
    /// An event of a task besides its calls; times in ns since the origin.
    struct Event {
        enum class Kind : uint8_t { off, fault, submit, complete, ring_call, not_its_own };
        Kind kind = Kind::off;
        int64_t begin = 0, end = 0;
        /// off
        int64_t wake = 0;
        RawWaker waker;
        uint16_t waker_nr = 0, nr = 0, state = 0;
        bool for_io = false;
        /// fault, or faults on neighbouring pages
        std::vector<Place> places;  // of those that lie in mappings
        int64_t busy = 0;           // ns inside them; of not_its_own: ns that are not the job's
        bool write = false;
        bool may_read = false;  // its page was not mapped from memory, and may have to be read
        /// submit, complete
        uint32_t request = 0;
        int64_t size = 0, result = 0;
        std::shared_ptr<std::vector<uint64_t>> record;  // of a submission
        std::optional<raw_fd> file;                     // of a submission, where it is known
        uint64_t ring = 0;                              // of a completion
        uint64_t address = 0, filled = 0;               // of a completion: memory that it filled, bytes
        uint32_t taken = 0, completed = 0;              // of a completion
        std::shared_ptr<Op> op;                         // of ring_call
        bool direct = false;                            // of ring_call, see is_direct()
    };
    struct Touch {
        uint32_t map = 0;
        bool write = false, may_read = false;
        int64_t begin = 0, last = 0, duration = 0, offset = 0, size = 0;
        std::vector<int64_t> list;
        int64_t at = 0;  // end of what was touched last
    };
    /// A request that a call of libcufile makes.
    struct CufileAsked {
        raw_cufile record{};
        bool past_calls = false;
    };
    /// When a task's latest calls were made.
    template <size_t kKept>
    struct RecentCalls {
        std::array<std::pair<int64_t, int64_t>, kKept> calls{};  // begin, end
        size_t next = 0;

        void add(int64_t begin, int64_t end) { calls[next++ % kKept] = {begin, end}; }
        /// ns of [from, to) within them.
        int64_t within(int64_t from, int64_t to) const {
            int64_t sum = 0;
            for (const auto& [begin, end] : calls) {
                sum += std::max<int64_t>(std::min(end, to) - std::max(begin, from), 0);
            }
            return sum;
        }
    };
    /// What a task did with Python's interpreter lock. Giving it back is a call where another task waits for it.
    struct Interpreter {
        int64_t got = INT64_MIN;                            // when its latest wait for it was over
        int64_t gave = INT64_MIN, gave_before = INT64_MIN;  // when the latest calls that gave it back began
        int64_t asked = INT64_MAX;                          // it has waited since then, one time-out after another
        bool held_by_blocked = false;                       // ... for one that did not compute meanwhile; see wakes.cpp
    };
    struct TaskState {
        uint32_t pid = 0, tid = 0;
        TaskId id = 0;
        uint32_t next_sequence = 0;
        bool any_sequence = false;
        int64_t cursor = 0;       // all time before it has become ops
        bool after_call = false;  // no compute has been counted since
        int64_t owed = 0;         // ns of the following time that the recorder took
        int64_t cache_own = 0;    // ns that it took for the page cache since the last call ended
        std::vector<RawPageCache::Written> pages_written;  // by the call that it is in
        bool started = false;
        bool ended = false;
        std::vector<raw_head> after_end;  // of records that came with its number then
        std::vector<Event> events;        // since the last call, by the order of their ends
        std::optional<int64_t> exit_enter;
        std::optional<int64_t> cut_enter;  // of the call that the task ended in
        uint16_t restarts = 0;             // the call that restart_syscall goes on with
        struct CutSleep {
            RawOpRef op;
            RawWaker waker;
        };
        std::optional<CutSleep> cut_sleep;  // a sleep that a signal ended: whether for good, the next call shows
        int64_t last_fault = INT64_MIN;
        TaskId spawned = 0;  // the child of the current call
        uint32_t spawned_pid = 0, spawned_tid = 0;
        int64_t spawn_flags = 0;
        std::string program;            // of the current exec
        std::optional<RawOpRef> first;  // op 0, until its spawn is known
        std::optional<RawOpRef> spawn;  // its spawn, until op 0 is there
        RawTaskKey parent = 0;
        uint64_t parents_ops = 0;                 // that the parent had made by then
        std::optional<int64_t> accelerator_from;  // inside a span of the mark `accelerator`: not yet told since then
        int64_t accelerator_late = 0;             // ns since then for which the thread waited for a processor
        RecentCalls<8> file_calls;                // that read, write or sync
        RecentCalls<64> long_calls;               // and page faults that read, but no waits for the interpreter lock
        Interpreter interpreter;
        int64_t locked_from = INT64_MIN;  // when its last wait for a lock was over
        bool in_library = false;          // in a call of libcufile that becomes an op of its own, ...
        int64_t library_since = 0;        // ... which began then
        std::vector<CufileAsked> asked;   // by the call of libcufile that it is in
        std::vector<raw_aio_event> told;  // likewise
    };
    struct CufileFile {
        raw_fd fd{};
        std::optional<raw_fd> other = {};  // opened beside it: with O_DIRECT where it has none, else without
    };
    struct CufileRequest {
        uint64_t iocb = 0;  // 0: it is not in the log as a request
        bool known = true;  // its file is
        DirectRange range = {};
        int64_t size = 0, end = 0;
    };
    struct Request {
        uint32_t id = 0;
        RawTaskKey task = 0;
        int64_t size = 0;
        uint64_t ring = 0;
        int32_t fixed = -1;                                       // number of the fixed file
        uint64_t address = 0, room = 0;                           // of the memory that it fills, bytes; 0: none
        uint64_t file = 0;                                        // as the submission knew it
        std::shared_ptr<std::vector<uint64_t>> record = nullptr;  // of the submission, where it stands for a call
    };
    struct ProcessState {
        FreshMemory fresh;
        FilledMemory filled;
        bool locks_all = false;  // what it maps is populated (mlockall)
        uint32_t parent = 0;
        std::string root;        // of chroot, as its mount namespace sees it; empty: /
        uint64_t mounts = 0;     // its mount namespace: the inode, or a number of ours
        bool commanded = false;  // its command line is known
    };

    int64_t at(uint64_t time) const { return static_cast<int64_t>(time - facts_.origin); }
    TaskState& state(uint32_t pid, uint32_t tid);
    void check_sequence(TaskState& task, const raw_head& head);
    void count(Count what, uint64_t n = 1, std::string_view detail = {}) { writer_.count(what, n, detail); }

    // --- raw_assemble.cpp
    void off(const raw_switch& record);
    void stolen(const raw_stolen& record);
    void faults(const raw_faults& record);
    void page_cache(const raw_page_cache& record);
    void spawned(const raw_spawn& record);
    void executed(const raw_exec& record);
    void exited(const raw_exit& record);
    void gpu(const raw_gpu& record);
    void seed_fd(const raw_head& head);
    void seed_map(const raw_seed_map& record);
    void seed_task(const raw_seed_task& record);
    void ranked(const raw_rank& record);
    ProcessId process_of(TaskId task) const { return writer_.tables().tasks.at(task).process; }

    // --- time.cpp: between calls
    uint64_t put(TaskState& task, const Op& op);
    void began(TaskState& task, const RawOpRef& first);
    void bound_events(TaskState& task);
    /// Makes ops of the time up to `until` and of the events that began before it.
    struct Settling;
    void settle(TaskState& task, int64_t until);
    void asynchronous(TaskState& task, const Event& event);
    void compute(TaskState& task, int64_t begin, int64_t duration);
    // --- used_again.cpp
    void use_again(TaskState& task, int64_t begin, int64_t duration);
    void blocked(TaskState& task, const Event& event);
    static int64_t waited_for_processor(const Event& off);
    void fault(const raw_fault& record);
    void touches(const raw_touch& record);
    /// A fault mapped more than its page.
    void touched_folio(TaskState& task, const raw_touch& record);
    /// Of tmpfs a page that was read in a mapping which may write needs no second fault to be written to.
    void note_unseen_writes(const Event& event, uint32_t how);
    std::vector<Place> places_of_call(const raw_fault& record);
    void note_parts(TaskState& task, const RawCall& raw);
    void set_mode_by_list(const raw_call& record, RawCall& raw) const;
    const raw_fd* cut_file(const RawCall& raw) const;
    void touch_direct_buffer(TaskState& task, const raw_call& record, const Syscall& row);
    bool makes_copy_or_populates(const raw_call& record, const Syscall& row, RawCall& raw);
    std::vector<Place> places(uint32_t pid, uint64_t address, uint32_t pages);
    /// False where no page lies in a mapping that a call made.
    bool start_touch(TaskState& task, std::optional<Touch>& touch, const Event& event);
    void touch_page(TaskState& task, std::optional<Touch>& touch, const Event& event, uint32_t map, int64_t offset);
    void end_touch(TaskState& task, std::optional<Touch>& touch);
    void submitted(TaskState& task, const Event& event, int64_t begin);
    void completed(TaskState& task, const Event& event, int64_t begin);
    /// Those of the events inside a call, before and after it; returns the time the faults took.
    int64_t before_call(TaskState& task, int64_t begin);
    void after_call(TaskState& task, int64_t end);

    // --- wakes.cpp: what ended a wait
    static bool may_be_woken(const Event& event, uint16_t nr);
    static const Event* last_sleep(const TaskState& task);
    void wake_edge(const TaskState& task, const RawOpRef& target, uint16_t nr);
    static std::optional<RawWaker> signaller(const TaskState& task);
    /// Whether who ended the task's last sleep was in calls on files for most of it, as who holds a lock meanwhile is.
    bool held_in_calls(const TaskState& task) const;
    /// The task's last sleep, and who ended it: where that was a wait for a lock, who held it. Null: not known.
    std::pair<const Event*, const TaskState*> holder_of(const TaskState& task) const;
    void gave_interpreter(TaskState& task, const raw_call& record);
    void waited_for_interpreter(TaskState& task, const raw_call& record);
    bool held_while_blocked(const TaskState& task) const;
    /// Of a lock or a terminal: what it waited becomes an op of its own. Returns when the wait was over, or `begin`.
    int64_t wait_apart(TaskState& task, const raw_call& record, const Syscall& row, int64_t begin);
    void wait_for_vforked(TaskState& task, int64_t from);
    void after_cut_sleep(TaskState& task, const Syscall& row, bool makes_op);
    bool is_delivered(const Syscall& row) const;
    bool opens_fifo() const;
    // --- children.cpp: waits for other processes, and those that a signal stopped
    /// The child that a wait tells of, by its number outside of PID namespaces; 0: of none.
    uint32_t told_child(const raw_call& record, const Syscall& row) const;
    /// Whether the task only looked whether a process had ended, and it had not.
    bool found_nobody(const raw_call& record, const Syscall& row) const;
    /// The end of the child that a wait tells of; nullptr: of none, or of none that is recorded.
    const RawOpRef* ended_child(const raw_call& record, const Syscall& row) const;
    /// A wait for a child depends on its end, or on what it did until it was stopped.
    void child_edge(const TaskState& task, const raw_call& record, const Syscall& row, const RawOpRef& self);
    /// Whether a signal of a recorded task ended a stop.
    static bool was_continued(const Event& event);
    /// Queues of messages, POSIX's and System V's: what is received depends on what was sent. True where its source is
    /// known or awaited.
    bool queue_edge(const raw_call& record, const RawOpRef& self);
    static bool takes_message(const raw_call& record);
    /// Whether the call at hand can be what ended another's wait.
    bool may_have_woken(const Syscall& row) const;

    // --- accelerator.cpp: spans of the mark `accelerator`
    struct StandIn {
        int64_t device = 0, stream = 0;
    };
    bool is_accelerator_mark(std::string_view name) const;
    StandIn stand_in_of(const TaskState& task);
    void begin_accelerator(TaskState& task, int64_t from);
    void end_accelerator(TaskState& task);
    /// Inside a span: the device worked until now, and the thread waited for it. Else nothing.
    void work_until(TaskState& task, int64_t until);
    /// Whether a call inside a span does nothing but wait, and so is the accelerator's time.
    static bool passes_time(const TaskState& task, const raw_call& record, const Syscall& row);

    // --- calls.cpp, async.cpp: calls
    void call(const raw_call& record);
    bool is_op(const raw_call& record, const Syscall& row, bool slept);
    void cut_call(TaskState& task, const raw_call& record, const Syscall& row, bool slept);
    int64_t recorders_part(TaskState& task, const raw_call& record, bool woke) const;
    void perform(TaskState& task, const raw_call& record, const Syscall& row, RawCall& raw);
    int64_t packed_lock() const;
    void prepare(TaskState& task, const raw_call& record, const Syscall& row, RawCall& raw);
    void prepare_pipe(const raw_call& record, RawCall& raw);
    void prepare_lock(TaskState& task, const raw_call& record, RawCall& raw);
    void prepare_spawn(const TaskState& task, const raw_call& record, const Syscall& row, RawCall& raw);
    void prepare_join(const raw_call& record, const Syscall& row, RawCall& raw) const;
    void mark_fresh(const raw_call& record, const Syscall& row, RawCall& raw);
    void memory_effects(const raw_call& record, const Syscall& row, const RawCall& raw);
    void other_effects(TaskState& task, const raw_call& record, const Syscall& row, const RawCall& raw);
    CallEffect aio_submit(TaskState& task, const RawCall& raw);
    CallEffect aio_reap(TaskState& task, const raw_call& record, const RawCall& raw);
    void mark(TaskState& task, const raw_call& record, const RawCall& raw);
    void link(TaskState& task, const raw_call& record, const Syscall& row, const CallEffect& effect, RawOpRef self);
    void uring_submit(const raw_uring& record);
    void began_request(TaskState& task, const CallEffect& effect, const raw_uring& record, int64_t begin);
    void uring_complete(const raw_uring& record);
    void push_completion(TaskState& task, const Request& request, const raw_uring& record);
    /// The file of a request, as this record tells it or one before did.
    std::optional<raw_fd> told_file(const raw_uring& record);
    /// Requests that a call of uring_enter, which begins at `enter`, submits become ops that begin at `begin`.
    void submit_before(TaskState& task, int64_t enter, int64_t begin);
    /// A call that waited: what the job had taken by then.
    void took_before(const TaskState& task, uint64_t op);
    /// A request that writes [address, +bytes) needs what read it.
    void needs_reads(const TaskState& task, uint64_t op, uint64_t address, uint64_t bytes);
    void has_taken(const TaskState& task, uint64_t op, uint64_t ring, uint32_t count);

    // --- ring_calls.cpp: requests that stand for calls on names and descriptors
    static bool is_ring_call(const raw_uring& record);
    /// An open or close of a file that has a number of the ring and no descriptor.
    static bool is_direct(const raw_uring& record);
    void ring_call_done(TaskState& task, const Request& request, const raw_uring& completion);
    /// `from`: it does not begin before that, but for a submission that lies inside a call
    void ring_called(TaskState& task, const Event& event, int64_t from);

    // --- cufile.cpp: calls of libcufile
    void cufile(const raw_cufile& record);
    void cufile_entered(TaskState& task, const raw_cufile& record);
    /// The call that the task is in is over. Whether it passed no system call.
    bool cufile_left(TaskState& task);
    void cufile_moved(TaskState& task, const raw_cufile& record);
    void cufile_submitted(TaskState& task, const raw_cufile& record);
    void cufile_done(TaskState& task, const raw_cufile& record);
    void cufile_taken(TaskState& task, const raw_cufile& record);
    void cufile_deregistered(TaskState& task, const raw_cufile& record);
    /// nullptr: not known, which is counted.
    CufileFile* cufile_file(const raw_cufile& record, raw_fd& fd);
    /// How it is made past the page cache; `fd` becomes the instance that does so.
    DirectRange cufile_range(TaskState& task, CufileFile& file, const raw_cufile& record, raw_fd& fd);
    raw_fd cufile_other(TaskState& task, const raw_fd& fd, int64_t flags, int64_t begin);
    uint64_t cufile_end(const raw_cufile& record) const;
    /// Whether the call at hand is the library's, whose own call stands for it.
    static bool library_works(const TaskState& task, const Syscall& row);

    // --- names.cpp: roots, current directories, mount namespaces
    void below_root(RawCall& raw);
    std::optional<std::string> link_on_disk(uint32_t pid, const std::string& path) const;
    bool renames_now(std::string_view from, std::string_view to) const;
    std::string directory_was(const std::string& link, std::string_view rest, uint64_t inode) const;
    std::optional<FoundAtEnd> find_at_end(const std::string& path) const;
    /// Whether what was changed then was so before the recording.
    bool changed_before(int64_t unix_ns) const;
    void changed_names(const raw_call& record, const Syscall& row, const RawCall& raw);
    void seed_names(uint32_t pid, const raw_part& part);
    void pivoted(uint32_t pid, const std::string& new_root, const std::string& put_old);

    LookAhead later_;
    uint64_t now_ = 0;  // of the record at hand, by the recording's clock
    const RawFacts& facts_;
    LogWriter& writer_;
    const RawAssembleOptions& options_;
    Assembler assembler_;
    RawEdges edges_;
    RawContext context_;
    RawPageCache page_cache_;
    RawHeldMemory memory_;
    UsedAgain used_again_;
    RawRanks ranks_;
    RawNetwork network_;
    RawCallFiller filler_;
    std::unordered_map<uint64_t, std::pair<int64_t, int64_t>> queues_;  // messages sent and received so far
    std::unordered_map<RawTaskKey, TaskState> tasks_;
    std::unordered_map<uint32_t, ProcessState> processes_;
    std::unordered_map<uint32_t, RawOpRef> ended_;  // by pid: the exit of its last thread
    std::vector<std::pair<int64_t, RawTaskKey>> gone_;
    std::unordered_map<uint64_t, Request> uring_;
    std::map<std::pair<uint64_t, int32_t>, raw_fd> fixed_files_;  // by ring and number, as last seen
    std::unordered_map<uint64_t, raw_fd> told_files_;             // of requests, by raw_fd::file
    TakenResults taken_;
    PolledLines polled_lines_;
    std::string rooted_[3];
    uint64_t namespaces_ = 0;                                                  // made by the recorded job
    std::unordered_map<uint64_t, std::unordered_map<uint64_t, Request>> aio_;  // by pid, by iocb
    std::map<std::pair<uint32_t, uint64_t>, CufileFile> cufile_files_;         // registered, by pid and handle
    std::map<std::tuple<uint32_t, uint64_t, uint64_t>, std::deque<CufileRequest>> cufile_pending_;  // pid, stream, id
    std::unordered_map<RawTaskKey, std::pair<size_t, size_t>> cufile_turns_;  // calls and requests so far
    uint64_t cufile_made_ = 0;                                                // requests, and instances
    struct GpuTask {
        TaskId task = 0;
        int64_t begin = 0, end = 0;
        uint32_t text = 0, device = 0, stream = 0, tid = 0;
        uint32_t pid = 0;
    };
    void flush(const GpuTask& gpu);
    std::unordered_map<uint64_t, GpuTask> gpus_;
    struct StandInProcess {
        explicit StandInProcess(int64_t number) : device(number) {}
        int64_t device;
        std::unordered_map<TaskId, int64_t> streams;
    };
    std::unordered_map<uint32_t, StandInProcess> stand_ins_;         // by pid
    std::vector<std::pair<int64_t, RawTaskKey>> waiting_for_spawn_;  // children with an op whose spawn has not returned
    uint32_t requests_ = 0;
    uint32_t seed_instances_ = 0;
    uint64_t peak_memory_ = 0;                                // bytes, of one process
    int64_t run_queue_ = 0, stolen_ = 0;                      // ns, in all
    int64_t taken_off_ = 0, dear_pages_ = 0, dear_time_ = 0;  // ns, pages, ns
    int64_t computed_ = 0;                                    // ns
    uint64_t lost_records_ = 0;
    uint64_t locks_ = 0;
    std::unordered_set<uint32_t> written_unseen_;        // mappings
    uint64_t pinned_tasks_ = 0, pinned_processors_ = 0;  // those: a bit each, of the first 64
    uint32_t pinned_cpus_ = 0;                           // most of one task
    int64_t lock_time_ = 0;
};

}  // namespace reprise
