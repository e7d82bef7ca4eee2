// SPDX-License-Identifier: MIT
// What devices read for the processes of a run, while it goes on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "replay/limit/control_group.h"
#include "replay/plan/plan.h"
#include "replay/run/shared.h"

namespace reprise {

/// By the group's counter, or by the accounts of the processes: one that goes on has what those had that it reaped.
class RunReads {
public:
    /// `group`: none where the run has none. `disk`: that the group's counter is of; none: unknown.
    RunReads(const Plan& plan, std::optional<dev_t> disk, const ControlGroup* group)
        : plan_(plan), disk_(disk), group_(group) {}

    /// Bytes so far; never fewer than before. None: nobody keeps account, or there are too many processes to ask.
    std::optional<uint64_t> look(SharedRun& run);

private:
    const Plan& plan_;
    const std::optional<dev_t> disk_;
    const ControlGroup* const group_;
    uint64_t read_ = 0;  // most that it has come to
};

}  // namespace reprise
