// SPDX-License-Identifier: MIT
// The progress line of a replay.
#pragma once

#include <memory>
#include <string>

#include "cli/progress.h"
#include "cli/units.h"
#include "replay/run/runner.h"

namespace reprise::cli {

/// One progress line per phase.
class PhaseProgress {
public:
    void operator()(const ReplayProgress& now) {
        if (!line_ || now.phase != phase_) {
            finish();
            phase_ = now.phase;
            line_ = std::make_unique<Progress>(
                label(), phase_ == ReplayProgress::Phase::caching ? ProgressUnit::bytes : ProgressUnit::count);
        }
        std::string text;
        if (line_->active() && now.lag_ns > 1'000'000) {
            text = "lag " + format_duration(now.lag_ns);
        }
        if (!now.waiting.empty()) {
            text = now.waiting;
        }
        line_->update(now.done, now.total, text);
    }
    void finish() {
        if (line_) {
            line_->finish();
            line_.reset();
        }
    }

private:
    const char* label() const {
        switch (phase_) {
            case ReplayProgress::Phase::planning: return "planning";
            case ReplayProgress::Phase::caching: return "preparing the page cache";
            case ReplayProgress::Phase::running: return "replaying";
            case ReplayProgress::Phase::collecting: return "writing the result";
        }
        return "";
    }

    ReplayProgress::Phase phase_ = ReplayProgress::Phase::planning;
    std::unique_ptr<Progress> line_;
};

}  // namespace reprise::cli
