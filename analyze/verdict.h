// SPDX-License-Identifier: MIT
// What a run comes to, in the few figures that decide whether it may be believed and what it says: the summary of
// `replay` and of `compare`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/job_figures.h"

namespace reprise {

struct Comparison;
struct Header;

/// Where the data that a job read came from.
enum class Temperature : uint8_t {
    unknown,  // nothing was read, or nobody counted
    cold,     // at least 90 % of the bytes from the device
    warm,     // at most 10 %
    mixed,
    metadata,  // the device read names and inodes, not data
    no_data,   // neither memory nor the device: sparse files
};
std::string_view temperature_name(Temperature regime);

/// I/O ops of the recording: each is done as recorded, differs, or is left out. An op whose file did not open differs.
struct JobOps {
    uint64_t alike = 0, differ = 0, left_out = 0;
    uint64_t extra = 0;                                         // of the run only
    std::vector<std::pair<std::string, uint64_t>> left_out_by;  // reasons with their ops; they add up to left_out
    uint64_t recorded() const { return alike + differ + left_out; }
};

/// 95 % interval of AU where that of the elapsed time is `elapsed_ns`, from the time that accelerators were busy.
std::optional<std::pair<double, double>> au_interval(int64_t busy_ns, const std::pair<int64_t, int64_t>& elapsed_ns);

struct Verdict {
    bool same_job = true;
    std::string tolerated_by;  // the options by which ops may differ in the same job; empty: not known
    std::string ended;         // "complete", or why the run stopped; empty: not a run
    std::string pace;          // empty: not known
    bool no_storage = false;   // the engine performed nothing
    std::string part;          // why it is a part of the job: "the log was truncated"; empty: it is whole
    uint64_t lost_events = 0;  // of them, those that the recording lost, by its counters
    std::string what_if;       // "--gpu-speed 2"; empty: the job as recorded
    std::string access;        // what came of options that change how files are got at; empty: none, or not known
    JobOps ops;
    JobFigures recorded, here;
    std::optional<uint64_t> device_read, device_written;  // bytes; here
    std::optional<uint64_t> device_data;                  // of these at most data; none: not known
    bool no_data = false;                                 // what was read was neither in memory nor on the device
    /// good, fair or poor, and why; empty: not known.
    std::string trust, trust_reason;
    /// ns: 95 % interval of the real job's time here; none: the run does not predict it, or does not say.
    std::optional<std::pair<int64_t, int64_t>> interval;
    std::string no_interval;  // why a run under pace causal has none
    /// Likewise of the accelerator's utilisation.
    std::optional<std::pair<double, double>> au_interval() const;

    /// Device bytes over the bytes that were read from files on storage, page touches included; none where either is
    /// not known. Above 1 with read-ahead.
    std::optional<double> device_share() const;
    Temperature temperature() const;
    /// A run that did not come to its end.
    bool incomplete() const { return !ended.empty() && ended != "complete"; }
    /// The same job only as far as the caller tolerates differences.
    bool tolerated() const { return same_job && ops.differ + ops.extra != 0; }
};

/// `run`: header of the second log.
Verdict verdict_of(const Comparison& comparison, const Header& run);

nlohmann::ordered_json to_json(const Verdict& verdict);

}  // namespace reprise
