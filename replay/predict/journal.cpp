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

int64_t Journal::written(bool grown) {
    const int64_t names = std::exchange(names_, 0);
    if (names == 0 && !grown) {
        return 0;
    }
    constexpr int64_t kFrame = 2;  // a descriptor and a commit
    constexpr int64_t kSize = 1;   // of inode and bitmap: mostly those that the last commit wrote
    const int64_t written = kFrame + (grown ? kSize : 0) + (3 * names + 1) / 2;
    unknown_ += blocks_ ? 0 : written;
    return blocks_ ? written : 0;
}

bool Journal::logs(FileId file) const {
    const auto grown = [](const Size& size) { return size.now > size.synced; };
    if (file != 0) {
        const auto found = sizes_.find(file);
        return names_ != 0 || (found != sizes_.end() && grown(found->second));
    }
    return names_ != 0 ||
           std::any_of(sizes_.begin(), sizes_.end(), [&](const auto& each) { return grown(each.second); });
}

int64_t Journal::sync(FileId file) {
    const auto found = sizes_.find(file);
    const bool grown = found != sizes_.end() && found->second.now > found->second.synced;
    if (grown) {
        found->second.synced = found->second.now;
    }
    return written(grown);
}

int64_t Journal::sync_all() {
    bool grown = false;
    for (auto& [file, size] : sizes_) {
        grown = grown || size.now > size.synced;
        size.synced = size.now;
    }
    return written(grown);
}

}  // namespace reprise
