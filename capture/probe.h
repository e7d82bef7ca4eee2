// SPDX-License-Identifier: MIT
// A process that does a known number of each kind of event, first by itself and then recorded: what the recording costs
// a task here. A recording begins with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "formats/raw/costs.h"
#include "formats/raw/record.h"
#include "formats/support/unique_fd.h"

namespace reprise {

/// ns that one event of each kind took. Those that could not be made here are 0.
struct ProbeTimes {
    double call = 0, truncate = 0, truncate_page = 0, truncate_pages = 0;
    double yield = 0, round_trip = 0, anonymous = 0, file_fault = 0;
};

class Probe {
public:
    static constexpr int kPagesOfRun = 64;  ///< of what `truncate_pages` removes

    /// Makes the process; it waits. Where none can be made, run() gives zeros.
    Probe();
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    /// 0: there is none.
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Does all of it twice, some 20 ms; of each kind the less counts.
    ProbeTimes run();
    /// Lets it end; once it has.
    void end();

private:
    ProbeTimes once();

    pid_t pid_ = 0;
    UniqueFd to_, from_;
    ProbeTimes* times_ = nullptr;  // shared with it
};

/// From its times without and with recording, `unseen`: ns that a call costs which is looked at and not recorded.
RecorderCosts costs_of(const ProbeTimes& without, const ProbeTimes& with, double unseen);

/// What new anonymous pages usually take, from the probe's records: the lower quarter of its batches.
class PageTimes {
public:
    void see(const raw_head& record, pid_t of);
    /// ns; 0: not seen.
    int64_t base() const;
    int64_t huge() const;

private:
    static int64_t usual(std::vector<double> times);
    std::vector<double> base_, huge_;
};

}  // namespace reprise
