// SPDX-License-Identifier: MIT
// The critical path that leads to where a task is now, in virtual time: its own, or that of the task that held it up
// last.
#pragma once

#include <algorithm>
#include <cstdint>

#include "replay/interval/path_times.h"

namespace reprise {

class VirtualPath {
public:
    VirtualPath() = default;
    /// Of a task that is started at `now_ns` by one at the end of `spawner`.
    VirtualPath(const VirtualPath& spawner, int64_t now_ns) : times_(spawner.times_), at_ns_(spawner.at_ns_) {
        spend(PathPart::call, now_ns);
    }

    /// The time up to `until_ns`; nothing where the path is there already. `cut`: in a task that a signal ended.
    void spend(PathPart part, int64_t until_ns, bool cut = false) {
        const int64_t ns = std::max<int64_t>(until_ns - at_ns_, 0);
        times_.of(part) += ns;
        times_.cut_ns += cut ? ns : 0;
        at_ns_ = std::max(at_ns_, until_ns);
    }
    /// The task waited until now for another one. `doubt`: that it had to, 0..1.
    void released_by(const VirtualPath& source, int64_t now_ns, double doubt) {
        const double held = static_cast<double>(std::max<int64_t>(now_ns - at_ns_, 0)) * doubt;
        *this = source;
        times_.doubtful_ns += held;
        spend(PathPart::call, now_ns);
    }
    const PathTimes& times() const { return times_; }

private:
    PathTimes times_;
    int64_t at_ns_ = 0;
};

}  // namespace reprise
