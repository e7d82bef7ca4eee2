// SPDX-License-Identifier: MIT
// Whether two results of an op are the same: the one rule of `replay` and `compare`.
#pragma once

#include <cstdint>

#include "formats/oplog/op.h"

namespace reprise {

enum class ResultMatch {
    same,
    known,  // differs as machines differ: another descriptor, address, size of a directory entry
    differs,
};

/// `arg` of the op; the results are the call's, or -errno.
ResultMatch match_results(OpKind kind, int64_t arg, int64_t recorded, int64_t run);

}  // namespace reprise
