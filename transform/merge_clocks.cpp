// SPDX-License-Identifier: MIT
#include "transform/merge_clocks.h"

#include <algorithm>

#include "formats/oplog/header_facts.h"

namespace reprise {
namespace {

/// Names a clock: the boot of a machine; empty: not known, so that only the wall clock can do.
std::string boot_of(const Header& header) {
    const auto boot = read_fact(header, fact::boot);
    return boot && read_fact(header, fact::origin_monotonic) ? *boot : std::string();
}

}  // namespace

MergeClocks::MergeClocks(const std::vector<const Header*>& headers) {
    std::map<std::string, size_t> known;
    std::vector<int64_t> monotonic_to_first;  // by clock: what turns CLOCK_MONOTONIC of it into the first log's time
    const Header& first = *headers.front();
    for (const Header* header : headers) {
        const std::string boot = boot_of(*header);
        const int64_t monotonic = read_fact(*header, fact::origin_monotonic).value_or(0);
        const auto found = boot.empty() ? known.end() : known.find(boot);
        if (found != known.end()) {
            clock_of_.push_back(found->second);
            offsets_.push_back(monotonic + monotonic_to_first[found->second]);
            continue;
        }
        const bool is_first = clocks_.empty();
        const int64_t offset = is_first ? 0 : header->origin_unix_ns - first.origin_unix_ns;
        Clock clock;
        clock.by_wall = !is_first;
        const auto mine = read_fact(*header, fact::clock_error), theirs = read_fact(first, fact::clock_error);
        if (mine && theirs) {
            clock.wall_error = *mine + *theirs;
        }
        if (!boot.empty()) {
            known[boot] = clocks_.size();
        }
        clock_of_.push_back(clocks_.size());
        offsets_.push_back(offset);
        clocks_.push_back(clock);
        monotonic_to_first.push_back(offset - monotonic);
    }
}

void MergeClocks::see(size_t from, size_t to, int64_t sent, int64_t received) {
    const size_t a = clock_of_[from], b = clock_of_[to];
    if (a == b) {
        return;
    }
    const int64_t needed = (sent + offsets_[from]) - (received + offsets_[to]) + 1;  // it was sent before that
    const auto [at, is_new] = least_.try_emplace({a, b}, needed);
    at->second = std::max(at->second, needed);
}

void MergeClocks::correct() {
    // Of clocks that drift no setting obeys all messages: then the rounds end, and what is left is dropped.
    for (size_t round = 0; round < clocks_.size() * clocks_.size() + 1; ++round) {
        bool moved = false;
        for (const auto& [pair, needed] : least_) {
            const auto& [a, b] = pair;
            const int64_t missing = needed - (clocks_[b].moved - clocks_[a].moved);
            if (missing <= 0) {
                continue;
            }
            moved = true;
            if (b != 0) {
                clocks_[b].moved += missing;
            } else {
                clocks_[a].moved -= missing;
            }
        }
        if (!moved) {
            return;
        }
    }
}

std::optional<int64_t> MergeClocks::error(size_t log) const {
    const size_t clock = clock_of_[log];
    if (clock == 0) {
        return 0;
    }
    std::optional<int64_t> error = clocks_[clock].wall_error;
    // Messages both ways leave the clock a window.
    const auto there = least_.find({0, clock}), back = least_.find({clock, 0});
    if (there != least_.end() && back != least_.end()) {
        const int64_t now = clocks_[clock].moved;
        const int64_t window = std::max(now - there->second, -back->second - now);
        error = std::min(error.value_or(INT64_MAX), std::max<int64_t>(window, 0));
    }
    return error;
}

std::string MergeClocks::how(size_t log) const {
    const Clock& clock = clocks_[clock_of_[log]];
    if (!clock.by_wall) {
        return "same clock";
    }
    return clock.moved != 0 ? "wall clock, corrected by messages" : "wall clock";
}

}  // namespace reprise
