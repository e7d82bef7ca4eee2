// SPDX-License-Identifier: MIT
// The bytes of one file, by where they come from.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "replay/content/content.h"
#include "replay/content/file_model.h"
#include "replay/content/written.h"

namespace reprise {
namespace {

/// Any bytes of what fill_random() makes in whole units.
void fill_prepared(uint64_t seed, uint64_t offset, std::span<std::byte> out) {
    const uint64_t begin = offset / kContentUnit * kContentUnit;
    if (begin == offset) {
        fill_random(seed, offset, out);
        return;
    }
    std::vector<std::byte> first(std::min<uint64_t>(offset - begin + out.size(), kContentUnit));
    fill_random(seed, begin, first);
    const size_t bytes = first.size() - static_cast<size_t>(offset - begin);
    std::memcpy(out.data(), first.data() + (offset - begin), bytes);
    fill_random(seed, begin + kContentUnit, out.subspan(bytes));
}

}  // namespace

void fill_from(const Source& source, uint64_t from, std::span<std::byte> out) {
    switch (source.is) {
        case Source::Is::prepared: fill_prepared(source.seed, from + source.shift, out); return;
        case Source::Is::written: fill_written(source.seed, from + source.shift, out); return;
        case Source::Is::zeros:
        case Source::Is::unknown: std::fill(out.begin(), out.end(), std::byte{0}); return;
    }
}

void Extents::split(uint64_t at) {
    const auto after = extents_.upper_bound(at);
    if (after == extents_.begin()) {
        return;
    }
    const auto before = std::prev(after);
    if (before->first < at && before->second.to > at) {
        extents_.emplace_hint(after, at, before->second);
        before->second.to = at;
    }
}

void Extents::put(uint64_t from, uint64_t to, const Source& source) {
    if (from >= to) {
        return;
    }
    split(from);
    split(to);
    extents_.erase(extents_.lower_bound(from), extents_.lower_bound(to));
    extents_[from] = {to, source};
}

void Extents::cut(uint64_t size) {
    split(size);
    extents_.erase(extents_.lower_bound(size), extents_.end());
}

std::vector<Extent> Extents::of(uint64_t from, uint64_t to) const {
    std::vector<Extent> out;
    auto next = extents_.upper_bound(from);
    if (next != extents_.begin() && std::prev(next)->second.to > from) {
        --next;
    }
    while (from < to) {
        if (next == extents_.end() || next->first >= to) {
            out.push_back({from, to, {}});
            break;
        }
        if (next->first > from) {
            out.push_back({from, next->first, {}});
            from = next->first;
        }
        const uint64_t end = std::min(next->second.to, to);
        out.push_back({from, end, next->second.source});
        from = end;
        ++next;
    }
    return out;
}

}  // namespace reprise
