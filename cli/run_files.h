// SPDX-License-Identifier: MIT
// The files that a verified run should have left, from its log and the recording: to compare them again later, or as
// they were at any moment of the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"
#include "replay/plan/plan.h"
#include "replay/run/verification.h"

namespace reprise::cli {

class RunFiles {
public:
    /// `root`: as `prepare` made it, for its marker. Throws Error where the logs do not belong together.
    RunFiles(const std::filesystem::path& recording, const std::filesystem::path& run_log,
             const std::filesystem::path& root);
    RunFiles(const RunFiles&) = delete;
    RunFiles& operator=(const RunFiles&) = delete;

    /// All files below `root`, after the run.
    TreeCheck check(const std::filesystem::path& root) const;

    /// A model that has seen no op of the run yet.
    FileModel begin() const;
    const Plan& plan() const { return plan_; }
    /// Ops that shape files, by time.
    const std::vector<TimedOp>& ops() const { return ops_; }
    /// Wall clock at time 0 of these, ns.
    int64_t origin_unix_ns() const { return origin_; }

private:
    LogReader recording_;
    Plan plan_;
    std::optional<PreparedFiles> prepared_;
    std::vector<TimedOp> ops_;
    int64_t origin_ = 0;
};

}  // namespace reprise::cli
