// SPDX-License-Identifier: MIT
#include "replay/run/setup_rest.h"

#include <optional>

#include "calibrate/mounted.h"

namespace reprise {
namespace {

uint64_t read_until_now() {
    const std::optional<DeviceCounter> own = read_own_counter();
    return own ? own->read_bytes : 0;
}

/// Of earlier runs of this process.
uint64_t read_before = 0;

}  // namespace

SetupRest::~SetupRest() { read_before = read_until_now(); }

bool SetupRest::over(int64_t now) {
    if (wanted_ && until_ == 0) {
        until_ = now + (read_until_now() > read_before ? kRest : 0);
    }
    return now >= until_;
}

}  // namespace reprise
