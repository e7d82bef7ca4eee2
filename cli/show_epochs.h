// SPDX-License-Identifier: MIT
// What each epoch of a run asked for, and what of it the storage served.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/table.h"
#include "replay/run/epoch_proof.h"

namespace reprise::cli {

/// A row before the first epoch, and one for each. `asked`: bytes of files on storage, in the same order.
Table epochs_table(const std::vector<EpochProof>& epochs, const std::vector<uint64_t>& asked);

/// "2 and 3 of 3 never reached the storage: ..."; where all did and that was `limited` to, "1: 99 % from the device in
/// 1.2 s; ...". Empty: nothing to say, or none did, as the first lines say then.
std::string epochs_line(const std::vector<EpochProof>& epochs, const std::vector<uint64_t>& asked, bool limited);

}  // namespace reprise::cli
