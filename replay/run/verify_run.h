// SPDX-License-Identifier: MIT
// Where `replay` and its verification meet: what the options must allow, and how it gets to know every op.
#pragma once

#include <memory>
#include <optional>

#include "replay/prepare/root_marker.h"
#include "replay/run/runner.h"

namespace reprise {

/// Null where it is not asked for. Else adds itself to options.observe and to the plan. Throws Error (usage) where the
/// root or the options leave nothing to check.
std::unique_ptr<Verification> verify_run(Plan& plan, ReplayOptions& options, const std::optional<Marker>& marker);

/// What it found: a run that left other files, or read other bytes, was not the same job.
void add_verified(VerifyReport report, ReplayResult& result);

}  // namespace reprise
