// SPDX-License-Identifier: MIT
// Accelerator busy time and utilisation (AU) of a log, from its gpu_submit ops and markers in the order of time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/op.h"
#include "formats/oplog/tables.h"
#include "formats/support/histogram.h"

namespace reprise {

/// Busy time within a stretch of the run. Times in ns.
struct Utilisation {
    int64_t begin = 0, end = 0;  // of the stretch
    uint64_t submits = 0;
    int64_t busy = 0;
    int64_t first_work = 0, last_work = 0;  // when the device began its first and ended its last work in it
    /// The same without the first step: MLPerf Storage counts from the end of the first step's work to the end of the
    /// last step's.
    int64_t later_busy = 0, later_elapsed = 0;

    /// Busy share of the stretch; none where it has no length.
    std::optional<double> au() const;
    /// Busy share from the end of the first step's work on; none where there is only one step.
    std::optional<double> au_after_first_step() const;
    /// Idle time of the device between its first and last work (ns): it waited for data or the host.
    int64_t stall() const;
};

/// What ends a step of an accelerator, the best evidence first.
enum class StepRule : uint8_t { mark, span, submission };

/// Steps of a device: from the end of one to the end of the next (ns). The first step of an epoch, or of the run where
/// no epochs are marked, has no length.
struct StepTimes {
    StepRule rule = StepRule::submission;
    Histogram lengths;
};

struct EpochUtilisation : Utilisation {
    int64_t number = -1;   // -1: unknown
    bool complete = true;  // false: its end is not in the log

    std::optional<double> au_mlperf() const { return au_after_first_step(); }
};

/// A device as one process sees it: a device that processes share has a row for each.
struct DeviceUtilisation : Utilisation {
    ProcessId process = 0;
    int64_t device = 0;
    std::vector<EpochUtilisation> epochs;  // in the order of their ends
    StepTimes steps;

    /// MLPerf's variant: the mean of the epochs', where epochs are marked, else the run's after its first step. None
    /// where none has a second step.
    std::optional<double> au_mlperf() const;
};

/// What all devices of a log or a run did.
struct AcceleratorUse {
    std::vector<DeviceUtilisation> devices;

    /// Busy time of all devices (ns).
    int64_t busy() const;
    /// Busy time of all devices over their number and the elapsed time; none without accelerators.
    std::optional<double> au() const;
    /// Mean over devices of DeviceUtilisation::au_mlperf().
    std::optional<double> au_mlperf() const;
    int64_t stall() const;  // ns, of all devices
};

/// Told of every stretch of time in which a device of a process worked, once, in no order: [begin, end), ns.
using SeeBusy = std::function<void(ProcessId process, int64_t device, int64_t begin, int64_t end)>;

/// Takes ops in the order of their begin times. A device's streams run as in a replay: work starts when it is submitted
/// and all work of its stream before it is done; busy is the union of the work of all streams. A step ends at a marker
/// "step" where there are any, else at the end of a span "accelerator", else with each submission's work.
class AcceleratorTracker {
public:
    explicit AcceleratorTracker(const Tables& tables, SeeBusy busy = {});
    /// Ops other than gpu_submit and marker are ignored.
    void add(TaskId task, const Op& op);
    /// The run as a whole is [begin, end]. Call once.
    std::vector<DeviceUtilisation> finish(int64_t begin, int64_t end);

private:
    struct Work {
        int64_t begin, end;
    };
    using Intervals = std::map<int64_t, int64_t>;  // begin to end, disjoint
    static constexpr size_t kRules = 3;
    struct FirstStep {
        bool seen = false;
        int64_t end = 0, busy = 0;
    };
    /// One stretch being measured on one device.
    struct Scope {
        int64_t begin = 0;
        uint64_t submits = 0;
        int64_t busy = 0, first_work = 0, last_work = 0;
        std::array<FirstStep, kRules> first_step;  // what lies up to the end of the first step, by StepRule

        void add(const Work& work, const std::vector<Work>& pieces);
        void add_part(const Work& work);
        void end_step(StepRule rule, int64_t busy_until);
        Utilisation close(int64_t end, const Intervals& recent) const;
    };
    struct OpenEpoch {
        StringId name;
        int64_t number, begin;
    };
    struct Device {
        std::map<int64_t, int64_t> streams;  // when each runs empty
        int64_t busy_until = 0;
        Intervals recent;  // work that ends after the latest event
        StepTimes steps;
        std::optional<int64_t> last_step;
        uint64_t submits_at_step = 0;
        Scope run;
        std::vector<Scope> epochs;  // one per open epoch of the process, in the same order
        std::vector<EpochUtilisation> done;
    };
    struct Process {
        std::vector<OpenEpoch> open;
        std::map<int64_t, Device> devices;
    };

    void submit(ProcessId id, Process& process, const Op& op);
    void begin_epoch(Process& process, const Op& op);
    void end_epoch(Process& process, size_t index, int64_t at, bool complete);
    static void end_step(Process& process, StepRule rule, int64_t at);
    static void end_step(Device& device, StepRule rule, int64_t at);

    const Tables& tables_;
    SeeBusy busy_;
    StringId epoch_ = 0, step_ = 0, accelerator_ = 0;
    std::map<ProcessId, Process> processes_;
    std::vector<Work> pieces_;  // scratch
};

/// What the devices of a run did, from its ops as they are made: those of one task in their order, tasks in any. Keeps
/// submissions and markers until finish(); what it says is what summarize() says of the run's log.
class AcceleratorObserver {
public:
    /// `tables`: of the log that is run.
    explicit AcceleratorObserver(const Tables& tables) : tables_(tables) {}
    void add(TaskId task, const Op& op);
    /// ns: first begin and last end of the ops so far; begin beyond end: none.
    int64_t begin() const { return begin_; }
    int64_t end() const { return end_; }
    AcceleratorUse finish();

private:
    struct Kept {
        int64_t begin, size, flags, arg;
        TaskId task;
        StringId text;
        OpKind kind;
    };
    const Tables& tables_;
    std::vector<Kept> kept_;
    int64_t begin_ = std::numeric_limits<int64_t>::max(), end_ = std::numeric_limits<int64_t>::min();
};

}  // namespace reprise
