// SPDX-License-Identifier: MIT
// Owns `capture --gpu`: the collector in the job, what it left, and the check of it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/table.h"

namespace reprise::cli {

class GpuCollection {
public:
    /// Sees to it that processes started from now on load the collector, and begins the check. Throws Error (machine)
    /// where there is no collector.
    explicit GpuCollection(const std::filesystem::path& output);
    ~GpuCollection();
    GpuCollection(const GpuCollection&) = delete;
    GpuCollection& operator=(const GpuCollection&) = delete;

    /// Where processes of the job leave what they collected: no files of the job's own.
    std::string folder() const;
    /// Puts what was collected into the assembled log. Returns what is to be said of it, as sentences. What was
    /// collected is removed unless it could not be put in.
    std::vector<std::string> finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::cli
