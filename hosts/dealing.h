// SPDX-License-Identifier: MIT
// Which rank of a replay performs which recorded rank, and how many copies of the job there are to perform.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/oplog/ranks.h"

namespace reprise {

/// How many copies of a job of `recorded` ranks `size` ranks perform, where the command line asks for `asked` (1: it
/// asks for none). Throws Error (usage) where some rank would have nothing to do.
uint32_t copies_for(uint32_t recorded, uint32_t asked, uint32_t size);

/// By process: recorded rank r goes to rank r mod `size`, processes of no rank to rank 0.
std::vector<uint32_t> deal(const RecordedRanks& recorded, uint32_t size);

/// The recorded ranks of one rank, "0 4"; long lists are cut: "0 4 8 ... (128)".
std::string dealt_to(const RecordedRanks& recorded, uint32_t size, uint32_t rank);

}  // namespace reprise
