// SPDX-License-Identifier: MIT
// The device of a prediction: some requests at once, and limits of bytes and of requests per second that all share.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrate/storage_model.h"
#include "replay/predict/write_back.h"

namespace reprise {

class VirtualDevice {
public:
    explicit VirtualDevice(const StorageModel& model);

    /// When a read of `bytes`, one piece, that is asked for at `now` is over, ns. In the order of `now`.
    int64_t read(int64_t bytes, int64_t now);
    /// The same of a write past the cache, after what `cache` sent before it.
    int64_t write(int64_t bytes, int64_t now, WriteBack& cache);

private:
    /// What may pass in a second; unused time is saved up to `burst`, ns.
    struct Limit {
        double per_second = 0;  // 0: no limit
        int64_t burst = 0;
        int64_t free = 0;  // when all that was let in has passed, ns
        /// When so much that comes at `begin` has passed.
        int64_t pass(double amount, int64_t begin);
    };
    /// The channel that is free first: when it begins.
    int64_t& channel();

    const StorageModel& model_;
    std::vector<int64_t> channel_free_;  // when each of them is, ns
    Limit bytes_, requests_;
};

}  // namespace reprise
