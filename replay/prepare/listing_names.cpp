// SPDX-License-Identifier: MIT
#include "replay/prepare/listing_names.h"

#include <algorithm>

namespace reprise {

namespace {

constexpr std::string_view kLong = ".reprise-entry-", kShort = ".reprise";
constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr uint64_t kLongest = 255;

}  // namespace

ListingNames ListingNames::that_take(uint64_t bytes, uint64_t average) {
    constexpr uint64_t kUnknown = 32;
    ListingNames out;
    uint64_t record =
        average == 0 ? kUnknown : std::clamp(average / 8 * 8, listed_bytes(kShort.size()), listed_bytes(kLongest));
    for (;; record += 8) {
        out.length_ = std::min<uint64_t>(record - 20, kLongest);
        out.count_ = (bytes + record / 2) / record;
        out.choose_prefix();
        if (out.suffices()) {
            return out;
        }
    }
}

ListingNames ListingNames::so_many(uint64_t count, uint64_t length) {
    ListingNames out;
    out.count_ = count;
    out.length_ = std::clamp<uint64_t>(length, kShort.size(), kLongest);
    for (out.choose_prefix(); !out.suffices(); out.choose_prefix()) {
        ++out.length_;
    }
    return out;
}

void ListingNames::choose_prefix() { prefix_ = length_ >= kLong.size() + 6 ? kLong : kShort; }

bool ListingNames::suffices() const {
    uint64_t names = 1;
    for (uint64_t i = prefix_.size(); i < length_ && names <= count_; ++i) {
        names *= kDigits.size();
    }
    return names > count_;
}

std::string ListingNames::name(uint64_t number) const {
    std::string out(length_, kDigits[0]);
    out.replace(0, prefix_.size(), prefix_);
    for (size_t at = length_; number > 0; number /= kDigits.size()) {
        out[--at] = kDigits[number % kDigits.size()];
    }
    return out;
}

}  // namespace reprise
