// SPDX-License-Identifier: MIT
// The inferred queues kept in the log they were inferred from, so that not every command looks for them again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "formats/oplog/oplog.h"
#include "formats/support/bytes.h"
#include "replay/plan/queues.h"

namespace reprise {

/// Raise it when infer_queues finds anything else in the same log: then what older logs hold is not used.
inline constexpr uint32_t kInferenceVersion = 2;

/// Inferring takes up to 40 bytes of memory per op; beyond so many ops it is left to those who need it.
inline constexpr uint64_t kMostOpsDerived = uint64_t{1} << 25;

/// For LogWriter::keep.
Derived stored_queues(const QueueInference& queues);
/// For WriterOptions::derive.
std::optional<Derived> derive_queues(const LogReader& log);

/// What the log holds, if it was inferred by this version, else what infer_queues finds. Throws Error (bad_input) where
/// the log holds something that cannot be of it.
QueueInference queues_of(const LogReader& log, const std::function<void(uint64_t ops)>& progress = {});

// The two directions, apart for tests.

Bytes encode_queues(const QueueInference& queues);
/// Throws Corrupt.
QueueInference decode_queues(ByteView bytes, const LogReader& log);

}  // namespace reprise
