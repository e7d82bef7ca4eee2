// SPDX-License-Identifier: MIT
#include "formats/assemble/recording/request_causes.h"

#include <algorithm>
#include <iterator>

namespace reprise {
namespace {

constexpr size_t kMostPosted = size_t{1} << 16;  // of a task, that it does not take
constexpr size_t kMostPieces = size_t{1} << 16;  // of a process
constexpr size_t kMostReads = 8;                 // that a write waits for
constexpr uint32_t kMostInLine = 32'768;         // the kernel's own limit

// Counts that have gone past 2^32 as well.
bool is_after(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

}  // namespace

void TakenResults::posted(uint64_t ring, uint32_t completed, TaskId task, uint64_t op) {
    auto& posted = posted_[{ring, task}];
    if (!posted.empty() && !is_after(completed, posted.back().completed)) {
        posted.clear();  // another ring, whose context has the address of one that is gone
    }
    posted.push_back({completed, op});
    if (posted.size() > kMostPosted) {
        posted.pop_front();
    }
}

std::optional<uint64_t> TakenResults::taken(uint64_t ring, uint32_t count, TaskId task) {
    const auto found = posted_.find({ring, task});
    if (found == posted_.end()) {
        return std::nullopt;
    }
    std::optional<uint64_t> latest;
    for (auto& posted = found->second; !posted.empty() && !is_after(posted.front().completed, count);) {
        latest = posted.front().op;
        posted.pop_front();
    }
    return latest;
}

uint32_t PolledLines::came_to(uint64_t ring, uint32_t behind, uint32_t taken) {
    std::deque<uint32_t>& line = lines_[ring];
    behind = std::min(behind, kMostInLine);
    uint32_t had = taken;
    if (!line.empty() && !is_after(line.front(), taken)) {
        had = line.front();
        line.pop_front();
    } else {
        line.clear();  // another ring, whose context has the address of one that is gone
    }
    // What the kernel refused at once has no record.
    line.erase(line.begin(),
               line.begin() + static_cast<ptrdiff_t>(line.size() - std::min<size_t>(line.size(), behind)));
    line.resize(behind, taken);
    return had;
}

void FilledMemory::filled(uint64_t address, uint64_t bytes, TaskId task, uint64_t op) {
    if (address == 0 || bytes == 0 || bytes > UINT64_MAX - address) {
        return;
    }
    if (pieces_.size() >= kMostPieces) {
        pieces_.clear();
    }
    const uint64_t end = address + bytes;
    auto next = pieces_.lower_bound(address);
    if (next != pieces_.begin()) {
        Piece& before = std::prev(next)->second;
        if (before.end > end) {
            next = pieces_.emplace_hint(next, end, before);
        }
        before.end = std::min(before.end, address);
    }
    while (next != pieces_.end() && next->first < end) {
        if (next->second.end > end) {
            pieces_.insert_or_assign(end, next->second);
        }
        next = pieces_.erase(next);
    }
    pieces_.insert_or_assign(address, Piece{end, task, op});
}

std::vector<uint64_t> FilledMemory::by(uint64_t address, uint64_t bytes, TaskId task) const {
    std::vector<uint64_t> out;
    if (address == 0 || bytes == 0 || bytes > UINT64_MAX - address) {
        return out;
    }
    auto piece = pieces_.upper_bound(address);
    if (piece != pieces_.begin()) {
        --piece;
    }
    for (; piece != pieces_.end() && piece->first < address + bytes; ++piece) {
        if (piece->second.task == task && piece->second.end > address) {
            out.push_back(piece->second.op);
        }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (out.size() > kMostReads) {
        out.erase(out.begin(), out.end() - kMostReads);
    }
    return out;
}

}  // namespace reprise
