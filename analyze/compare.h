// SPDX-License-Identifier: MIT
// Fidelity: how far a run's log agrees with the recording it replayed, or any two logs with each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/summary.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// How much a check may be off: a number of things, or with % a share of A's value (for au: percentage points).
struct Tolerance {
    double value = 0;
    bool percent = false;

    /// "0", "12", "5%"; Error (usage), which names the option, and offers "none" where its caller takes that.
    static Tolerance parse(std::string_view text, std::string_view option, bool takes_none = false);
};

struct CompareOptions {
    /// By name of the check; "none" there never fails. See default_tolerances() for those that fail by default.
    std::map<std::string, std::optional<Tolerance>> tolerances;
    size_t examples = 10;
    std::function<void(uint64_t)> progress;
};

/// "results=0", "elapsed=5%", "bytes=none" onto `options`; Error (usage) names the checks there are.
void add_tolerance(CompareOptions& options, std::string_view text);

/// One line of the comparison. What is checked is `difference` against the tolerance.
struct Check {
    enum class Unit { count, bytes, ns, bytes_per_s, share };
    std::string name;
    Unit unit = Unit::count;
    std::optional<double> a, b;  // none where a log does not have it
    double difference = 0;       // >= 0, in the unit
    std::optional<Tolerance> tolerance;
    bool ok = true;
};

enum class DifferenceKind { result, missing, extra, moved, arguments };
std::string_view difference_name(DifferenceKind kind);

struct Difference {
    DifferenceKind what = DifferenceKind::result;
    TaskId task = 0;
    uint64_t op_a = 0, op_b = 0;  // numbers within the task; op_a is meaningless for extra, op_b for missing
    OpKind kind = OpKind::compute;
    std::string path;
    int64_t result_a = 0, result_b = 0;
};

struct Comparison {
    Summary a, b;          // of what was compared: with the run's filter
    std::string filter;    // to_string of that filter
    std::string ended;     // b's "ended", empty if it is not a run
    std::string what_if;   // which of the logs is of a what-if run, and of which; empty: none
    uint64_t matched = 0;  // ops with trait io found in both, in order
    uint64_t missing = 0, extra = 0, moved = 0, arguments = 0;
    uint64_t results = 0;        // results that differ and should not
    uint64_t results_known = 0;  // that may differ: descriptor numbers, addresses, sizes of directories
    uint64_t not_performed_bytes = 0;
    uint64_t not_performed =
        0;  // ops of a run whose result ECANCELED says that the replay left them out: shown, never failed
    uint64_t left_out_ops = 0, left_out_bytes = 0;  // of A, by the run's filter: shown, never failed
    std::vector<Difference> differences;            // examples
    std::vector<Check> checks;

    bool passed() const;
};

/// Aligns the ops with trait io per task, in order, after leaving out of both logs what either run's filter left out.
/// Waits, compute, markers and accelerators are causes: they are compared by their sums. Memory is bounded.
/// Error (usage) where a tolerance is given for what neither log has.
Comparison compare(const LogReader& a, const LogReader& b, const CompareOptions& options = {});

/// `tables_a`, `tables_b`: of the compared logs.
nlohmann::ordered_json to_json(const Comparison& comparison, const Tables& tables_a, const Tables& tables_b);

}  // namespace reprise
