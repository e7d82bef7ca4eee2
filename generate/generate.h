// SPDX-License-Identifier: MIT
// A job into an op log: what its tasks would do on storage as fast as memory, with what waits for what.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"
#include "generate/job.h"

namespace reprise {

struct GeneratedSection {
    std::string name;
    uint64_t files = 0;
    int64_t file_bytes = 0;      // of those that are there before
    uint64_t steps = 0;          // of the job; 0: plain I/O
    uint64_t requests = 0;       // of an open loop
    int64_t begin = 0, end = 0;  // ns, on storage as fast as memory
};

struct GenerateResult {
    uint64_t ops = 0, tasks = 0;
    int64_t read_bytes = 0, written_bytes = 0;
    std::vector<GeneratedSection> sections;
};

struct GenerateOptions {
    WriterOptions writer = {};
    std::string command;  // of the log
    std::string tool;
    /// Called now and then with how much of the job is written, in [0,1].
    std::function<void(double)> progress = {};
};

/// Memory is bounded by the data set's files and by what is opened, not by the number of ops. Throws Error (machine)
/// where the log cannot be written.
GenerateResult generate(const Job& job, const std::filesystem::path& output, const GenerateOptions& options = {});

}  // namespace reprise
