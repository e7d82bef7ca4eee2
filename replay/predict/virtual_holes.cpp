// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_holes.h"

namespace reprise {
namespace {

constexpr auto kPage = static_cast<int64_t>(RangeSet::kPage);

uint64_t within(int64_t offset) { return static_cast<uint64_t>(std::clamp<int64_t>(offset, 0, VirtualHoles::kEnd)); }

}  // namespace

std::optional<RangeSet>& VirtualHoles::of(FileId file) {
    const auto [found, fresh] = files_.try_emplace(file);
    if (fresh && first_) {
        found->second = first_(file);
    }
    return found->second;
}

void VirtualHoles::make(FileId file, int64_t from, int64_t to) {
    std::optional<RangeSet>& holes = of(file);
    // Of all of a file everything is known.
    if (!holes && from <= 0 && to >= kEnd) {
        holes.emplace();
    }
    const int64_t first = (std::clamp<int64_t>(from, 0, kEnd) + kPage - 1) / kPage * kPage;
    const int64_t last = std::clamp<int64_t>(to, 0, kEnd) / kPage * kPage;
    if (holes && first < last) {
        holes->add(static_cast<uint64_t>(first), static_cast<uint64_t>(last));
    }
}

void VirtualHoles::fill(FileId file, int64_t from, int64_t to) {
    if (std::optional<RangeSet>& holes = of(file); holes && !holes->empty()) {
        holes->remove(within(from) / RangeSet::kPage * RangeSet::kPage,
                      (within(to) + RangeSet::kPage - 1) / RangeSet::kPage * RangeSet::kPage);
        if (holes->count() > RangeSet::kMost) {
            holes.reset();
        }
    }
}

bool VirtualHoles::is_hole(FileId file, int64_t offset) {
    const std::optional<RangeSet>& holes = of(file);
    return holes && holes->contains(within(offset));
}

}  // namespace reprise
