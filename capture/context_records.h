// SPDX-License-Identifier: MIT
// The records that user space adds: what the recording is, clocks, pressure, tasks that were there before.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/loader.h"
#include "formats/raw/costs.h"
#include "formats/raw/log.h"

namespace reprise {

/// CLOCK_MONOTONIC, ns: the clock of all records.
uint64_t monotonic_ns();

/// Appends a record without parts; fills its head.
template <class T>
void user_record(RawWriter& to, raw_type type, T record) {
    record.head.size = sizeof record;
    record.head.type = type;
    record.head.time = monotonic_ns();
    to.append({reinterpret_cast<const uint8_t*>(&record), sizeof record});
}

/// JSON text of RAW_META.
std::string capture_meta(const CaptureOptions& options, const BpfPrograms& programs, const std::string& user,
                         long more_per_call_ns, const RecorderCosts& costs);
void clock_record(RawWriter& to);
/// Of the whole machine, as /proc/pressure tells it; nothing where the kernel has none.
void pressure_record(RawWriter& to);
/// RAW_SEED_TASK for each thread of a process; `command` instead of its command line where it has not begun yet.
void seed_task_record(RawWriter& to, pid_t pid, const std::vector<std::string>* command);

/// RAW_RANK of a process, where a launcher's variables are in its environment.
void rank_record(RawWriter& to, pid_t pid);

/// A process and all its descendants. Throws Error (machine) where there is none.
std::vector<pid_t> process_tree(pid_t root);
/// All processes of a control group and those below it. Throws Error (usage) where it is none.
std::vector<pid_t> processes_of_cgroup(const std::filesystem::path& cgroup);

/// That group and those below it. Throws Error (usage) where its hierarchy is not known.
std::vector<CgroupId> cgroup_ids(const std::filesystem::path& cgroup);

}  // namespace reprise
