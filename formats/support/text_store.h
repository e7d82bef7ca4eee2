// SPDX-License-Identifier: MIT
// Many short texts that stay where they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace reprise {

/// One after the other in large pieces, each followed by a NUL: a text takes a byte more than it has.
class TextStore {
public:
    std::string_view keep(std::string_view text) {
        constexpr size_t kPiece = size_t{64} << 10;
        if (used_ + text.size() + 1 > size_) {
            size_ = std::max(kPiece, text.size() + 1);
            pieces_.push_back(std::make_unique_for_overwrite<char[]>(size_));
            used_ = 0;
        }
        char* const at = pieces_.back().get() + used_;
        std::memcpy(at, text.data(), text.size());
        at[text.size()] = '\0';
        used_ += text.size() + 1;
        return {at, text.size()};
    }

private:
    std::vector<std::unique_ptr<char[]>> pieces_;
    size_t used_ = 0, size_ = 0;  // of the last piece
};

}  // namespace reprise
