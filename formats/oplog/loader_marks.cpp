// SPDX-License-Identifier: MIT
#include "formats/oplog/loader_marks.h"

#include <charconv>

namespace reprise {

std::optional<LoaderMark> loader_mark(std::string_view text) {
    const size_t point = text.find('.');
    LoaderMark mark{text.substr(0, point), 1};
    if (mark.what != "epoch" && mark.what != "fetch" && mark.what != "batch") {
        return std::nullopt;
    }
    if (point != text.npos) {
        const char* const end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data() + point + 1, end, mark.loader);
        if (error != std::errc() || at != end || mark.loader < 2) {
            return std::nullopt;
        }
    }
    return mark;
}

EpochMarks which_epoch_marks(const std::map<uint32_t, uint64_t>& epochs, uint64_t passes) {
    const auto first = epochs.find(1);
    if (epochs.size() < 2 || first == epochs.end() || first->second >= passes) {
        return EpochMarks::first;
    }
    uint64_t all = 0;
    for (const auto& [loader, count] : epochs) {
        all += count;
    }
    return all == passes ? EpochMarks::every : EpochMarks::none;
}

}  // namespace reprise
