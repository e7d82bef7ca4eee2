// SPDX-License-Identifier: MIT
#include "replay/run/free_memory.h"

#include <algorithm>
#include <filesystem>

namespace reprise {
namespace {

namespace fs = std::filesystem;

/// What the limit of one group leaves.
std::optional<uint64_t> free_of(const fs::path& group) {
    auto limit = number_in(group / "memory.max"), usage = number_in(group / "memory.current");
    uint64_t cache = number_in(group / "memory.stat", "file").value_or(0);
    if (!usage) {  // version 1
        limit = number_in(group / "memory.limit_in_bytes");
        usage = number_in(group / "memory.usage_in_bytes");
        cache = number_in(group / "memory.stat", "total_cache").value_or(0);
    }
    if (!limit || !usage) {
        return std::nullopt;
    }
    const uint64_t held = *usage - std::min(*usage, cache);
    return *limit - std::min(*limit, held);
}

std::optional<uint64_t> lesser(std::optional<uint64_t> a, std::optional<uint64_t> b) {
    return !a ? b : !b ? a : std::min(a, b);
}

}  // namespace

std::optional<uint64_t> free_of_groups(const OwnGroup& group) {
    std::optional<uint64_t> least = free_of(group.mount);
    for (fs::path at = group.folder; at != group.mount && at.has_relative_path(); at = at.parent_path()) {
        least = lesser(least, free_of(at));
    }
    return least;
}

std::optional<uint64_t> free_memory() {
    constexpr uint64_t kKiB = 1024;
    std::optional<uint64_t> least;
    if (const auto available = number_in("/proc/meminfo", "MemAvailable:")) {
        least = *available * kKiB;
    }
    const GroupTexts texts = read_group_texts();
    for (const auto& group : {own_group_of("memory", texts), own_unified_group(texts)}) {
        least = group ? lesser(least, free_of_groups(*group)) : least;
    }
    return least;
}

}  // namespace reprise
