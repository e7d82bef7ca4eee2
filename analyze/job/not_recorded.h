// SPDX-License-Identifier: MIT
// What a log does not hold, so that nobody takes its absence for a zero.
#pragma once

#include <string>
#include <vector>

namespace reprise {

struct JobAnalysis;

/// A noun phrase for each, with the reason or the remedy.
std::vector<std::string> not_recorded(const JobAnalysis& job);

}  // namespace reprise
