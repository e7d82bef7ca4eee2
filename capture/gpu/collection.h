// SPDX-License-Identifier: MIT
// `capture --gpu`: the collector inside the job, what it leaves, NVML's check of it, and its way into the log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/gpu/nvml.h"
#include "formats/oplog/oplog.h"
#include "transform/graft.h"

namespace reprise {

class GpuCollection {
public:
    /// Processes started from now on load the collector, and the check begins. Throws Error (machine) where there is no
    /// collector. `output`: the log to be made; what is collected lies in a folder beside it.
    explicit GpuCollection(const std::filesystem::path& output);
    ~GpuCollection();
    GpuCollection(const GpuCollection&) = delete;
    GpuCollection& operator=(const GpuCollection&) = delete;

    /// Where processes of the job leave what they collected: no files of the job's own.
    std::string folder() const;

    struct Collected {
        std::vector<NvmlSampler::Device> devices;  // of the check
        std::string no_check;                      // why NVML gave no samples; empty: it did
        uint64_t files = 0;                        // processes that loaded CUDA
        bool work = false;                         // accelerators did some
        std::string malformed;                     // the first byte that cannot be read; empty: all can
    };
    /// Once, after the job: ends the check and reads what was collected.
    const Collected& collect();

    struct Written {
        GraftResult graft;
        int64_t residual_ns = 0;  // the clocks agree within
    };
    /// Writes `output`: the recording that `assemble` writes where it is told to, with the collected work in it. The
    /// recording alone is written once, not synced, into the folder. Throws Error where the two cannot be one; then
    /// there is no `output`.
    Written write(const std::filesystem::path& output,
                  const std::function<void(const std::filesystem::path&, const WriterOptions&)>& assemble,
                  const GraftOptions& options);

    /// What was collected is no longer needed.
    void remove();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
