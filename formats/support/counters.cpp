// SPDX-License-Identifier: MIT
// The table of counters, and counting in a list of them.
#include "formats/support/counters.h"

#include <algorithm>
#include <iterator>

namespace reprise {
namespace {

constexpr CounterInfo kCounters[] = {
#define COUNTER(id, severity, meaning) {#id, Severity::severity, meaning, false},
#define COUNTER_FAMILY(id, prefix, severity, meaning) {prefix, Severity::severity, meaning, true},
#include "formats/support/counters.def"
#undef COUNTER
#undef COUNTER_FAMILY
};

Counter* find(std::vector<Counter>& counters, std::string_view name) {
    const auto at =
        std::find_if(counters.begin(), counters.end(), [&](const Counter& each) { return each.name == name; });
    return at == counters.end() ? nullptr : &*at;
}

}  // namespace

std::string_view severity_name(Severity severity) {
    switch (severity) {
        case Severity::note: return "note";
        case Severity::warning: return "warning";
        case Severity::loss: return "loss";
    }
    return "?";
}

std::span<const CounterInfo> all_counters() { return kCounters; }
const CounterInfo& info(Count what) { return kCounters[static_cast<size_t>(what)]; }

void count(std::vector<Counter>& counters, Count what, uint64_t n, std::string_view detail) {
    if (n == 0) {
        return;
    }
    const CounterInfo& row = info(what);
    std::string name(row.name);
    if (row.family) {
        name += detail;
    }
    if (Counter* const there = find(counters, name)) {
        there->value += n;
        return;
    }
    std::string meaning(row.meaning);
    if (const size_t hole = meaning.find("{}"); hole != std::string::npos) {
        meaning.replace(hole, 2, detail);
    }
    counters.push_back({std::move(name), row.severity, n, std::move(meaning)});
}

void count(std::vector<Counter>& counters, const Counter& other) {
    if (Counter* const there = find(counters, other.name)) {
        there->value += other.value;
    } else {
        counters.push_back(other);
    }
}

}  // namespace reprise
