// SPDX-License-Identifier: MIT
// Quantities as text: formatting and parsing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/support/quantity.h"

namespace reprise::cli {

using reprise::counted;
using reprise::format_bytes;
using reprise::format_count;
using reprise::format_count_rate;
using reprise::format_duration;
using reprise::format_rate;
using reprise::format_share;

/// Reads "4096", "64KiB", "64k", "1.5 GiB", "2GB". K, M, G, T, P alone and with
/// iB are powers of 1024, with B powers of 1000; case does not matter.
/// Throws Error (usage) naming `what` (an option) where it is none of these or
/// beyond 64 bits.
std::uint64_t parse_bytes(std::string_view text, std::string_view what);
/// Reads "250ns", "10us", "5ms", "1.5s", "2min", "1h" into nanoseconds; a bare
/// number is seconds. Throws as parse_bytes.
std::int64_t parse_duration(std::string_view text, std::string_view what);

}  // namespace reprise::cli
