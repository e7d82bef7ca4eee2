// SPDX-License-Identifier: MIT
// How far the times of a run may be trusted: one word, and why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

struct ReplayResult;

struct Trust {
    enum class Level : uint8_t { good, fair, poor } level = Level::good;
    std::string reason;  // what is wrong; where nothing is, what was looked at
};
/// good, fair or poor.
std::string_view trust_name(Trust::Level level);

/// poor: exit code 1, or the run did not finish. fair: something cost more than a little, or the speed of the
/// processors was not verified where compute depends on it. After judge_results() and judge().
Trust trust_in(const ReplayResult& result);

}  // namespace reprise
