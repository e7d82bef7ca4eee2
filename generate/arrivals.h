// SPDX-License-Identifier: MIT
// When the requests of an open loop arrive: at a rate, or at the times of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// A request of a file of arrivals.
struct Arrival {
    int64_t ns = 0;                             // since the loop began
    int64_t prompt_tokens = 0, new_tokens = 0;  // 0: the file does not say
};

struct Arrivals {
    enum class Kind : uint8_t { fixed, poisson, listed } kind = Kind::poisson;
    double per_second = 0;                   // not of listed ones
    std::vector<Arrival> list = {};          // in the order of their times
    std::optional<int64_t> runtime_ns = {};  // none arrives after it
    std::filesystem::path file = {};         // that listed ones are from
};

/// A file of arrivals: a line for each, comma-separated; first the time, in seconds or as 2023-11-16 18:15:46.68 (then
/// counted from the first line's). A first line of names is passed over; columns that it names as numbers of tokens, as
/// published traces of inference do, are taken. Throws Error (bad_input) with file and line.
std::vector<Arrival> read_arrivals(const std::filesystem::path& file);
std::vector<Arrival> parse_arrivals(std::string_view text, const std::string& name);

/// The arrivals of one loop, one after the other. The same for the same seed everywhere.
class ArrivalTimes {
public:
    /// `arrivals` outlives it.
    ArrivalTimes(const Arrivals& arrivals, uint64_t seed) : arrivals_(arrivals), seed_(seed) {}
    /// None: no more arrive. Times ascend, and are above 0.
    std::optional<Arrival> next();

private:
    const Arrivals& arrivals_;
    uint64_t seed_, made_ = 0;
    double at_ = 0;  // ns
};

}  // namespace reprise
