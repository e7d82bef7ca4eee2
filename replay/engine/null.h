// SPDX-License-Identifier: MIT
// Performs nothing: what remains is the replayer itself.
#pragma once

#include "formats/oplog/oplog.h"
#include "replay/engine/engine.h"
#include "replay/plan/left_out.h"
#include "replay/plan/plan.h"

namespace reprise {

class NullEngine {
public:
    static constexpr bool kUsesRoot = false;
    explicit NullEngine(const EngineContext& context)
        : plan_(context.plan), keeps_everything_(plan_.selector->keeps_everything()) {}

    bool before(const OpBlock&, size_t) { return false; }
    int64_t submit(const OpBlock& block, size_t i) {
        if (!keeps_everything_ && !keeps(plan_, block, i)) {
            return not_performed(LeftOut::filter);
        }
        return block.result[i];
    }

private:
    const Plan& plan_;
    const bool keeps_everything_;
};

}  // namespace reprise
