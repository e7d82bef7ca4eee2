// SPDX-License-Identifier: MIT
// The result of a run as bytes, for the process that merges those of all ranks. Between processes of one reprise only:
// the bytes name their version and are refused by any other.
#pragma once

#include "formats/support/bytes.h"
#include "replay/run/merge_results.h"
#include "replay/run/runner.h"

namespace reprise {

/// Appends it. Everything but ReplayResult::queues.edges, which no report shows.
void pack(const ReplayResult& result, Bytes& out);
/// Takes it from where `in` is. Throws Corrupt for bytes that pack() does not make.
ReplayResult unpack_result(ByteReader& in);

void pack(const RankPlace& place, Bytes& out);
RankPlace unpack_place(ByteReader& in);

}  // namespace reprise
