// SPDX-License-Identifier: MIT
// What a recording itself says against the time of its replay or prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/part_of_job.h"
#include "replay/plan/awaited_names.h"
#include "replay/plan/file_system_work.h"
#include "replay/plan/file_systems.h"
#include "replay/plan/plan.h"

namespace reprise {

struct FilesLeftOut {
    uint64_t bytes = 0;
    int64_t ns = 0;
};

struct RecordedDoubts {
    /// That a polling thread of the kernel took, where it is not known which task looks for their results.
    uint64_t polled_requests = 0;
    /// Computing in which a task looked for results of requests in memory, which waits for them in a replay; and such
    /// of which that is not clear, where it is more than a tenth of the recording. ns.
    int64_t looked_ns = 0, unclear_looks_ns = 0;
    /// Asynchronous requests, and those of them whose result the log does not have.
    uint64_t requests = 0, unreported_requests = 0;
    uint64_t at_once_requests = 0;  // see RequestRing::at_once
    /// Bytes that the job read, wrote or touched in mapped files: those that the filter keeps, and those that it leaves
    /// out as a program's or the system's although they are data (is_part_of_program()).
    uint64_t kept_bytes = 0, left_out_bytes = 0;
    uint64_t unplaced_bytes = 0;  ///< of those kept, of files whose paths have no place below the root
    /// Of programs' files that are left out, those that lie among the data: a project with its modules. Bytes.
    uint64_t beside_bytes = 0;
    /// Of files that are left out as a program's, which nothing ran: those that only their size makes ones, and all;
    /// bytes, and the time of the calls on them, ns. The time of the calls on those that the filter keeps.
    FilesLeftOut small, programs;
    int64_t kept_ns = 0;
    uint64_t kept_ops = 0, left_out_ops = 0;  // I/O ops, by the filter
    /// Of calls that look at names (waited_for_names()) that the filter keeps, those of the task that waited longest:
    /// their time, ns, and the span of the recording. 0: the recording does not show that a device was read.
    int64_t names_ns = 0, span_ns = 0;
    /// What the recording fetched of program and system files that are left out, and about how long that took; bytes,
    /// ns.
    uint64_t program_bytes = 0;
    int64_t program_ns = 0;
    /// Of data, what the recording fetched after it had been in memory: dropped caches, or little memory. Bytes.
    uint64_t refetched_bytes = 0;
    /// Of mapped files that the filter keeps, where the log has no page faults at all. Bytes.
    uint64_t unseen_mapped_bytes = 0;
    /// Of a scaled log: of the accesses of the epoch that misses most, the share that it has too few or too many.
    double scaled_missed = 0;
    /// Locks of files that others held, so that a task slept and asked again.
    uint64_t lock_polls = 0;
    uint64_t range_locks = 0;  ///< calls for locks by fcntl of which the log does not say the range
    AwaitedName awaited;       ///< that a task looked for again and again, until another had made it
    /// The task that makes most syncs on behalf of others who ask over several connections, and how many.
    TaskId syncs_for_others = 0;
    uint64_t asked_syncs = 0;
    /// Threads of a process that sync one file and wait for each other, and how often they sync it.
    uint64_t sync_threads = 0, thread_syncs = 0;
    /// The task that makes most syncs of a little data after others woke it, and how many.
    TaskId logger = 0;
    uint64_t logger_syncs = 0;
    /// Directories on the way to what calls name below the root, of the task that has most: a replay keeps them open.
    uint64_t kept_directories = 0;
    FileId deep_file = 0;  ///< one that such a call named, at least two directories down
    /// Ops of fio's logs, which do not say how files were opened.
    bool flags_assumed = false;
    uint64_t mpi_processes = 0;        // that loaded a library of MPI
    uint64_t unclear_locks = 0;        // waits, see find_guards()
    int64_t held_locks_ns = 0;         // waited for locks during I/O of others, see HeldLocks
    PartOfJob part;                    ///< of the job, that the log is
    uint64_t untimed_calls = 0;        ///< calls that the log gives no time of their own
    uint64_t unseen_children = 0;      ///< processes and threads that the job started, and none of whose calls
    bool calls_filtered = false;       ///< strace was told to leave out calls
    std::string run_pace;              ///< the log is of a run at that pace, and no recording; else empty
    bool run_without_storage = false;  ///< of a run of --engine null
    int64_t traced_ns = 0;             ///< about what strace took of the task with most calls; 0: not strace
    FileSystemWork work;
    std::vector<FileSystemUse> file_systems;  // of the files that the filter keeps; most bytes first

