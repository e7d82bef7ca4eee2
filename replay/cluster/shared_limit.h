// SPDX-License-Identifier: MIT
// What many clients share, first come, first served.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reprise {

/// So much may pass in a second. Who asks comes in the order of `begin`, ns.
class SharedLimit {
public:
    SharedLimit() = default;
    /// `per_s`: 0 or less: no limit. What was not used for a while is saved up to `burst_ns`.
    explicit SharedLimit(double per_s, double burst_ns = 0)
        : ns_each_(per_s > 0 ? 1e9 / per_s : 0), burst_ns_(burst_ns) {}

    bool limits() const { return ns_each_ > 0; }
    /// When so much that comes at `begin` has passed.
    double pass(double amount, double begin) {
        if (ns_each_ <= 0 || amount <= 0) {
            return begin;
        }
        const double takes = amount * ns_each_;
        busy_ns_ += takes;
        free_ = std::max(free_, begin) + takes;
        return free_ - burst_ns_;
    }
    /// Share of the time in which it was the bound.
    double use(double elapsed_ns) const { return elapsed_ns > 0 ? busy_ns_ / elapsed_ns : 0; }

private:
    double ns_each_ = 0, burst_ns_ = 0;
    double free_ = 0, busy_ns_ = 0;
};

}  // namespace reprise
