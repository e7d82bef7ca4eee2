// SPDX-License-Identifier: MIT
#include "replay/plan/timers.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace reprise {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kRounded = 2 * kMs;           // time-outs are whole milliseconds
constexpr int64_t kLongest = INT64_C(1) << 40;  // ms; more is no time-out

}  // namespace

void Timers::see(uint64_t op, OpKind kind, int64_t arg, int64_t result, int64_t begin, int64_t duration) {
    if (kind != OpKind::wait || wait_class(arg) != kWaitEpoll) {
        return;
    }
    const int64_t timeout = epoll_timeout(arg);
    if (timeout <= 0 || timeout >= kLongest) {
        armed_.reset();
        return;
    }
    const int64_t ends = begin + timeout * kMs;
    if (!armed_ || std::abs(armed_->ends - ends) > kRounded) {
        armed_ = Armed{op, begin, ends};
    }
    if (result == 0) {
        kept_ = kept_ || armed_->op != op;
        done_.push_back({armed_->op, op, std::max<int64_t>(begin + duration - armed_->begin, 0), true});
        armed_.reset();
    }
}

std::vector<Timer> Timers::take() {
    armed_.reset();
    if (!std::exchange(kept_, false)) {
        done_.clear();
    }
    return std::exchange(done_, {});
}

}  // namespace reprise
