// SPDX-License-Identifier: MIT
// The text of darshan-dxt-parser as rows: what its comment lines say of logs, files and ranks, and one row per call.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reprise::darshan {

/// Between a minute before the job and 30 years after it, so that sums of a few times fit.
inline constexpr int64_t kEarliest = -60'000'000'000, kLatest = 1'000'000'000'000'000'000;

/// One log: one MPI job, or one process of a job without MPI.
struct Log {
    std::filesystem::path path;
    std::string command;
    int64_t start = 0;     // ns since 1970, whole seconds in most logs; 0: not stated
    int64_t run_time = 0;  // ns; 0: not stated
};

struct File {
    std::string name;
    bool posix = false;  // some rank has calls of DXT_POSIX on it
};

/// A rank of a log: a process.
struct Rank {
    uint32_t log = 0;
    int64_t number = 0;
    std::string host;
};

struct Row {
    int64_t begin = 0, end = 0;  // ns since the start of its log
    int64_t offset = 0, length = 0;
    int64_t thread = 0;  // as the trace names it; 0: it does not
    uint32_t rank = 0, file = 0;
    bool writes = false, mpiio = false;
};

struct Lines {
    std::vector<Log> logs;
    std::vector<File> files;
    std::vector<Rank> ranks;
    std::vector<Row> rows;
    int decimals = 0;         // most that a time has
    uint64_t malformed = 0;   // lines left out
    uint64_t cut = 0;         // inputs that end too early
    uint64_t missing = 0;     // calls that a file's header counts and that have no row
    uint64_t incomplete = 0;  // modules that ran out of memory, by Darshan's own word
    std::string first_malformed, first_incomplete;

    /// Adds one log, which `text` holds; `name` is the file that the user gave. Throws Error (bad_input) for what holds
    /// no DXT records. `progress` gets the bytes of the file read so far.
    void read(const std::filesystem::path& text, const std::filesystem::path& name,
              const std::function<void(uint64_t)>& progress);

private:
    class Parser;
    std::unordered_map<std::string, uint32_t> file_numbers_;
};

/// ns of a decimal number of seconds ("12.0345"), digits beyond the ninth cut off; `decimals` becomes how many it has.
/// False where it is no number, or ns do not fit.
bool to_time(std::string_view text, int64_t& ns, int& decimals);

}  // namespace reprise::darshan
