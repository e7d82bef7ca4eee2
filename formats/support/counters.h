// SPDX-License-Identifier: MIT
// Counters: named counts of what was dropped, guessed or repaired. counters.def lists every one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// note: nothing to worry about; warning: the replay may differ; loss: something that happened is not in the log.
enum class Severity : uint8_t { note, warning, loss };
std::string_view severity_name(Severity severity);

/// A counter as logs and reports hold it. Logs of other versions may hold counters that counters.def does not list.
struct Counter {
    std::string name;
    Severity severity = Severity::note;
    uint64_t value = 0;
    std::string meaning;

    bool operator==(const Counter&) const = default;
};

/// The counters of counters.def.
enum class Count : uint16_t {
#define COUNTER(id, severity, meaning) id,
#define COUNTER_FAMILY(id, prefix, severity, meaning) id,
#include "formats/support/counters.def"
#undef COUNTER
#undef COUNTER_FAMILY
};

struct CounterInfo {
    std::string_view name;  // of a family: what the names begin with
    Severity severity;
    std::string_view meaning;  // "{}" stands for the detail given where it is counted
    bool family;               // the detail also ends the name
};

/// In the order of Count.
std::span<const CounterInfo> all_counters();
const CounterInfo& info(Count what);

/// Adds `n` to a counter of the list, making it on first use; does nothing where `n` is 0. `detail` fills in the "{}"
/// of the meaning and ends the name of a family; of a counter that is there already, only the value changes.
void count(std::vector<Counter>& counters, Count what, uint64_t n = 1, std::string_view detail = {});
/// Adds a counter of another log or report, by name; one that stands at 0 too.
void count(std::vector<Counter>& counters, const Counter& other);

}  // namespace reprise
