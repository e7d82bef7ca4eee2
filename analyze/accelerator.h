// SPDX-License-Identifier: MIT
// Accelerator busy time and utilisation (AU) of a log, from its gpu_submit ops and markers in the order of time.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/op.h"
#include "formats/tables.h"

namespace reprise {

// Busy time within a stretch of the run. Times in ns.
struct Utilisation {
    int64_t begin = 0, end = 0;  // of the stretch
    uint64_t submits = 0;
    int64_t busy = 0;
    int64_t first_work = 0, last_work = 0;  // when the device began its first and ended its last work in it
    // The same without the first step: MLPerf Storage counts from the end of the first step's work to the end of the
    // last step's. A step ends at a marker "step" where there are any, else every submission is a step.
    int64_t later_busy = 0, later_elapsed = 0;

    // Busy share of the stretch; none where it has no length.
    std::optional<double> au() const;
    // Busy share by MLPerf's rule; none where there is only one step.
    std::optional<double> au_mlperf() const;
    // Time the device stood idle between its first and its last work (ns): it waited for data, or for the host.
    int64_t stall() const;
};

struct EpochUtilisation : Utilisation {
    int64_t number = -1;   // -1: unknown
    bool complete = true;  // false: its end is not in the log
};

// A device as one process sees it: a device that processes share has a row for each.
struct DeviceUtilisation : Utilisation {
    ProcessId process = 0;
    int64_t device = 0;
    std::vector<EpochUtilisation> epochs;  // in the order of their ends
};

// Takes ops in the order of their begin times. A device's queue runs as in a replay: work starts when it is submitted
// and all work before it is done; busy is the union of the work.
class AcceleratorTracker {
public:
    explicit AcceleratorTracker(const Tables& tables);
    // Ops other than gpu_submit and marker are ignored.
    void add(TaskId task, const Op& op);
    // The run as a whole is [begin, end]. Call once.
    std::vector<DeviceUtilisation> finish(int64_t begin, int64_t end);

private:
    struct Work {
        int64_t begin, end;
    };
    // One stretch being measured on one device.
    struct Scope {
        int64_t begin = 0;
        uint64_t submits = 0;
        int64_t busy = 0, first_work = 0, last_work = 0;
        // What lies up to the end of the first step, by the first submission and by the first step marker.
        int64_t first_submit_end = 0, first_submit_busy = 0;
        bool step_seen = false;
        int64_t first_step_end = 0, first_step_busy = 0;

        void add(const Work& work);
        void add_part(const Work& work);
        Utilisation close(int64_t end, const std::deque<Work>& recent) const;
    };
    struct OpenEpoch {
        StringId name;
        int64_t number, begin;
    };
    struct Device {
        int64_t busy_until = 0;
        std::deque<Work> recent;  // work that ends after the latest event
        Scope run;
        std::vector<Scope> epochs;  // one per open epoch of the process, in the same order
        std::vector<EpochUtilisation> done;
    };
    struct Process {
        std::vector<OpenEpoch> open;
        std::map<int64_t, Device> devices;
    };

    void submit(Process& process, const Op& op);
    void begin_epoch(Process& process, const Op& op);
    void end_epoch(Process& process, size_t index, int64_t at, bool complete);
    void end_step(Process& process);

    const Tables& tables_;
    StringId epoch_ = 0, step_ = 0;
    std::map<ProcessId, Process> processes_;
};

}  // namespace reprise
