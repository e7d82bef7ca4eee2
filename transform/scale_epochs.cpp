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

/// Where one process has all epochs, uses of pages that were mapped already (capture --with mapped-uses) show them: an
/// epoch ends where as many pages are still to be used as have begun their next one. False: that does not look like
/// epochs, as where several samples lie in a page.
bool ScaleRecording::find_passes(const std::vector<uint32_t>& by_process) {
    constexpr int64_t kPage = 4096;
    constexpr size_t kMostPasses = 1000;
    struct Use {
        uint32_t unit, before;  // how often its page was used
    };
    std::vector<Use> uses;
    std::vector<uint64_t> pages;  // by how often they were used before
    std::unordered_map<uint64_t, uint32_t> seen;
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
            const auto page = static_cast<uint64_t>((unit.offset + at) / kPage);
            const uint32_t before = std::min<uint32_t>(seen[mixed(unit.file, page)]++, kMostPasses);
            pages.resize(std::max<size_t>(pages.size(), before + size_t{1}));
            ++pages[before];
            uses.push_back({number, before});
        }
    }
    uint32_t passes = 0;
    while (passes < pages.size() && passes < kMostPasses && pages[passes] * 2 >= pages[0]) {
        ++passes;
    }
    return passes > 1 && set_passes(uses, pages, passes);
}

/// False: more than one use in five is not in the epoch that its page's uses say.
template <class Use>
bool ScaleRecording::set_passes(const std::vector<Use>& uses, const std::vector<uint64_t>& pages, uint32_t passes) {
    constexpr uint64_t kOneIn = 5;
    uint64_t others = 0;
    uint32_t pass = 0;
    uint64_t left = pages[0], begun = 0;  // of the pass at hand, and of the next one
    for (const Use& use : uses) {
        left -= use.before == pass && left > 0 ? 1 : 0;
        begun += use.before == pass + 1 ? 1 : 0;
        if (pass + 1 < passes && begun > left) {
            ++pass;
            left = pages[pass] - std::min(begun, pages[pass]);
            begun = 0;
        }
        units_[use.unit].epoch = pass;
        others += std::min(use.before, passes - 1) != pass ? 1 : 0;
    }
    return others * kOneIn < uses.size();
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
