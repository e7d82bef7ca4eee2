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

/// poor: exit code 1, the run did not finish, it measured little (not_measured()), it made requests one by one that the
/// recording had in flight together, writes to mapped files may be missing in the recording, a pool shares its work
/// otherwise, or more than a tenth of its ops differ, which was tolerated. fair: something cost more than a little,
/// recorded tasks were pinned to fewer CPUs, the file system compresses, mapped files are cold that were in memory in
/// the recording, more than 0.1 % of the ops differ, or the speed of the processors was not verified where compute
/// depends on it. After judge_results() and judge().
Trust trust_in(const ReplayResult& result);

/// Why its time gets no 95 % interval; empty: it gets one. After trust_in().
std::string why_no_interval(const ReplayResult& result);

/// An interval that reaches down to (almost) nothing says nothing: the trust is at most fair. After trust_in().
void doubt_wide_interval(ReplayResult& result);

/// Why the time says little about the storage although the run did what it was to: what it read was no data (sparse
/// files), it was to be cold and lies in memory, most of the time is waits of which nobody knows the cause, most of the
/// job's data is left out, by its name or among programs, or most of the recording's time went into names that memory
/// served here. Empty: none of these. Else the trust is poor, and the exit code 1.
std::string not_measured(const ReplayResult& result);

}  // namespace reprise
