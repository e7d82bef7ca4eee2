// SPDX-License-Identifier: MIT
// In which epoch each access to a sample of a recording was.
#include <algorithm>

#include "formats/oplog/epochs.h"
#include "transform/scale_random.h"
#include "transform/scale_recording.h"

namespace reprise {

/// Pages that were touched once are touched again only by another process: an epoch ends where all processes that
/// touched any have come to the end of theirs before others begin.
std::vector<uint32_t> ScaleRecording::epochs_by_process() const {
    std::vector<std::pair<int64_t, int64_t>> spans(tables_.processes.size(), {INT64_MAX, INT64_MIN});
    std::vector<ProcessId> order;
    for (const SampleUnit& unit : units_) {
        const ProcessId process = tables_.tasks[unit.task].process;
        if (unit.bytes > 0 && touched(unit.file) && process < spans.size()) {
            auto& [first, last] = spans[process];
            if (first == INT64_MAX) {
                first = unit.begin;
                order.push_back(process);
            }
            last = unit.begin;
        }
    }
    std::vector<uint32_t> epochs(tables_.processes.size());
    int64_t end = INT64_MAX;
    uint32_t epoch = 0;
    for (const ProcessId process : order) {
        epoch += spans[process].first > end ? 1 : 0;
        end = spans[process].first > end || end == INT64_MAX ? spans[process].second
                                                             : std::max(end, spans[process].second);
        epochs[process] = epoch;
    }
    return epochs;
}

/// Where one process has all epochs, uses of pages that were mapped already (capture --with mapped-uses) show them:
/// each page is used once an epoch. False: that does not look like epochs, as where several samples lie in a page.
bool ScaleRecording::find_passes(const std::vector<uint32_t>& by_process) {
    constexpr int64_t kPage = 4096;
    std::vector<PageUse> uses;
    std::vector<uint32_t> used;  // how often, by page
    std::unordered_map<uint64_t, uint32_t> pages;
    for (uint32_t number = 0; number < units_.size(); ++number) {
        const SampleUnit& unit = units_[number];
        if (unit.bytes == 0 || !touched(unit.file)) {
            continue;
        }
        if (by_process[tables_.tasks[unit.task].process] != 0) {
            return false;
        }
        // Of those that faulted, what lies between may be others'.
        for (int64_t at = 0; at < (unit.again ? unit.bytes : kPage); at += kPage) {
            const uint64_t key = mixed(unit.file, static_cast<uint64_t>((unit.offset + at) / kPage));
            const uint32_t page = pages.try_emplace(key, static_cast<uint32_t>(used.size())).first->second;
            used.resize(std::max<size_t>(used.size(), page + size_t{1}));
            uses.push_back({number, page, used[page]++});
        }
    }
    return set_passes(uses, used.size());
}

/// Ends a pass where the fewest uses are out of place: second ones before, first ones after. A page that was not used
/// in a pass was not seen: faults map pages around, and uses in the same sample of the recorder are not known.
bool ScaleRecording::set_passes(const std::vector<PageUse>& uses, size_t pages) {
    constexpr uint64_t kOneTwice = 5, kOneUnseen = 3;
    std::vector<uint32_t> unseen(pages);
    const auto before = [&](const PageUse& use) { return use.before + unseen[use.page]; };
    uint64_t twice = 0, missed = 0;
    uint32_t pass = 0;
    for (size_t start = 0; start < uses.size(); ++pass) {
        const size_t last = std::min(uses.size(), start + 3 * pages);
        uint64_t out = 0;
        for (size_t i = start; i < last; ++i) {
            out += before(uses[i]) <= pass ? 1 : 0;
        }
        size_t end = start;
        for (size_t i = start, least = out; i < last; ++i) {
            out += before(uses[i]) > pass ? 1 : uint64_t{0} - 1;
            if (out < least) {
                least = out;
                end = i + 1;
            }
        }
        end = uses.size() - end < pages / 2 ? uses.size() : std::max(end, start + 1);
        for (size_t i = start; i < end; ++i) {
            units_[uses[i].unit].epoch = pass;
            twice += before(uses[i]) > pass ? 1 : 0;
        }
        for (size_t i = end; i < std::min(uses.size(), end + 2 * pages); ++i) {
            if (before(uses[i]) <= pass) {
                unseen[uses[i].page] += pass + 1 - before(uses[i]);
                ++missed;
            }
        }
        start = end;
    }
    return pass > 1 && twice * kOneTwice < uses.size() && (twice + missed) * kOneUnseen < uses.size();
}

void ScaleRecording::number_epochs() {
    sort_units();
    const std::vector<uint32_t> by_process = epochs_by_process();
    const bool passes = find_passes(by_process);
    const auto key_of_unit = [&](const SampleUnit& unit) {
        return class_of(unit.file) == SampleClass::records ? mixed(unit.file, static_cast<uint64_t>(unit.offset))
                                                           : uint64_t{unit.file};
    };
    std::unordered_map<uint64_t, uint32_t> uses;
    for (const SampleUnit& unit : units_) {
        uses[key_of_unit(unit)] += unit.bytes > 0 && (passes || !touched(unit.file)) ? 1 : 0;
    }
    // What is read far more often than others is no sample, but leads to them.
    std::vector<uint32_t> counts;
    counts.reserve(uses.size());
    for (const auto& [key, count] : uses) {
        counts.push_back(count);
    }
    std::sort(counts.begin(), counts.end());
    const uint32_t most = counts.empty() ? 0 : counts[counts.size() / 2] * 2 + 1;
    EpochNumbers numbers(uses.size());
    std::vector<uint8_t> read(facts_.size());
    uint64_t reads = 0;
    for (uint32_t number = 0; number < units_.size(); ++number) {
        SampleUnit& unit = units_[number];
        if (unit.bytes > 0 && class_of(unit.file) == SampleClass::records && (passes || !touched(unit.file)) &&
            uses[key_of_unit(unit)] > most) {
            unit.bytes = 0;
        }
        tasks_[unit.task].units.push_back(number);
        if (unit.bytes == 0) {
            continue;
        }
        unit.epoch = !touched(unit.file) ? numbers.read(key_of_unit(unit))
                     : passes            ? numbers.count(unit.epoch)
                                         : numbers.count(by_process[tables_.tasks[unit.task].process]);
        ++reads;
        files_read_ += read[unit.file] == 0 ? 1 : 0;
        read[unit.file] = 1;
    }
    epochs_ = numbers.finish();
    for (SampleUnit& unit : units_) {
        unit.epoch = std::min(unit.epoch, numbers.last());
    }
    count_early();
    late_share_ = numbers.late_share();
    find_indexes(reads);
}

void ScaleRecording::count_early() {
    early_.assign(epochs_.size(), 0);
    std::vector<uint64_t> so_far(epochs_.size());
    for (const SampleUnit& unit : units_) {
        if (unit.bytes > 0) {
            ++so_far[unit.epoch];
            const size_t next = unit.epoch + size_t{1};
            if (next < epochs_.size() && so_far[unit.epoch] == (epochs_[unit.epoch] + 1) / 2) {
                early_[next] = so_far[next];
            }
        }
    }
}

}  // namespace reprise
