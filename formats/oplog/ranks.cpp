// SPDX-License-Identifier: MIT
#include "formats/oplog/ranks.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "formats/oplog/header_facts.h"

namespace reprise {
namespace {

/// `PROCESS:RANK` pairs, by spaces; false where the text is not that.
bool read_pairs(std::string_view text, std::vector<uint32_t>& of_process) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        ProcessId process = 0;
        uint32_t rank = 0;
        auto step = std::from_chars(at, end, process);
        if (step.ec != std::errc() || step.ptr == end || *step.ptr != ':') {
            return false;
        }
        step = std::from_chars(step.ptr + 1, end, rank);
        if (step.ec != std::errc() || (step.ptr != end && *step.ptr != ' ') || process == 0 ||
            process >= of_process.size() || rank >= of_process.size()) {
            return false;
        }
        of_process[process] = rank;
        at = step.ptr == end ? end : step.ptr + 1;
    }
    return true;
}

/// Of processes without a rank of their own, that of the nearest ancestor with one.
void inherit(const Tables& tables, std::vector<uint32_t>& of_process) {
    const std::vector<uint32_t> stated = of_process;
    for (ProcessId process = 1; process < of_process.size(); ++process) {
        ProcessId from = process;
        // As many steps as there are processes: a damaged table may hold a circle.
        for (size_t steps = 0; stated[from] == kNoRank && from != 0 && steps < stated.size(); ++steps) {
            from = tables.processes[from].parent < stated.size() ? tables.processes[from].parent : ProcessId{0};
        }
        of_process[process] = stated[from];
    }
}

uint32_t count_of(const std::vector<uint32_t>& of_process) {
    uint32_t count = 1;
    for (const uint32_t rank : of_process) {
        count = rank == kNoRank ? count : std::max(count, rank + 1);
    }
    return count;
}

}  // namespace

RecordedRanks recorded_ranks(const Header& header, const Tables& tables) {
    RecordedRanks ranks;
    ranks.of_process.assign(tables.processes.size(), kNoRank);
    if (const auto text = read_fact(header, fact::ranks); text && read_pairs(*text, ranks.of_process)) {
        inherit(tables, ranks.of_process);
        ranks.count = count_of(ranks.of_process);
        ranks.how = "as recorded";
        return ranks;
    }
    std::set<StringId> hosts;
    for (ProcessId process = 1; process < tables.processes.size(); ++process) {
        hosts.insert(tables.processes[process].host);
    }
    std::fill(ranks.of_process.begin(), ranks.of_process.end(), kNoRank);
    const bool several = hosts.size() > 1;
    uint32_t next = 0;
    for (ProcessId process = 1; process < tables.processes.size(); ++process) {
        if (tables.processes[process].parent == 0) {
            ranks.of_process[process] = several ? next++ : 0;
        }
    }
    inherit(tables, ranks.of_process);
    ranks.count = count_of(ranks.of_process);
    ranks.how = several ? "a rank per root process, as several hosts ran the job" : "one rank: the log names no others";
    return ranks;
}

void write_ranks(Header& header, const Tables& tables, std::span<const uint32_t> of_process) {
    std::string text;
    for (ProcessId process = 1; process < of_process.size(); ++process) {
        const ProcessId parent = tables.processes[process].parent;
        const uint32_t inherited = parent < process ? of_process[parent] : kNoRank;
        if (of_process[process] != kNoRank && of_process[process] != inherited) {
            text += (text.empty() ? "" : " ") + std::to_string(process) + ":" + std::to_string(of_process[process]);
        }
    }
    write_fact(header, fact::ranks, text);
}

}  // namespace reprise
