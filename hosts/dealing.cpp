// SPDX-License-Identifier: MIT
#include "hosts/dealing.h"

#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {

uint32_t copies_for(uint32_t recorded, uint32_t asked, uint32_t size) {
    const uint64_t all = uint64_t{recorded} * asked;
    if (all >= size) {
        return asked;
    }
    if (asked == 1 && size % recorded == 0) {
        return size / recorded;
    }
    const std::string job = asked == 1 ? "the job has " : "--gpus " + std::to_string(asked) + " has ";
    throw usage_error(std::to_string(size) + " ranks were started, but " + job + std::to_string(all) + " to perform",
                      "start " + std::to_string(all) + " ranks (mpirun -n " + std::to_string(all) +
                          "), or, for copies " + "of the job, a multiple of " + std::to_string(recorded));
}

std::vector<uint32_t> deal(const RecordedRanks& recorded, uint32_t size) {
    std::vector<uint32_t> ranks;
    ranks.reserve(recorded.of_process.size());
    for (const uint32_t rank : recorded.of_process) {
        ranks.push_back(rank == kNoRank ? 0 : rank % size);
    }
    return ranks;
}

std::string dealt_to(const RecordedRanks& recorded, uint32_t size, uint32_t rank) {
    constexpr uint32_t kShown = 4;
    std::string text;
    uint32_t count = 0;
    for (uint32_t one = rank; one < recorded.count; one += size) {
        if (++count <= kShown) {
            text += (text.empty() ? "" : " ") + std::to_string(one);
        }
    }
    return count > kShown ? text + " ... (" + std::to_string(count) + ")" : text;
}

}  // namespace reprise
