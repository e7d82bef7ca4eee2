// SPDX-License-Identifier: MIT
// Sizes and times as people write them, read.
#pragma once

#include <string_view>

namespace reprise {

struct ReadQuantity {
    double value = 0;             // bytes or nanoseconds, not negative
    const char* wrong = nullptr;  // what is wrong with the text; nullptr: nothing
};

/// "4096", "64KiB", "64k", "1.5 GiB", "2GB": K, M, G, T, P alone and with iB are powers of 1024, with B powers of 1000;
/// case does not matter.
ReadQuantity read_byte_quantity(std::string_view text);
/// "250ns", "10us", "5ms", "1.5s", "2min", "1h"; a bare number is so many of `unit_ns` nanoseconds.
ReadQuantity read_time_quantity(std::string_view text, double unit_ns);

}  // namespace reprise
