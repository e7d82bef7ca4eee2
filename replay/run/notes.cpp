// SPDX-License-Identifier: MIT
#include "replay/run/notes.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/job_end.h"
#include "formats/support/limits.h"
#include "formats/support/quantity.h"

namespace reprise {

std::string refused_note(uint64_t ops, bool root) {
    return "The root refused " + counted(ops, "op") +
           (root
                ? " to root itself (EACCES, EPERM): something else than the user forbids it, such as an immutable file "
                  "(lsattr), a file system that takes root for nobody (NFS), or fs.protected_fifos and "
                  "fs.protected_regular in a directory like /tmp."
                : " to this user (EACCES, EPERM): replay as the user who prepared it, or prepare it as this one.");
}

void note_broken(const std::vector<BrokenEdge>& broken, ReplayResult& result) {
    if (broken.empty()) {
        return;
    }
    count(result.counters, Count::edges_given_up, broken.size());
    constexpr size_t kShown = 3;
    for (size_t i = 0; i < std::min(broken.size(), kShown); ++i) {
        const char* const what =
            broken[i].source == 0 ? "A wait without end was given up: " : "Dependency cycle, so one edge was dropped: ";
        result.notes.push_back(what + to_string(broken[i]) + ".");
    }
}

void note_no_queue(int uring, int aio, ReplayResult& result) {
    for (const auto& [name, error] : {std::pair{"io_uring", uring}, std::pair{"libaio", aio}}) {
        if (error != 0) {
            result.notes.push_back(std::string(name) + " is not to be had here (" + reason(error) +
                                   "): threads made its requests, as many at a time as recorded." +
                                   (name == std::string_view("io_uring")
                                        ? " See kernel.io_uring_disabled and RLIMIT_MEMLOCK."
                                        : " See fs.aio-max-nr."));
        }
    }
}

void note_group_limits(const DiskLimits& kept, const std::string& lost, ReplayResult& result) {
    if (!kept.empty()) {
        result.notes.push_back("Kept the control group's limit: " + limits_text(kept) + ".");
    }
    if (!lost.empty()) {
        result.lost_io_limits = "an I/O limit of the control group may not hold: see the notes";
        std::string note = lost;
        note.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(note.front())));
        result.notes.push_back(note + ".");
    }
}

void note_group_limits(ReplayResult& result) {
    if (result.machine.io_limits.any()) {
        result.notes.push_back("The control group that this runs in limits the root's disk: " +
                               limits_text(result.machine.io_limits) + ".");
    }
}

void add_notes(ReplayResult& result) {
    const auto late = static_cast<double>(result.lateness.percentile(0.99));
    if (result.timed && result.fidelity.failures.empty() && late > 5e6 &&
        late > 0.01 * static_cast<double>(result.elapsed_ns)) {
        result.notes.push_back("This machine barely kept up with the recorded times: p99 lateness of ops is " +
                               std::to_string(std::llround(late / 1e6)) + " ms.");
    }
    if (std::string looked = looked_for_results(result.doubts); !looked.empty()) {
        result.notes.push_back(std::move(looked));
    }
    const auto not_open = static_cast<size_t>(LeftOut::not_open);
    if (result.left_out[not_open] != 0) {
        result.notes.push_back(counted(result.left_out[not_open], "op was", "ops were") +
                               " not performed because the open failed; see the opens that differ.");
    }
    if (result.refused != 0) {
        result.notes.insert(result.notes.begin(), refused_note(result.refused, ::geteuid() == 0));
    }
    if (const uint64_t locks = result.mismatches_by_kind[static_cast<size_t>(OpKind::flock)]; locks != 0) {
        result.notes.push_back(counted(locks, "flock call") +
                               " ended otherwise than recorded; a lock that does not come within 1 s is given up.");
    }
    const auto device = static_cast<size_t>(LeftOut::device_node);
    if (result.left_out[device] != 0) {
        result.notes.push_back(counted(result.left_out[device], "op") +
                               " named a device node below the root: not performed.");
    }
}

void note_recording(const LogReader& log, ReplayResult& result) {
    const Header& header = log.header();
    if (const std::string how = failed_end(log); !how.empty()) {
        result.notes.push_back("The recorded job ended with " + how + ": what it did until then is replayed.");
    }
    if (read_fact(header, fact::capture_mode) == "pid") {
        result.notes.push_back(
            "The recording was attached to a job that already ran (capture --pid): what it did before is not in it.");
    }
    result.computed = times_are_computed(header);
    result.pinned_tasks = static_cast<uint64_t>(read_fact(header, fact::pinned_tasks).value_or(0));
    result.pinned_cpus = static_cast<int>(std::min<int64_t>(read_fact(header, fact::pinned_cpus).value_or(0), INT_MAX));
}

}  // namespace reprise
