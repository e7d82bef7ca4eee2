// SPDX-License-Identifier: MIT
#include "replay/plan/fault_reach.h"

#include "formats/oplog/touched.h"

namespace reprise {

bool came_with_fault(const Plan& plan, FileId file, int64_t last, int64_t at, bool if_unknown) {
    if (!comes_with_fault(last, at)) {
        return false;
    }
    const auto found = plan.fetched ? plan.fetched->find(file) : FetchedPages::const_iterator{};
    if (!plan.fetched || found == plan.fetched->end()) {
        return if_unknown;
    }
    const auto ranges = found->second.ranges_from(static_cast<uint64_t>(last));
    if (ranges.begin() == ranges.end()) {
        return false;
    }
    const auto [from, to] = *ranges.begin();
    return from <= static_cast<uint64_t>(last) && to >= static_cast<uint64_t>(at);
}

}  // namespace reprise
