// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/ranks.h"

#include <algorithm>
#include <vector>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/ranks.h"

namespace reprise {

void RawRanks::see(const raw_rank& record, ProcessId process) {
    if (record.rank >= kMost || record.world > kMost || process == 0) {
        return;
    }
    ranks_[process] = record.rank;
    world_ = std::max(world_, record.world);
    for (const raw_part& part : RawParts(record.head)) {
        if (part.type == RAW_PART_STRING && part.which <= 1) {
            std::string& into = part.which == 0 ? source_ : job_;
            into = into.empty() ? std::string(raw_part_text(part)) : into;
        }
    }
}

void RawRanks::mark(ProcessId process, std::string_view name, int64_t number) {
    if (number < 0 || number >= kMost || process == 0) {
        return;
    }
    if (name == "reprise.rank") {
        ranks_[process] = static_cast<uint32_t>(number);
        source_ = source_.empty() ? "marks of the job" : source_;
    } else if (name == "reprise.world") {
        world_ = std::max(world_, static_cast<uint32_t>(number));
    }
}

void RawRanks::write(Header& header, const Tables& tables) const {
    if (ranks_.empty()) {
        return;
    }
    const uint32_t first = ranks_.begin()->second;
    const bool one = std::all_of(ranks_.begin(), ranks_.end(), [&](const auto& each) { return each.second == first; });
    if (one && world_ <= 1) {
        return;
    }
    // A recorder that was started as one of the ranks: all it records is of that rank.
    bool all = one;
    for (ProcessId process = 1; process < tables.processes.size(); ++process) {
        all = all && (tables.processes[process].parent != 0 || ranks_.contains(process));
    }
    write_fact(header, fact::ranks_source, source_);
    if (world_ != 0) {
        write_fact(header, fact::ranks_world, world_);
    }
    if (!job_.empty()) {
        write_fact(header, fact::ranks_job, job_);
    }
    if (all) {
        return write_fact(header, fact::rank, first);
    }
    std::vector<uint32_t> of_process(tables.processes.size(), kNoRank);
    for (ProcessId process = 1; process < of_process.size(); ++process) {
        const auto stated = ranks_.find(process);
        const ProcessId parent = tables.processes[process].parent;
        of_process[process] = stated != ranks_.end() ? stated->second : parent < process ? of_process[parent] : kNoRank;
    }
    write_ranks(header, tables, of_process);
}

}  // namespace reprise
