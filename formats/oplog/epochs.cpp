// SPDX-License-Identifier: MIT
#include "formats/oplog/epochs.h"

#include <algorithm>
#include <utility>

namespace reprise {

uint32_t EpochNumbers::count(uint32_t epoch) {
    if (epoch >= epochs_.size()) {
        epochs_.resize(size_t{epoch} + 1);
    }
    ++reads_;
    ++epochs_[epoch];
    late_ += epoch < latest_ ? 1 : 0;
    // It has begun once more than a few have come back.
    latest_ = epochs_[epoch] > 2 + few_ ? std::max(latest_, epoch) : latest_;
    return epoch;
}

std::vector<uint64_t> EpochNumbers::finish() {
    while (epochs_.size() > 1 && epochs_.back() <= 1 + few_) {
        epochs_[epochs_.size() - 2] += epochs_.back();
        epochs_.pop_back();
    }
    last_ = static_cast<uint32_t>(std::max<size_t>(epochs_.size(), 1) - 1);
    return std::exchange(epochs_, {});
}

}  // namespace reprise
