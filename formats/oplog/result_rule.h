// SPDX-License-Identifier: MIT
// Whether two results of an op are the same: the one rule of `replay` and `compare`.
#pragma once

#include <cstdint>

#include "formats/oplog/op.h"

namespace reprise {

/// A call's result that is -errno (Linux: MAX_ERRNO).
constexpr bool is_error(int64_t result) { return result < 0 && result > -4096; }

enum class ResultMatch {
    same,
    known,  // both succeeded, with numbers that depend on the machine: descriptors, addresses, sizes of names
    differs,
};

/// `arg` of the op; the results are the call's, or -errno. Errors must be equal. Where both succeeded, the numbers must
/// be equal, too, if they are the program's own: bytes moved, positions. Ops that perform no I/O (Trait::io) have no
/// result of their own, and always agree.
ResultMatch match_results(OpKind kind, int64_t arg, int64_t recorded, int64_t run);

}  // namespace reprise