    /// What is left out was chosen by the user, and is no doubt.
    void accept_filter() {
        left_out_bytes = beside_bytes = 0;
        small = programs = {};
    }
};

/// Whether a recorded call that looks at a name or an inode took so long that it waited for a device: neither was in
/// memory.
bool waited_for_names(const OpBlock& block, size_t i);
/// A look at what is in memory takes less, ns.
inline constexpr int64_t kNameInMemory = 40'000;

/// Reads the log once, a block at a time.
RecordedDoubts recorded_doubts(const Plan& plan);

/// Shares of the time and of the data: more is a doubt, more is no measurement.
inline constexpr double kSomeShare = 0.1, kMostShare = 0.5;

/// "54.0 MiB of the job's 54.0 MiB are left out as program or system files", where that is more than a share; else
/// empty.
std::string left_out_data(const RecordedDoubts& doubts, double share);
/// "800 MiB of the job's 900 MiB have no place below the root: ...", where that is more than a share; else empty. A
/// prediction does not need one.
std::string unplaced_data(const RecordedDoubts& doubts, double share);
/// left_out_data() of a third, with what to do.
std::string left_out_most(const RecordedDoubts& doubts);
/// "2.29 MiB of the job's 2.31 MiB are small files in program directories, left out: --only all keeps them",
/// where that is more than half of what the job read and wrote, or it read next to nothing but programs, and that took
/// time; else empty.
std::string read_among_programs(const RecordedDoubts& doubts);
/// "No I/O op is left: the filter leaves out all 2,276", where that is so; else empty.
std::string nothing_left(const RecordedDoubts& doubts);
/// "38.2 MiB of program files among the data are left out: --only all keeps them", where that is more than a share of
/// what is kept with them; else empty.
std::string programs_among_data(const RecordedDoubts& doubts, double share);
/// "names were cached here, and not when recorded (2.10 s of the 2.20 s)", where `names_ns` that memory serves now and
/// the device served in the recording is more than a share of `span_ns`; else empty. `now`: "were cached here".
std::string cached_names(std::string_view now, int64_t names_ns, int64_t span_ns, double share);
/// "the recording loaded 427 MiB of programs from its device, about 3.00 s of its 10.0 s, which stay as they are: ...",
/// where that is more than a share; else empty.
std::string loaded_programs(const RecordedDoubts& doubts, double share);
/// "the recording fetched 30.0 MiB again that had been in memory (dropped caches, or little memory), ...", where what
/// this run did not is more than a share of `fetched`, all that the recording fetched; else empty. Bytes.
std::string fetched_again(const RecordedDoubts& doubts, uint64_t here, uint64_t fetched, double share);
/// "the log does not say which pages of 58.0 MiB of mapped files were used: ...", where that is more than a share of
/// all data; else empty.
std::string unseen_touches(const RecordedDoubts& doubts, double share);
/// "the log has no result of 128 of 128 asynchronous requests ...", where that is more than a share; else empty.
std::string unreported_requests(const RecordedDoubts& doubts, double share);
/// "1,500 requests were each done as the job made them: ...", where that is more than a share of all, and the run took
/// `times` as long as the recording; else empty.
std::string hidden_depth(const RecordedDoubts& doubts, int64_t elapsed_ns, int64_t recorded_ns, double times);
/// "Longer" for hidden_depth(): a doubt, and no measurement.
inline constexpr double kSomeLonger = 1.05, kMuchLonger = 1.5;
/// "mapped files were in memory when recorded: ...": of the bytes that are read, each once, so many are pages of mapped
/// files that were in memory. Where that is more than a share; else empty.
std::string hidden_touches(uint64_t hidden_bytes, uint64_t read_bytes, double share);
/// Data that was fetched around page faults and mapped with them, so that no fault shows whether it was used.
struct MappedAround {
    uint64_t bytes = 0, all_bytes = 0;  ///< of all data, each once
    int64_t recorded_reach = 0;         ///< so far around a fault the recording fetched, bytes; 0: unknown
    std::optional<int64_t> read_ahead;  ///< largest window here, bytes; none: unknown, or nothing is fetched
};
/// No fault maps more around its page than a window of so many bytes fetches.
inline constexpr int64_t kMostFaultReach = int64_t{128} << 10;
/// "files are read 4.00 KiB ahead here, and 64.0 KiB around page faults when recorded: ...", where less is fetched
/// around faults than when recorded, and what was is more than a share of the data; else empty.
std::string fewer_around(const MappedAround& around, double share);
/// "an epoch of the larger set has 50 % too few or too many accesses: ...", where that is more than a share; else
/// empty.
std::string missed_by_scaling(const RecordedDoubts& doubts, double share);
/// "14 times a task slept as others held a lock ...", where that is more than a few; else empty.
std::string lock_polls(const RecordedDoubts& doubts);
/// "task 3 looked 40 times for /d/stop until task 5 had made it: ..."; else empty.
std::string awaited_name(const RecordedDoubts& doubts);
/// "task 2 syncs what several connections ask for (1,042 times): ...", or threads one file, again and again; else
/// empty.
std::string batched_syncs(const RecordedDoubts& doubts);
/// A job may have looked in memory for results of requests where the recording has it compute; else empty.
std::string looks_for_results(const RecordedDoubts& doubts);
/// Whether that may be most of a run's time, which says nothing then.
bool unclear_looks_decide(const RecordedDoubts& doubts, int64_t elapsed_ns);
/// "1.20 s of the recorded computing was polling for results ...", for a note; else empty.
std::string looked_for_results(const RecordedDoubts& doubts);
/// What the recorded files' file systems did and none does here, where that is more than a share (copied_up() and what
/// follows it); else empty.
std::string work_of_file_systems(const RecordedDoubts& doubts, double share);
/// "fio's log does not say ...", where that matters; else empty.
std::string assumed_flags(const RecordedDoubts& doubts);
/// "tasks waited 40 times for locks held during I/O: ..."; else empty.
std::string unclear_locks(const RecordedDoubts& doubts);

/// "a task waited 71.3 ms of 2.23 s for locks ..."; else "".
std::string held_locks(const RecordedDoubts& doubts);
/// "2 processes are ranks of MPI, which wait for each other by computing: ...", where there are two or more, and the
/// time is not about the recorded one; else empty.
std::string mpi_waits(const RecordedDoubts& doubts, int64_t elapsed_ns, int64_t recorded_ns);
/// "the log does not say how long its calls took: ...", where it does not of more than a share; else empty.
std::string untimed_calls(const RecordedDoubts& doubts);
/// "3 processes or threads that the job started are not in the recording ..."; else empty.
std::string unseen_children(const RecordedDoubts& doubts);
/// "strace stopped the job at each call, about 600 ms of the 740 ms: ...", where that is more than a share; else empty.
std::string stopped_at_calls(const RecordedDoubts& doubts, double share);
/// "the log is of a run at pace afap, ..." or of one without storage, whose ops say nothing of the job's times; else
/// empty.
std::string timeless_run(const RecordedDoubts& doubts);
/// "the log is of a run, not of the job: ..."; else empty.
std::string is_of_run(const RecordedDoubts& doubts);
/// "strace had a filter: ..."; else empty.
std::string filtered_calls(const RecordedDoubts& doubts);
/// Of the accesses of a scaled log's epochs.
inline constexpr double kScaledShare = 0.03;
/// From this share on, the time may be 1.5 times as long, or more.
inline constexpr double kThirdShare = 0.3;
/// What to do about it.
inline constexpr const char* kSelectPaths = "; select with --only PATH";

}  // namespace reprise
