// SPDX-License-Identifier: MIT
// The marks of a process's loaders (capture --torch): those of the first are "epoch", "fetch" and "batch", of the
// second "epoch.2" and so on. Which of their epochs are those of the job is decided here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace reprise {

struct LoaderMark {
    std::string_view what;  // "epoch", "fetch" or "batch"
    uint32_t loader = 1;
};
/// None: a mark of something else.
std::optional<LoaderMark> loader_mark(std::string_view text);

/// By which marks the epochs of a job are known.
enum class EpochMarks : uint8_t {
    first,  // those of the first loader; others read something else
    every,  // of all loaders: each pass over the data set has a new one
    none,   // the first loader's are too few, and the others do not make up for it
};
/// `epochs`: how many each loader marked. `passes`: over the samples, by how often they were read; 0: not known.
EpochMarks which_epoch_marks(const std::map<uint32_t, uint64_t>& epochs, uint64_t passes);

}  // namespace reprise
