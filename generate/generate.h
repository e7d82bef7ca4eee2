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

/// Draws of a word's distribution that were below its least value, and became it.
struct ClippedDraws {
    std::string word;
    uint64_t below = 0, drawn = 0;
    int64_t least = 0;
};

struct GeneratedSection {
    std::string name;
    uint64_t files = 0;
    int64_t file_bytes = 0;      // of those that are there before
    uint64_t steps = 0;          // of the job; 0: plain I/O
    uint64_t requests = 0;       // of an open loop
    int64_t begin = 0, end = 0;  // ns, on storage as fast as memory
    std::vector<ClippedDraws> clipped;
    std::string fewer_steps;    // than steps= asks for, and why; empty: as many
    std::string no_checkpoint;  // why none was made that was asked for; empty: it was, or none was

    void drew(const std::string& word, const Distribution& from, uint64_t below, uint64_t drawn);
};

struct GenerateResult {
    uint64_t ops = 0, tasks = 0;
    int64_t read_bytes = 0, written_bytes = 0;
    int64_t touched_bytes = 0;  // of mapped files, in whole pages
    std::vector<GeneratedSection> sections;
};

struct GenerateOptions {
    WriterOptions writer = {};
    std::string command;  // of the log
    std::string tool;
    /// Called now and then with how much of the job is written, in [0,1].
    std::function<void(double)> progress = {};
};

/// Sentences: where the log is not what the job file says.
std::vector<std::string> notes_of(const GenerateResult& result);

/// Memory is bounded by the data set's files and by what is opened, not by the number of ops. Throws Error (machine)
/// where the log cannot be written.
GenerateResult generate(const Job& job, const std::filesystem::path& output, const GenerateOptions& options = {});

}  // namespace reprise
