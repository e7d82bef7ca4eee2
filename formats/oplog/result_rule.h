// SPDX-License-Identifier: MIT
// Whether two results of an op are the same: the one rule of `replay` and `compare`.
#pragma once

#include <cstdint>
#include <unordered_map>

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

/// Results of getdents, in the order of the ops. How a listing is spread over its calls depends on the file system; one
/// that has returned less than half of the recorded bytes by then has fewer names.
class ListingResults {
public:
    /// `listing`: the directory or the open instance. As match_results.
    ResultMatch match(uint32_t listing, int64_t recorded, int64_t run);

private:
    struct Bytes {
        int64_t recorded = 0, run = 0;
    };
    std::unordered_map<uint32_t, Bytes> bytes_;
};

}  // namespace reprise
