// SPDX-License-Identifier: MIT
// The commands that messages about a root tell people to run: they work when pasted.
#pragma once

#include <optional>
#include <string>

#include "replay/prepare/root_marker.h"
#include "replay/run/runner.h"

namespace reprise {

/// "reprise prepare job.oplog --epochs 4 --root /mnt/new --map /data=. --reset": lays out the root for this replay.
std::string prepare_command(const ReplayOptions& options, const std::optional<Marker>& marker);

/// Restores what earlier replays changed.
std::string reset_command(const ReplayOptions& options);

/// "was prepared for job.oplog, not for job.oplog --epochs 4"
std::string other_log_sentence(const ReplayOptions& options, const Marker& marker);

}  // namespace reprise
