// SPDX-License-Identifier: MIT
// Quantities as text: formatting and parsing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::cli {

/// "1,234,567"
std::string format_count(std::uint64_t count);
/// "1 task", "2 tasks"; `plural` for nouns that take more than an s.
std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural = {});
/// Powers of 1024, three significant digits: "0 B", "1.50 KiB", "64.0 MiB".
std::string format_bytes(std::uint64_t bytes);
/// From nanoseconds, three significant digits below a minute: "850 ns",
/// "1.25 ms", "12.3 s", "3 min 05 s", "2 h 03 min". Negative values keep their sign.
std::string format_duration(std::int64_t nanoseconds);
/// Bytes per second, "1.21 GiB/s"; "-" where it is not a finite number >= 0.
std::string format_rate(double bytes_per_second);
/// Things per second with a power-of-1000 prefix: "950 ops/s", "1.20 M ops/s".
std::string format_count_rate(double per_second, std::string_view noun = "ops");
/// A share in [0,1] as "12.3 %"; "-" where it is not finite.
std::string format_share(double share);

/// Reads "4096", "64KiB", "64k", "1.5 GiB", "2GB". K, M, G, T, P alone and with
/// iB are powers of 1024, with B powers of 1000; case does not matter.
/// Throws Error (usage) naming `what` (an option) where it is none of these or
/// beyond 64 bits.
std::uint64_t parse_bytes(std::string_view text, std::string_view what);
/// Reads "250ns", "10us", "5ms", "1.5s", "2min", "1h" into nanoseconds; a bare
/// number is seconds. Throws as parse_bytes.
std::int64_t parse_duration(std::string_view text, std::string_view what);

}  // namespace reprise::cli
