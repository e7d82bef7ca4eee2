// SPDX-License-Identifier: MIT
// Argument of calls that take results of asynchronous requests (uring_enter, aio_reap). A job may look for results with
// a call, again and again: as many such calls in a row, which took nothing, are one op.
#pragma once

#include <cstdint>

#include "formats/oplog/op.h"

namespace reprise {

namespace reap_arg_detail {
inline constexpr int kShift = 32;
}

constexpr bool takes_results(OpKind kind) { return kind == OpKind::uring_enter || kind == OpKind::aio_reap; }
/// Results that the call waits for, at least.
constexpr int64_t least_results(int64_t arg) { return arg & ((int64_t{1} << reap_arg_detail::kShift) - 1); }
/// Calls more that the op stands for.
constexpr int64_t looks_more(int64_t arg) { return arg < 0 ? 0 : arg >> reap_arg_detail::kShift; }
/// Argument of an op that stands for one call more.
constexpr int64_t with_a_look_more(int64_t arg) { return arg + (int64_t{1} << reap_arg_detail::kShift); }

/// A call that makes no request, waits for none, and took none: the job looked. One of libaio whose time was over took
/// none, either.
inline bool only_looked(const Op& op) {
    const bool enter = op.kind == OpKind::uring_enter && op.size == 0 && least_results(op.arg) == 0;
    return (enter || op.kind == OpKind::aio_reap) && op.result == 0 && op.arg >= 0;
}

}  // namespace reprise
