// SPDX-License-Identifier: MIT
// Finds rows by their text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {

/// Rows are numbered by their owner; `text_of(row)` is the text of one. Open addressing with part of the hash in the
/// slot: 16 to 32 bytes and one cache miss per row of a table with millions of them, where a table of nodes takes
/// several times that.
template <class TextOf>
class TextIndex {
public:
    static constexpr uint32_t kNone = UINT32_MAX;

    explicit TextIndex(TextOf text_of) : text_of_(std::move(text_of)) {}

    void reserve(size_t rows) {
        size_t slots = 64;
        while (slots < rows * 2) {
            slots *= 2;
        }
        if (slots > slots_.size()) {
            rehash(slots);
        }
    }
    /// The row of that text; kNone: there is none.
    uint32_t find(std::string_view text) const {
        if (slots_.empty()) {
            return kNone;
        }
        const size_t hash = std::hash<std::string_view>()(text);
        const auto tag = static_cast<uint32_t>(hash >> 32);
        for (size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Slot& slot = slots_[at];
            if (slot.row == kNone || (slot.tag == tag && text_of_(slot.row) == text)) {
                return slot.row;
            }
        }
    }
    /// The row of that text, or `fresh` after noting that it is about to be the row of that text.
    uint32_t find_or_add(std::string_view text, uint32_t fresh) {
        reserve(++used_);
        const size_t hash = std::hash<std::string_view>()(text);
        const auto tag = static_cast<uint32_t>(hash >> 32);
        for (size_t at = hash & mask();; at = (at + 1) & mask()) {
            Slot& slot = slots_[at];
            if (slot.row == kNone) {
                slot = {tag, fresh};
                return fresh;
            }
            if (slot.tag == tag && text_of_(slot.row) == text) {
                --used_;
                return slot.row;
            }
        }
    }

private:
    struct Slot {
        uint32_t tag = 0;
        uint32_t row = kNone;
    };
    size_t mask() const { return slots_.size() - 1; }
    void rehash(size_t slots) {
        std::vector<Slot> old(slots);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.row == kNone) {
                continue;
            }
            size_t at = std::hash<std::string_view>()(text_of_(slot.row)) & mask();
            while (slots_[at].row != kNone) {
                at = (at + 1) & mask();
            }
            slots_[at] = slot;
        }
    }

    TextOf text_of_;
    std::vector<Slot> slots_;
    size_t used_ = 0;
};

}  // namespace reprise
