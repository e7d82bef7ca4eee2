// SPDX-License-Identifier: MIT
// How quantities are read.
#include "cli/units.h"

#include <charconv>
#include <cmath>

#include "formats/support/error.h"
#include "formats/support/read_quantity.h"

namespace reprise::cli {
namespace {

/// The value, which is below `limit`.
double checked(const ReadQuantity& read, std::string_view text, std::string_view what, double limit,
               std::string_view expected) {
    const char* const wrong = read.wrong != nullptr ? read.wrong : !(read.value < limit) ? "exceeds 64 bits" : nullptr;
    if (wrong != nullptr) {
        throw usage_error(std::string(what) + " is '" + escape_line(text) + "': " + wrong,
                          "expected " + std::string(expected));
    }
    return read.value;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view what) {
    // Plain integers exactly, beyond the 53 bits of a double.
    std::uint64_t exact = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
    if (error == std::errc() && rest == text.data() + text.size()) {
        return exact;
    }
    return static_cast<std::uint64_t>(
        checked(read_byte_quantity(text), text, what, 0x1p64, "a size such as 4096, 64KiB, 1.5GiB or 2GB"));
}

std::int64_t parse_duration(std::string_view text, std::string_view what) {
    return std::llround(
        checked(read_time_quantity(text, 1e9), text, what, 0x1p63, "a time such as 250us, 10ms, 1.5s, 2min or 1h"));
}

}  // namespace reprise::cli
