// SPDX-License-Identifier: MIT
// Which processes of a log belong to which rank of the recorded job (MPI, torchrun, Slurm, copies of --gpus).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/oplog/tables.h"

namespace reprise {

inline constexpr uint32_t kNoRank = UINT32_MAX;  // a launcher, or nobody said

struct RecordedRanks {
    uint32_t count = 1;
    std::vector<uint32_t> of_process;  // by ProcessId; row 0: kNoRank
    std::string how;                   // for people: where the ranks are known from
};

/// The ranks that the header states (fact::ranks). A process that it does not name has its parent's. Where none is
/// stated: processes that several hosts ran are a rank per root process; else the job is one rank.
RecordedRanks recorded_ranks(const Header& header, const Tables& tables);

/// States them: `of_process` by ProcessId, kNoRank for none. Only rows that differ from their parent's are stored.
void write_ranks(Header& header, const Tables& tables, std::span<const uint32_t> of_process);

}  // namespace reprise
