// SPDX-License-Identifier: MIT
// The reasons why an op of the log is not performed.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/support/counters.h"

namespace reprise {

enum class LeftOut : uint8_t {
    none,
    filter,         // by role or path
    no_place,       // its path has no place below the root
    not_open,       // its open failed in this run: a mismatch
    not_a_file,     // acts on a pipe, socket or the like, which the replay does not make
    read_only,      // would alter files, and --read-only was given
    device_node,    // names a device; never opened
    unsupported,    // no way to perform it is known, or it could harm more than files below the root
    received,       // its instance came over a socket or another way that no call shows
    stopped,        // the run was ended before
    refused,        // the recording's user had no permission, and this one has
    not_permitted,  // its file came to the job open, and this user may not open it
};
inline constexpr uint8_t kLeftOutReasons = 12;

/// The counter of ops left out for a reason other than `none`.
Count left_out_counter(LeftOut reason);
/// Its name and meaning without what all of them begin with.
std::string_view left_out_name(LeftOut reason);
std::string_view left_out_meaning(LeftOut reason);

/// What an engine returns in place of a result.
constexpr int64_t not_performed(LeftOut reason) { return INT64_MIN + static_cast<int64_t>(reason); }
constexpr bool is_not_performed(int64_t result) { return result < INT64_MIN + 256; }
constexpr LeftOut reason_of(int64_t result) { return static_cast<LeftOut>(result - INT64_MIN); }

}  // namespace reprise
