// SPDX-License-Identifier: MIT
#include "replay/plan/computing.h"

namespace reprise {

void ComputeLoad::coarsen() {
    for (size_t i = 0; i < bins_.size(); ++i) {
        const double value = bins_[i];
        bins_[i] = 0;
        bins_[i / 2] += value;
    }
    bins_.resize((bins_.size() + 1) / 2);
    width_ *= 2;
}

void ComputeLoad::add(int64_t begin, int64_t duration) {
    int64_t end = 0;
    // Hostile times would only make the stretches so long that they say nothing.
    if (duration <= 0 || begin < first_ || __builtin_sub_overflow(begin, first_, &begin) ||
        __builtin_add_overflow(begin, duration, &end)) {
        return;
    }
    while (end / width_ >= static_cast<int64_t>(kMostBins)) {
        coarsen();
    }
    const auto last = static_cast<size_t>(end / width_);
    if (last >= bins_.size()) {
        bins_.resize(last + 1);
    }
    for (int64_t left = duration; left > 0;) {
        const int64_t bin = begin / width_;
        const int64_t here = std::min(left, (bin + 1) * width_ - begin);
        bins_[static_cast<size_t>(bin)] += static_cast<double>(here);
        begin += here;
        left -= here;
    }
}

double ComputeLoad::peak() const {
    const double most = bins_.empty() ? 0.0 : *std::max_element(bins_.begin(), bins_.end());
    return most / static_cast<double>(width_);
}

}  // namespace reprise
