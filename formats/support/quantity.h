// SPDX-License-Identifier: MIT
// Quantities as people write them. cli/units.h reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

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

}  // namespace reprise
