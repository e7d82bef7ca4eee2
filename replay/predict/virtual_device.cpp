// SPDX-License-Identifier: MIT
#include "replay/predict/virtual_device.h"

#include <algorithm>

namespace reprise {
namespace {

constexpr size_t kMostChannels = 4096;

}  // namespace

VirtualDevice::VirtualDevice(const StorageModel& model)
    : model_(model),
      channel_free_(std::min(static_cast<size_t>(std::max(model.parallelism, 1)), kMostChannels)),
      bytes_{model.read_bytes_per_s, model.read_burst_ns},
      requests_{model.reads_per_s, model.read_burst_ns} {}

int64_t VirtualDevice::Limit::pass(double amount, int64_t begin) {
    if (per_second <= 0) {
        return begin;
    }
    free = std::max(free, begin) + static_cast<int64_t>(amount * 1e9 / per_second);
    return free - burst;
}

int64_t& VirtualDevice::channel() { return *std::min_element(channel_free_.begin(), channel_free_.end()); }

int64_t VirtualDevice::read(int64_t bytes, int64_t now) {
    int64_t& free = channel();
    const int64_t begin = std::max(now, free);
    const int64_t passed = std::max(bytes_.pass(static_cast<double>(bytes), begin), requests_.pass(1, begin));
    return free = std::max(begin + model_.read_ns(bytes), passed);
}

int64_t VirtualDevice::write(int64_t bytes, int64_t now, WriteBack& cache) {
    int64_t& free = channel();
    const int64_t begin = std::max(now, free);
    return free = std::max(begin + model_.read_ns(bytes), cache.write(bytes, begin));
}

}  // namespace reprise
