// SPDX-License-Identifier: MIT
// What a recording leaves open, in words.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "formats/support/sums.h"
#include "replay/plan/recorded_doubts.h"

namespace reprise {
namespace {

constexpr uint64_t kLittleData = 1 << 20;    // bytes; less is no loss
constexpr int64_t kLittleTime = 10'000'000;  // ns; likewise

/// Of `all`, with bytes that are too few to say anything.
bool is_little(uint64_t bytes, uint64_t all, double share) {
    return bytes <= kLittleData || static_cast<double>(bytes) <= share * static_cast<double>(all);
}

}  // namespace

std::string looks_for_results(const RecordedDoubts& doubts) {
    constexpr uint64_t kFew = 100;
    if (doubts.polled_requests < kFew) {
        return doubts.unclear_looks_ns == 0
                   ? ""
                   : format_duration(doubts.unclear_looks_ns) +
                         " of computing ended as results of requests came or were taken: a job that looks for them in "
                         "memory computes as long as when recorded";
    }
    return "a polling thread of the kernel took " + counted(doubts.polled_requests, "request") +
           " (IORING_SETUP_SQPOLL): where the job looks for results in memory, it computes as long as when recorded";
}

bool unclear_looks_decide(const RecordedDoubts& doubts, int64_t elapsed_ns) {
    return static_cast<double>(doubts.unclear_looks_ns) > kMostShare * static_cast<double>(elapsed_ns);
}

std::string looked_for_results(const RecordedDoubts& doubts) {
    return doubts.looked_ns == 0
               ? ""
               : format_duration(doubts.looked_ns) +
                     " of the recorded computing was polling for results of requests in memory: here it lasts until "
                     "they are there.";
}

std::string fetched_again(const RecordedDoubts& doubts, uint64_t here, uint64_t fetched, double share) {
    const uint64_t missing = doubts.refetched_bytes - std::min(doubts.refetched_bytes, here);
    uint64_t all = fetched;
    sum(all, doubts.refetched_bytes);
    if (is_little(missing, all, share)) {
        return {};
    }
    return "the recording fetched " + format_bytes(missing) +
           " again that had been in memory (dropped caches, or little memory), and memory keeps them here";
}

std::string unseen_touches(const RecordedDoubts& doubts, double share) {
    uint64_t all = doubts.kept_bytes;
    sum(all, doubts.unseen_mapped_bytes);
    if (is_little(doubts.unseen_mapped_bytes, all, share)) {
        return {};
    }
    return "the log does not say which pages of " + format_bytes(doubts.unseen_mapped_bytes) +
           " of mapped files were used: none of them are read here (reprise capture records page faults)";
}

std::string hidden_touches(uint64_t hidden_bytes, uint64_t read_bytes, double share) {
    if (hidden_bytes == 0 || static_cast<double>(hidden_bytes) <= share * static_cast<double>(read_bytes)) {
        return {};
    }
    return "mapped files were in memory when recorded: not all their pages are known (record cold)";
}

std::string fewer_around(const MappedAround& around, double share) {
    constexpr uint64_t kLeast = 64 << 10;
    if (!around.read_ahead || *around.read_ahead >= around.recorded_reach || around.bytes < kLeast ||
        static_cast<double>(around.bytes) <= share * static_cast<double>(around.all_bytes)) {
        return {};
    }
    const int64_t kib = std::max<int64_t>(*around.read_ahead >> 10, 4);
    return "files are read " + format_bytes(static_cast<uint64_t>(*around.read_ahead)) + " ahead here, and at least " +
           format_bytes(static_cast<uint64_t>(around.recorded_reach)) +
           " when recorded: the log does not say which of " + format_bytes(around.bytes) +
           " around page faults the job used, and each of those pages would be a read (record with read_ahead_kb at " +
           std::to_string(kib) + ")";
}

std::string missed_by_scaling(const RecordedDoubts& doubts, double share) {
    if (doubts.scaled_missed <= share) {
        return {};
    }
    return "an epoch of the scaled set has " + std::to_string(std::lround(100 * doubts.scaled_missed)) +
           " % too few or too many accesses: the recording has too few steps alike (record more of each epoch)";
}

std::string lock_polls(const RecordedDoubts& doubts) {
    constexpr uint64_t kFew = 3;
    return doubts.lock_polls < kFew
               ? std::string()
               : counted(doubts.lock_polls, "time") +
                     " a task slept as another held a file lock or a lock file, and asked again: how often "
                     "depends on how long locks are held here";
}

std::string awaited_name(const RecordedDoubts& doubts) {
    return doubts.awaited.looks == 0
               ? std::string()
               : "task " + std::to_string(doubts.awaited.task) + " looked " + counted(doubts.awaited.looks, "time") +
                     " for " + escape_line(doubts.awaited.path) +
                     " until another task had made it: here it looks as often, and does as much meanwhile";
}

std::string batched_syncs(const RecordedDoubts& doubts) {
    constexpr uint64_t kFew = 20;
    if (doubts.asked_syncs >= kFew) {
        return "task " + std::to_string(doubts.syncs_for_others) + " syncs what several connections ask for (" +
               counted(doubts.asked_syncs, "time") + "): how many requests share a sync depends on how long one takes";
    }
    if (doubts.logger_syncs >= kFew) {
        return "task " + std::to_string(doubts.logger) + " syncs what others hand it (" +
               counted(doubts.logger_syncs, "time") + "): how much shares a sync depends on how long one takes";
    }
    return doubts.thread_syncs < kFew
               ? std::string()
               : std::to_string(doubts.sync_threads) + " threads sync one file (" +
                     counted(doubts.thread_syncs, "time") +
                     ") and wait for each other: how many writes share a sync depends on how long one takes";
}

std::string work_of_file_systems(const RecordedDoubts& doubts, double share) {
    for (std::string why :
         {copied_up(doubts.work, doubts.kept_bytes, share), compressed_by_type(doubts.file_systems, share),
          served_by_job(doubts.work, doubts.file_systems, share)}) {
        if (!why.empty()) {
            return why;
        }
    }
    return {};
}

std::string assumed_flags(const RecordedDoubts& doubts) {
    return doubts.flags_assumed
               ? "fio's log does not say how files were opened: direct and synchronous I/O is buffered here"
               : "";
}

std::string unreported_requests(const RecordedDoubts& doubts, double share) {
    constexpr uint64_t kFew = 8;
    const auto most = share * static_cast<double>(doubts.requests);
    return doubts.unreported_requests < kFew || static_cast<double>(doubts.unreported_requests) <= most
               ? ""
               : "the log has no result of " + format_count(doubts.unreported_requests) + " of " +
                     counted(doubts.requests, "asynchronous request") +
                     " (of libaio, another thread may take them from memory): what waited for them does not wait here";
}

std::string hidden_depth(const RecordedDoubts& doubts, int64_t elapsed_ns, int64_t recorded_ns, double times) {
    constexpr uint64_t kFew = 32;
    const bool longer = static_cast<double>(elapsed_ns) > times * static_cast<double>(recorded_ns);
    return doubts.at_once_requests < kFew || !longer ||
                   static_cast<double>(doubts.at_once_requests) <= kSomeShare * static_cast<double>(doubts.requests)
               ? ""
               : counted(doubts.at_once_requests, "asynchronous request") +
                     " were each done before the job made the next: how many it keeps in flight where they take longer "
                     "is not in the log; record on slower storage, or with cold caches";
}

std::string unclear_locks(const RecordedDoubts& doubts) {
    return doubts.unclear_locks == 0 ? ""
                                     : "tasks waited " + counted(doubts.unclear_locks, "time") +
                                           " for locks held during I/O: which I/O is not known, so it may overlap here";
}

std::string held_locks(const RecordedDoubts& doubts) {
    return doubts.held_locks_ns == 0 || doubts.unclear_locks != 0
               ? ""
               : "a task waited " + format_duration(doubts.held_locks_ns) + " of " + format_duration(doubts.span_ns) +
                     " for locks while another used files: it does not wait for them here";
}

std::string mpi_waits(const RecordedDoubts& doubts, int64_t elapsed_ns, int64_t recorded_ns) {
    constexpr double kOtherwise = 0.05;
    const double off = std::abs(static_cast<double>(elapsed_ns) - static_cast<double>(recorded_ns));
    return doubts.mpi_processes < 2 || off <= kOtherwise * static_cast<double>(recorded_ns)
               ? std::string()
               : counted(doubts.mpi_processes, "process uses", "processes use") +
                     " MPI, whose ranks wait for each other by computing: here they compute as long as recorded, "
                     "and do not wait";
}

std::string untimed_calls(const RecordedDoubts& doubts) {
    uint64_t all = doubts.kept_ops;
    sum(all, doubts.left_out_ops);
    return static_cast<double>(doubts.untimed_calls) <= kSomeShare * static_cast<double>(all)
               ? ""
               : "the log does not say how long its calls took: how much of the time was computing is a guess";
}

std::string timeless_run(const RecordedDoubts& doubts) {
    return doubts.run_without_storage
               ? "the log is of a run with --engine null, which used no storage: take the recording's"
           : doubts.run_pace == "afap" ? "the log is of a run at pace afap, in which nothing was computed: take the "
                                         "recording's, or that of a causal run"
                                       : "";
}

std::string is_of_run(const RecordedDoubts& doubts) {
    return doubts.run_pace.empty() ? std::string()
                                   : "the log is of a run, which has the replay's own costs in its times: take the "
                                     "recording where you have it";
}

std::string filtered_calls(const RecordedDoubts& doubts) {
    return doubts.calls_filtered ? "strace had a filter: syncs or other calls may be missing" : "";
}

std::string stopped_at_calls(const RecordedDoubts& doubts, double share) {
    if (static_cast<double>(doubts.traced_ns) <= share * static_cast<double>(doubts.span_ns)) {
        return {};
    }
    return "strace stopped the job at each call, about " + format_duration(std::min(doubts.traced_ns, doubts.span_ns)) +
           " of the " + format_duration(doubts.span_ns) +
           ", which are replayed as its own: record with reprise capture";
}

std::string unseen_children(const RecordedDoubts& doubts) {
    return doubts.unseen_children == 0 ? std::string()
                                       : counted(doubts.unseen_children, "process or thread", "processes or threads") +
                                             " that the job started " + (doubts.unseen_children == 1 ? "is" : "are") +
                                             " not in the recording (strace without -f?): what they did is missing";
}

std::string left_out_data(const RecordedDoubts& doubts, double share) {
    uint64_t all = doubts.left_out_bytes;
    sum(all, doubts.kept_bytes);
    if (is_little(doubts.left_out_bytes, all, share)) {
        return {};
    }
    return format_bytes(doubts.left_out_bytes) + " of the job's " + format_bytes(all) +
           " are left out as program or system files";
}

std::string unplaced_data(const RecordedDoubts& doubts, double share) {
    uint64_t all = doubts.left_out_bytes;
    sum(all, doubts.kept_bytes);
    if (is_little(doubts.unplaced_bytes, all, share)) {
        return {};
    }
    return format_bytes(doubts.unplaced_bytes) + " of the job's " + format_bytes(all) +
           " have no place below the root (paths longer than 4,095 bytes, relative or empty), and are left out";
}

std::string read_among_programs(const RecordedDoubts& doubts) {
    constexpr double kAll = 0.99, kAllOfTime = 0.95, kSmallTime = 0.01, kTime = 0.05;
    uint64_t all = doubts.kept_bytes;
    sum(all, doubts.left_out_bytes);
    sum(all, doubts.programs.bytes);
    const auto takes = [&](const FilesLeftOut& files, double share) {
        return static_cast<double>(files.ns) > share * static_cast<double>(doubts.span_ns);
    };
    const auto said = [&](uint64_t bytes, const char* what) {
        return format_bytes(bytes) + " of the job's " + format_bytes(all) + " are " + what +
               ", left out: --only all keeps them";
    };
    if (!is_little(doubts.small.bytes, all, kMostShare) && takes(doubts.small, kSmallTime)) {
        return said(doubts.small.bytes, "small files in program directories");
    }
    const auto calls_ns = static_cast<double>(doubts.programs.ns) + static_cast<double>(doubts.kept_ns);
    if (!is_little(doubts.programs.bytes, all, kAll) && takes(doubts.programs, kTime) &&
        static_cast<double>(doubts.programs.ns) > kAllOfTime * calls_ns) {
        return said(doubts.programs.bytes, "program files");
    }
    return {};
}

std::string nothing_left(const RecordedDoubts& doubts) {
    return doubts.kept_ops != 0 || doubts.left_out_ops == 0
               ? std::string()
               : "No I/O op is left: the filter leaves out all " + format_count(doubts.left_out_ops);
}

std::string programs_among_data(const RecordedDoubts& doubts, double share) {
    uint64_t all = doubts.beside_bytes;
    sum(all, doubts.kept_bytes);
    if (is_little(doubts.beside_bytes, all, share)) {
        return {};
    }
    return format_bytes(doubts.beside_bytes) +
           " of program files among the data are left out, and take their recorded time: --only all keeps them";
}

std::string left_out_most(const RecordedDoubts& doubts) {
    const std::string data = left_out_data(doubts, kThirdShare);
    return data.empty() ? data : data + kSelectPaths;
}

std::string loaded_programs(const RecordedDoubts& doubts, double share) {
    if (doubts.program_bytes <= kLittleData || doubts.program_ns <= kLittleTime ||
        static_cast<double>(doubts.program_ns) <= share * static_cast<double>(doubts.span_ns)) {
        return {};
    }
    return "the recording loaded " + format_bytes(doubts.program_bytes) + " of programs from its device, about " +
           format_duration(doubts.program_ns) + " of its " + format_duration(doubts.span_ns) +
           ", which stay as they are: record again with the programs cached";
}

std::string cached_names(std::string_view now, int64_t names_ns, int64_t span_ns, double share) {
    if (names_ns <= kLittleTime || static_cast<double>(names_ns) <= share * static_cast<double>(span_ns)) {
        return {};
    }
    return "names " + std::string(now) + ", and not when recorded (" + format_duration(names_ns) + " of the " +
           format_duration(span_ns) + ")";
}

}  // namespace reprise
