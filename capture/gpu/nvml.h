// SPDX-License-Identifier: MIT
// Samples how busy NVIDIA's management library says each device is: a check of what else is recorded. The library
// is looked for when it is asked for; nothing is linked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise {

class NvmlSampler {
public:
    struct Device {
        uint64_t samples = 0;
        double percent = 0;  ///< mean share of time in which some kernel ran, as the driver tells it
    };

    /// Begins to sample, on a thread of its own, every `period_ms`. `library`: its file name or path.
    explicit NvmlSampler(const std::string& library = "libnvidia-ml.so.1", int period_ms = 200);
    ~NvmlSampler();
    NvmlSampler(const NvmlSampler&) = delete;
    NvmlSampler& operator=(const NvmlSampler&) = delete;

    /// Why there are no samples, as a sentence; empty: there are.
    const std::string& absent() const;
    /// Ends the sampling. By device; those that never answered have no samples.
    std::vector<Device> finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
