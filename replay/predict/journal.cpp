// SPDX-License-Identifier: MIT
#include "replay/predict/journal.h"

#include <algorithm>
#include <utility>

namespace reprise {
namespace {

constexpr int64_t kMostEnd = int64_t{1} << 60;  // malformed logs have larger ones

}  // namespace

void Journal::wrote(FileId file, int64_t size, int64_t offset, int64_t bytes) {
    Size& of = sizes_.try_emplace(file, Size{size, size}).first->second;
    const int64_t from = std::min(offset < 0 ? of.now : offset, kMostEnd);
    of.now = std::max(of.now, from + std::clamp<int64_t>(bytes, 0, kMostEnd));
}

Journal::Logged Journal::logged(bool grown) {
    const int64_t names = std::exchange(names_, 0);
    if (names == 0 && !grown) {
        return {};
    }
    constexpr int64_t kFrame = 2;  // a descriptor and a commit
    constexpr int64_t kSize = 1;   // of inode and bitmap: mostly those that the last commit wrote
    const int64_t written = kFrame + (grown ? kSize : 0) + (3 * names + 1) / 2;
    unknown_ += blocks_ ? 0 : written;
    return {true, blocks_ ? written : 0};
}

Journal::Logged Journal::sync(FileId file) {
    const auto found = sizes_.find(file);
    const bool grown = found != sizes_.end() && found->second.now > found->second.synced;
    if (grown) {
        found->second.synced = found->second.now;
    }
    return logged(grown);
}

Journal::Logged Journal::sync_all() {
    bool grown = false;
    for (auto& [file, size] : sizes_) {
        grown = grown || size.now > size.synced;
        size.synced = size.now;
    }
    return logged(grown);
}

}  // namespace reprise
